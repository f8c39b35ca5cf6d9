"""Key-value histories of Porcupine's test data: gets, puts and appends of strings.

    {:process 0, :type :invoke, :f :append, :key "0", :value "x 0 0 y"}
    {:process 0, :type :ok, :f :append, :key "0", :value "x 0 0 y"}

Every line is one event; a get's `:ok` carries its answer. A key that was never put holds the empty string.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from faultline.checkers.importers.events import EventError
from faultline.checkers.importers.imported import ImportedHistory
from faultline.checkers.importers.recording import imported
from faultline.checkers.importers.text import EventSource, Lines

__all__ = ["events", "read"]

_STRING = r'"(?:[^"\\]|\\.)*"'
_LINE = re.compile(
    rf"^\{{:process (\d{{1,18}}), :type :(invoke|ok|fail|info), :f :(get|put|append), "
    rf":key ({_STRING}), :value ({_STRING}|nil)\}}\s*$"
)


def read(path: Path) -> ImportedHistory:
    """Read one key-value history."""
    return imported(events(path), model="kv", clock="events")


def events(path: Path) -> EventSource:
    """Return the events of a key-value history."""
    return Lines(path, _event)


def _event(line: str) -> dict[str, Any]:
    match = _LINE.match(line)
    if match is None:
        raise EventError(f"this is not an event of a key-value history: {line[:80]!r}")
    kind, f, value = match[2], match[3], _string(match[5])
    if value is None and (f != "get" or kind == "ok"):
        raise EventError(f"{f} without a value")
    event = {"process": int(match[1]), "type": kind, "f": f, "key": _string(match[4]), "value": value}
    return event | {"error": "timed-out"} if kind == "info" else event


def _string(text: str) -> str | None:
    if text == "nil":
        return None
    if "\\" not in text:
        return text[1:-1]
    try:
        return str(json.loads(text))
    except json.JSONDecodeError as error:
        raise EventError(f"{text[:80]} is not a string") from error
