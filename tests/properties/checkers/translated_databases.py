"""Histories of toy databases of lists, told in the terms of another kind of data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interleaved_databases import toy_history

from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome

__all__ = ["translated_history"]


def translated_history(
    level: str, seed: int, translate: Callable[[str, str, Any], list[Any]], write: str = "append", **options: Any
) -> History:
    """A toy history at `level` with each micro-operation's name, key and value put through `translate`."""
    history, rows = History(), {}
    for event in toy_history(level, seed, write, **options).events():
        value = event["value"] and [translate(*micro) for micro in event["value"]]
        if event["type"] == "invoke":
            operation = Operation(event["process"], "txn", None, value)
            rows[event["process"]] = history.invoke(operation, event["time_us"], 0, "")
            continue
        history.complete(rows[event["process"]], Outcome(event["type"], value, event.get("error")), event["time_us"])
    return history
