"""The operation a client has under way: its deadline, the next step if no node answers, and its end.

A client of the harness performs one operation at a time, asks as many nodes as it takes, and ends it exactly once: with
an answer, or when its own time is over. The client decides which node it asks, and the meaning of silence.
"""

from __future__ import annotations

from collections.abc import Callable

from faultline.harness.outcome import Outcome
from faultline.harness.world.ports import Clock, Ports, Timer, Timers

__all__ = ["TIMEOUT", "OpenOperation"]

TIMEOUT = "timeout"
"""The error of an operation without an answer in time; a change may or may not take effect."""


class OpenOperation:
    """At most one operation at a time; the object is used again for the next."""

    __slots__ = ("_clock", "_deadline_us", "_done", "_timer", "_timers")

    def __init__(self, ports: Ports) -> None:
        self._clock: Clock = ports.clock
        self._timers: Timers = ports.timers
        self._done: Callable[[Outcome], None] | None = None
        self._deadline_us = 0
        self._timer: Timer | None = None

    def __bool__(self) -> bool:
        """Return whether an operation is under way."""
        return self._done is not None

    def begin(self, done: Callable[[Outcome], None], timeout_us: int) -> None:
        """Begin an operation, which is over in `timeout_us`; call `done` with its outcome."""
        self._done = done
        self._deadline_us = self._clock.monotonic_us() + timeout_us

    @property
    def is_overdue(self) -> bool:
        """True once the time of the operation is over."""
        return self._clock.monotonic_us() >= self._deadline_us

    def expect(self, delay_us: int, otherwise: Callable[[], None]) -> None:
        """Call `otherwise` after `delay_us`, or when the time is over, unless the next `expect` or `end` is first."""
        self._disarm()
        left_us = max(0, self._deadline_us - self._clock.monotonic_us())
        self._timer = self._timers.after(min(delay_us, left_us), otherwise)

    def end(self, outcome: Outcome) -> None:
        """End the operation with `outcome`; later ends are ignored."""
        self._disarm()
        done, self._done = self._done, None
        if done is not None:
            done(outcome)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
