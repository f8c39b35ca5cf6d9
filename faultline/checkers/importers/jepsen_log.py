r"""Logs of Jepsen's etcd test, as published with Horn & Kroening's checker and in Porcupine's test data.

    INFO  jepsen.util - 3	:invoke	:cas	[3 0]
    INFO  jepsen.util - 3	:fail	:cas	[3 0]

One register, at first unset (`nil`). `:info` is an operation that timed out and may still take effect. A `:fail` of a
compare-and-set says that the precondition did not hold; any other `:fail` did not happen.
"""

from __future__ import annotations

import re
from pathlib import Path

from faultline.checkers.importers.imported import EventRecorder, ImportedHistory, malformed, read_lines
from faultline.harness.outcome import CAS_MISMATCH, Outcome, fail, info, ok

__all__ = ["read"]

_LINE = re.compile(r"^INFO\s+jepsen\.util - (\d+)\s+:(invoke|ok|fail|info)\s+:(read|write|cas)\s+(.+?)\s*$")
_PAIR = re.compile(r"^\[(-?\d+) (-?\d+)\]$")
_INTEGER = re.compile(r"^-?\d+$")


def read(path: Path) -> ImportedHistory:
    """Read one log; other lines than Jepsen's operations (nemesis, other loggers) are an error, as none are known."""
    recorder = EventRecorder(path)
    for number, line in read_lines(path):
        match = _LINE.match(line)
        if match is None:
            raise malformed(path, number, f"this is no operation of a Jepsen log: {line[:80]!r}")
        process, kind, f, text = int(match[1]), match[2], match[3], match[4]
        if kind == "invoke":
            recorder.invoke(number, process, f, None, _value(path, number, f, text))
        else:
            recorder.complete(number, process, f, _outcome(path, number, kind, f, text))
    return ImportedHistory(recorder.history, "cas-register")


def _value(path: Path, number: int, f: str, text: str) -> int | list[int] | None:
    if text == "nil" and f == "read":
        return None
    if f != "cas" and _INTEGER.match(text):
        return int(text)
    pair = _PAIR.match(text) if f == "cas" else None
    if pair is None:
        raise malformed(path, number, f"{text!r} is no value of a {f}")
    return [int(pair[1]), int(pair[2])]


def _outcome(path: Path, number: int, kind: str, f: str, text: str) -> Outcome:
    if kind == "ok":
        return ok(_value(path, number, f, text) if f == "read" else None)
    if text.startswith(":"):
        return info(text[1:]) if kind == "info" else fail(text[1:])
    return info("timed-out") if kind == "info" else fail(CAS_MISMATCH if f == "cas" else "failed")
