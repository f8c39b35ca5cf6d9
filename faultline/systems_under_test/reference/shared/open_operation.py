"""The operation a client has under way: until when it goes on, what happens next if nobody answers, and how it ends.

A client of the harness performs one operation at a time, asks as many nodes as it takes, and ends it exactly once: with
an answer, or when its own time is over. What it asks, whom, and what silence means to it is the client's own.
"""

from __future__ import annotations

from collections.abc import Callable

from faultline.harness.outcome import Outcome
from faultline.harness.world.ports import Clock, Ports, Timer, Timers

__all__ = ["TIMEOUT", "UNSUPPORTED", "OpenOperation"]

UNSUPPORTED = "unsupported-operation"
"""The error of an operation that the system does not have; nothing was sent."""

TIMEOUT = "timeout"
"""The error of an operation that nobody answered in time; whether a change takes effect is unknown."""


class OpenOperation:
    """At most one operation; used again for the next."""

    __slots__ = ("_clock", "_deadline_us", "_done", "_timer", "_timers")

    def __init__(self, ports: Ports) -> None:
        self._clock: Clock = ports.clock
        self._timers: Timers = ports.timers
        self._done: Callable[[Outcome], None] | None = None
        self._deadline_us = 0
        self._timer: Timer | None = None

    def __bool__(self) -> bool:
        """Is one under way?"""
        return self._done is not None

    def begin(self, done: Callable[[Outcome], None], timeout_us: int) -> None:
        """A new operation, which is over in `timeout_us`; `done` hears how it ended."""
        self._done = done
        self._deadline_us = self._clock.monotonic_us() + timeout_us

    @property
    def is_overdue(self) -> bool:
        """Is its time over?"""
        return self._clock.monotonic_us() >= self._deadline_us

    def expect(self, delay_us: int, otherwise: Callable[[], None]) -> None:
        """Call `otherwise` after `delay_us`, at the latest when the time is over, unless something else comes first."""
        self._disarm()
        left_us = max(0, self._deadline_us - self._clock.monotonic_us())
        self._timer = self._timers.after(min(delay_us, left_us), otherwise)

    def end(self, outcome: Outcome) -> None:
        """It ended so; later ends are ignored."""
        self._disarm()
        done, self._done = self._done, None
        if done is not None:
            done(outcome)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
