"""A node's clocks in virtual time: offset, drift and steps, in whole microseconds.

Both clocks run at the node's own rate; only the wall clock has an offset and can be stepped. The rate is applied
piecewise: a change of drift fixes the reading at that instant and goes on from there, so neither clock ever jumps.
"""

from __future__ import annotations

from faultline.harness.world.simulated.scheduler import Scheduler

__all__ = ["WALL_EPOCH_US", "SimulatedClock"]

WALL_EPOCH_US = 1_700_000_000_000_000
"""The time that a perfect wall clock shows at virtual time zero."""

_MILLION = 1_000_000


class SimulatedClock:
    """The `Clock` port of one node, with the handles by which faults move it."""

    __slots__ = ("_at_us", "_base_ppm", "_local_us", "_offset_us", "_ppm", "_scheduler")

    def __init__(self, scheduler: Scheduler, base_ppm: int = 0) -> None:
        self._scheduler = scheduler
        self._base_ppm = base_ppm
        self._ppm = base_ppm
        self._at_us = scheduler.now_us
        self._local_us = scheduler.now_us
        self._offset_us = 0

    def monotonic_us(self) -> int:
        elapsed_us = self._scheduler.now_us - self._at_us
        # The drift alone is multiplied: a product with the whole rate would be a long integer, several times as slow.
        return self._local_us + elapsed_us + elapsed_us * self._ppm // _MILLION

    def wall_us(self) -> int:
        return WALL_EPOCH_US + self.monotonic_us() + self._offset_us

    def true_delay_us(self, local_delay_us: int) -> int:
        """Return how long `local_delay_us` on this clock takes in true time, rounded up, at the present rate."""
        return -(-local_delay_us * _MILLION // (_MILLION + self._ppm))

    def step(self, delta_us: int) -> None:
        """Move the wall clock."""
        self._offset_us += delta_us

    def drift(self, rate_ppm: int) -> None:
        """Run fast by `rate_ppm` on top of the node's natural drift."""
        self._local_us = self.monotonic_us()
        self._at_us = self._scheduler.now_us
        self._ppm = self._base_ppm + rate_ppm

    def reset(self) -> None:
        """End the drift and show true time on the wall clock again."""
        self.drift(0)
        self._offset_us = self._scheduler.now_us - self.monotonic_us()

    def offset_us(self) -> int:
        """Return the wall clock minus true time."""
        return self.wall_us() - WALL_EPOCH_US - self._scheduler.now_us

    def rate_ppm(self) -> int:
        """Return the drift in force beyond the natural one."""
        return self._ppm - self._base_ppm
