r"""Logs of Jepsen's etcd test, as published with Horn & Kroening's checker and in Porcupine's test data.

    INFO  jepsen.util - 3	:invoke	:cas	[3 0]
    INFO  jepsen.util - 3	:fail	:cas	[3 0]

One register, at first unset (`nil`). `:info` is an operation that timed out and may still take effect. A `:fail` of a
compare-and-set means that the precondition did not hold; any other `:fail` did not happen.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from faultline.checkers.importers.events import EventError
from faultline.checkers.importers.imported import ImportedHistory
from faultline.checkers.importers.recording import imported
from faultline.checkers.importers.text import EventSource, Lines
from faultline.harness.outcome import CAS_MISMATCH

__all__ = ["events", "read"]

_LINE = re.compile(r"^INFO\s+jepsen\.util - (\d{1,18})\s+:(invoke|ok|fail|info)\s+:(read|write|cas)\s+(\S.*)$")
_PAIR = re.compile(r"^\[(-?\d{1,18}) (-?\d{1,18})\]$")
_INTEGER = re.compile(r"^-?\d{1,18}$")


def read(path: Path) -> ImportedHistory:
    """Read one log; other lines than Jepsen's operations (nemesis, other loggers) are an error, as none are known."""
    return imported(events(path), model="cas-register", clock="events")


def events(path: Path) -> EventSource:
    """Return the events of a log."""
    return Lines(path, _event)


def _event(line: str) -> dict[str, Any]:
    match = _LINE.match(line)
    if match is None:
        raise EventError(f"this is not an operation of a Jepsen log: {line[:80]!r}")
    kind, f, text = match[2], match[3], match[4].rstrip()
    event = {"process": int(match[1]), "type": kind, "f": f}
    if kind in ("invoke", "ok"):
        return event | {"value": _value(f, text)}
    if text.startswith(":"):
        return event | {"error": text[1:]}
    if kind == "info":
        return event | {"error": "timed-out"}
    return event | {"error": CAS_MISMATCH if f == "cas" else "failed"}


def _value(f: str, text: str) -> int | list[int] | None:
    if text == "nil" and f == "read":
        return None
    if f != "cas" and _INTEGER.match(text):
        return int(text)
    pair = _PAIR.match(text) if f == "cas" else None
    if pair is None:
        raise EventError(f"{text!r} is not a value of a {f}")
    return [int(pair[1]), int(pair[2])]
