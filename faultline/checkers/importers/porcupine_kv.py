"""Key-value histories of Porcupine's test data: gets, puts and appends of strings.

    {:process 0, :type :invoke, :f :append, :key "0", :value "x 0 0 y"}
    {:process 0, :type :ok, :f :append, :key "0", :value "x 0 0 y"}

Every line is one event; a get's `:ok` carries what it answered. A key that was never put holds the empty string.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from faultline.checkers.importers.imported import EventRecorder, ImportedHistory, malformed, read_lines
from faultline.harness.outcome import fail, info, ok

__all__ = ["read"]

_STRING = r'"(?:[^"\\]|\\.)*"'
_LINE = re.compile(
    rf"^\{{:process (\d+), :type :(invoke|ok|fail|info), :f :(get|put|append), "
    rf":key ({_STRING}), :value ({_STRING}|nil)\}}\s*$"
)


def read(path: Path) -> ImportedHistory:
    """Read one key-value history."""
    recorder = EventRecorder(path)
    for number, line in read_lines(path):
        match = _LINE.match(line)
        if match is None:
            raise malformed(path, number, f"this is no event of a key-value history: {line[:80]!r}")
        process, kind, f, key, value = int(match[1]), match[2], match[3], json.loads(match[4]), _string(match[5])
        if value is None and (f != "get" or kind == "ok"):
            raise malformed(path, number, f"{f} without a value")
        if kind == "invoke":
            recorder.invoke(number, process, f, key, value)
        elif kind == "ok":
            recorder.complete(number, process, f, ok(value))
        else:
            recorder.complete(number, process, f, fail("failed") if kind == "fail" else info("timed-out"))
    return ImportedHistory(recorder.history, "kv")


def _string(text: str) -> str | None:
    return None if text == "nil" else str(json.loads(text))
