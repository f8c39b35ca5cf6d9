"""A history that the clients' event loop and the nemesis thread write together."""

from __future__ import annotations

import threading
from typing import Any

from faultline.harness.history import EventSink, History
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome

__all__ = ["SharedHistory"]


class SharedHistory(History):
    """A `History` whose recording methods exclude each other, so that indexes and lines come in one order."""

    def __init__(self, sink: EventSink | None = None) -> None:
        super().__init__(sink)
        self._recording = threading.Lock()

    def invoke(self, operation: Operation, time_us: int, worker: int, node: str) -> int:
        """Record an invocation; returns its row."""
        with self._recording:
            return super().invoke(operation, time_us, worker, node)

    def complete(self, row: int, outcome: Outcome, time_us: int) -> None:
        """Record how the operation in `row` ended."""
        with self._recording:
            super().complete(row, outcome, time_us)

    def fault(self, f: str, value: dict[str, Any], time_us: int) -> None:
        """Record a nemesis event."""
        with self._recording:
            super().fault(f, value, time_us)
