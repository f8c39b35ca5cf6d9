"""Timers that run by a node's own monotonic clock.

All timers of a node stand in one heap by the time of the *node's* clock, and the event loop is asked to wake up for the
first of them only. So a clock that begins to drift takes the timers that are already set with it: the next wake-up
is worked out anew. Timers that are due together fire in the order of their deadlines, then in the order they were set.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable

from faultline.harness.world.local.clock import SkewedClock

__all__ = ["ClockTimers"]

Callback = Callable[[], None]


class _Timer:
    __slots__ = ("callback",)

    def __init__(self, callback: Callback) -> None:
        self.callback: Callback | None = callback

    def cancel(self) -> None:
        self.callback = None


class ClockTimers:
    """The timers port over an event loop. `close` cancels everything."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: SkewedClock) -> None:
        self._loop = loop
        self._clock = clock
        self._heap: list[tuple[int, int, _Timer]] = []
        self._set_so_far = 0
        self._wake: asyncio.TimerHandle | None = None
        self._wake_us = 0
        self._closed = False

    def after(self, delay_us: int, callback: Callback) -> _Timer:
        """Call `callback` once, `delay_us` of the node's clock from now."""
        timer = _Timer(callback)
        self._push(delay_us, timer)
        return timer

    def every(self, interval_us: int, callback: Callback) -> _Timer:
        """Call `callback` again and again, `interval_us` after the end of each call."""

        def again() -> None:
            callback()
            if timer.callback is not None:
                self._push(interval_us, timer)

        timer = _Timer(again)
        self._push(interval_us, timer)
        return timer

    def clock_changed(self) -> None:
        """Work out anew when to wake up, after the clock was set."""
        self._arm(force=True)

    def close(self) -> None:
        """Cancel all timers; none can be set any more."""
        self._closed = True
        self._heap.clear()
        if self._wake is not None:
            self._wake.cancel()

    def _push(self, delay_us: int, timer: _Timer) -> None:
        if self._closed:
            return
        self._set_so_far += 1
        heapq.heappush(self._heap, (self._clock.monotonic_us() + max(delay_us, 0), self._set_so_far, timer))
        self._arm()

    def _arm(self, force: bool = False) -> None:
        heap = self._heap
        while heap and heap[0][2].callback is None:
            heapq.heappop(heap)
        if not heap:
            return
        first_us = heap[0][0]
        if self._wake is not None:
            if self._wake_us <= first_us and not force:
                return
            self._wake.cancel()
        self._wake_us = first_us
        delay_us = self._clock.machine_delay_us(max(first_us - self._clock.monotonic_us(), 0))
        self._wake = self._loop.call_later(delay_us / 1_000_000, self._fire)

    def _fire(self) -> None:
        self._wake = None
        heap, now_us, newest = self._heap, self._clock.monotonic_us(), self._set_so_far
        # A timer set while others fire waits for the next round, so that a zero delay cannot starve the sockets.
        later = []
        while heap and heap[0][0] <= now_us:
            entry = heapq.heappop(heap)
            if entry[1] > newest:
                later.append(entry)
            elif (callback := entry[2].callback) is not None:
                callback()
        for entry in later:
            heapq.heappush(heap, entry)
        self._arm()
