"""Virtual time: a heap of events, run in order of time and, at one instant, in the order they were scheduled."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

__all__ = ["InterceptingScheduler", "ScheduledEvent", "Scheduler"]

_AHEAD = 1 << 62
"""The lead of events that happen at once: more than there are events in a run."""

ScheduledEvent = tuple[int, int, Callable[..., Any], tuple[Any, ...]]


class Scheduler:
    """The clock and agenda of one simulated world. Times are integers in microseconds of true (virtual) time.

    `heap` and `sequence` are open to links, which push two thirds of all events and save a call each.
    """

    __slots__ = ("_stopped", "events", "heap", "now_us", "sequence")

    def __init__(self) -> None:
        self.now_us = 0
        self.events = 0
        self.heap: list[ScheduledEvent] = []
        self.sequence = 0
        self._stopped = False

    def at(self, time_us: int, action: Callable[..., Any], *arguments: Any) -> None:
        """Call `action(*arguments)` at `time_us`; a time already past means now, after everything due now."""
        self.sequence = sequence = self.sequence + 1
        now_us = self.now_us
        heappush(self.heap, (time_us if time_us > now_us else now_us, sequence, action, arguments))

    def at_once(self, action: Callable[..., Any], *arguments: Any) -> None:
        """Call `action(*arguments)` when the event under way has ended, before everything else that is due now."""
        self.sequence = sequence = self.sequence + 1
        heappush(self.heap, (self.now_us, sequence - _AHEAD, action, arguments))

    def stop(self) -> None:
        """End `run` after the event that is under way."""
        self._stopped = True

    def run(self, until_us: int) -> None:
        """Run events up to and including `until_us`, or until one of them calls `stop`."""
        heap, count = self.heap, 0
        self._stopped = False
        while heap and not self._stopped and heap[0][0] <= until_us:
            self.now_us, _, action, arguments = heappop(heap)
            action(*arguments)
            count += 1
        self.events += count


class InterceptingScheduler(Scheduler):
    """A scheduler that shows each event to `intercept(event)` first, and leaves out those for which it returns True.

    The number of an event is the same in two runs of a plan up to the first event that one of them leaves out, so a
    number names "the same event" in the other run. The interceptor may act in the event's place, and may schedule.
    """

    __slots__ = ("_intercept",)

    def __init__(self, intercept: Callable[[ScheduledEvent], bool]) -> None:
        super().__init__()
        self._intercept = intercept

    def run(self, until_us: int) -> None:
        heap, count = self.heap, 0
        self._stopped = False
        while heap and not self._stopped and heap[0][0] <= until_us:
            event = heappop(heap)
            self.now_us = event[0]
            if not self._intercept(event):
                event[2](*event[3])
            count += 1
        self.events += count
