"""Virtual time: a heap of events, run in order of time and, at one instant, in the order they were scheduled."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

__all__ = ["Scheduler"]

_Event = tuple[int, int, Callable[..., Any], tuple[Any, ...]]


class Scheduler:
    """The clock and agenda of one simulated world. Times are integers in microseconds of true (virtual) time."""

    __slots__ = ("_heap", "_sequence", "events", "now_us")

    def __init__(self) -> None:
        self.now_us = 0
        self.events = 0
        self._heap: list[_Event] = []
        self._sequence = 0

    def at(self, time_us: int, action: Callable[..., Any], *arguments: Any) -> None:
        """Call `action(*arguments)` at `time_us`; a time already past means now, after everything due now."""
        self._sequence += 1
        heapq.heappush(self._heap, (max(time_us, self.now_us), self._sequence, action, arguments))

    def run(self, until_us: int, is_finished: Callable[[], bool]) -> None:
        """Run events up to and including `until_us`, or until `is_finished()` holds after one of them."""
        heap, pop, count = self._heap, heapq.heappop, 0
        while heap and heap[0][0] <= until_us:
            self.now_us, _, action, arguments = pop(heap)
            action(*arguments)
            count += 1
            if is_finished():
                break
        self.events += count
