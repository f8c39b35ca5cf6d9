"""The clock of the whole host, stepped for real: only on hosts that have nothing else to do, and only when asked.

The time that would be right is told by the monotonic clock, which no step moves: what both clocks showed before the
first step says how far apart they belong. So the clock can be put right to within what a few system calls take, without
asking a server. A time service of the host that runs meanwhile works against the step; switch it off.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from faultline.harness.world.hosts.agent.clock_code import Setting, Skew
from faultline.harness.world.hosts.agent.clock_patch import ClockView, PatchError

__all__ = ["RealClock"]


class RealClock:
    """The clock of this host. `get_ns` and `set_ns` read and set the wall clock, `monotonic_ns` the other one."""

    def __init__(
        self,
        get_ns: Callable[[], int] = lambda: time.clock_gettime_ns(time.CLOCK_REALTIME),
        set_ns: Callable[[int], object] = lambda ns: time.clock_settime_ns(time.CLOCK_REALTIME, ns),
        monotonic_ns: Callable[[], int] = lambda: time.clock_gettime_ns(time.CLOCK_MONOTONIC),
    ) -> None:
        self._get_ns = get_ns
        self._set_ns = set_ns
        self._monotonic_ns = monotonic_ns
        self._apart_ns: int | None = None
        """The wall clock minus the monotonic one, as it was before the first step."""
        self.in_use = False

    def step(self, wall_ns: int, monotonic_ns: int = 0) -> None:
        """Step the wall clock of the host. Raises PatchError."""
        if monotonic_ns:
            raise PatchError("a real monotonic clock cannot be stepped")
        self._set_off(self._off_ns() + wall_ns)

    def drift(self, rate_ppm: int) -> None:
        """Refuse, unless there is to be no drift."""
        if rate_ppm:
            raise PatchError("the real clock is only stepped, it does not drift")

    def reset(self) -> None:
        """Put the clock right. Does nothing when it was never stepped."""
        if self.in_use:
            self._set_off(0)

    def adopt(self) -> None:
        """Every process sees the host's clock anyway."""

    def view(self) -> ClockView:
        """Return how far the clock is off."""
        return ClockView(self._off_ns(), 0, Setting(Skew(self._off_ns())))

    def _off_ns(self) -> int:
        if self._apart_ns is None:
            self._apart_ns = self._get_ns() - self._monotonic_ns()
        return self._get_ns() - self._monotonic_ns() - self._apart_ns

    def _set_off(self, off_ns: int) -> None:
        assert self._apart_ns is not None or off_ns == 0
        self.in_use = True
        try:
            self._set_ns(self._monotonic_ns() + (self._apart_ns or 0) + off_ns)
        except OSError as error:
            raise PatchError(f"the host's clock cannot be set: {error.strerror}") from error
