"""The clocks of a real node: the machine's own, seen through a skew that faults may set.

The clock of the machine that runs the tests must not be changed, so the skew is put where the node looks: into its
clock port. A `ClockSetting` is plain data, and the skew it means is a pure function of the machine's monotonic time,
which all processes of one machine share. The setting alone therefore tells the skew, and a node that is restarted under
the setting goes on with the clock it had – as the clock of a real machine would.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

__all__ = ["ClockSetting", "SkewedClock", "machine_monotonic_us", "machine_wall_us"]


def machine_monotonic_us() -> int:
    """Return microseconds on the machine's monotonic clock, the same for all its processes."""
    return time.monotonic_ns() // 1000


def machine_wall_us() -> int:
    """Return microseconds since the epoch as the machine believes, which is called true time here."""
    return time.time_ns() // 1000


class ClockSetting(msgspec.Struct, frozen=True):
    """A wall clock that is `offset_us` off at machine time `since_us` and runs fast by `rate_ppm` from then on."""

    offset_us: int = 0
    rate_ppm: int = 0
    since_us: int = 0

    def skew_us(self, now_us: int) -> int:
        """Return how far the wall clock is off at machine time `now_us`."""
        return self.offset_us + (now_us - self.since_us) * self.rate_ppm // 1_000_000

    def stepped(self, delta_us: int) -> ClockSetting:
        """Return the same clock, moved by `delta_us`."""
        return ClockSetting(self.offset_us + delta_us, self.rate_ppm, self.since_us)

    def drifting(self, rate_ppm: int, now_us: int) -> ClockSetting:
        """Return the same clock, which from `now_us` on runs fast by `rate_ppm`."""
        return ClockSetting(self.skew_us(now_us), rate_ppm, now_us)


class SkewedClock:
    """A node's clock port. The wall clock follows the setting; the monotonic clock follows its rate only."""

    def __init__(
        self,
        setting: ClockSetting,
        monotonic_us: Callable[[], int] = machine_monotonic_us,
        wall_us: Callable[[], int] = machine_wall_us,
    ) -> None:
        self.setting = setting
        self._machine_monotonic_us = monotonic_us
        self._machine_wall_us = wall_us
        self._anchor_machine_us = self._anchor_us = monotonic_us()

    def monotonic_us(self) -> int:
        """Return microseconds since an arbitrary origin; its rate drifts with the setting, it never goes back."""
        return self.at_machine_us(self._machine_monotonic_us())

    def at_machine_us(self, machine_us: int) -> int:
        """Return the monotonic clock's reading at machine time `machine_us`, if the setting stays."""
        elapsed_us = machine_us - self._anchor_machine_us
        return self._anchor_us + elapsed_us + elapsed_us * self.setting.rate_ppm // 1_000_000

    def machine_delay_us(self, delay_us: int) -> int:
        """Return how long `delay_us` of this clock lasts on the machine's, rounded up."""
        rate = 1_000_000 + self.setting.rate_ppm
        return -(-delay_us * 1_000_000 // rate)

    def wall_us(self) -> int:
        """Return microseconds since the epoch, as this node believes."""
        return self._machine_wall_us() + self.setting.skew_us(self._machine_monotonic_us())

    def true_us(self) -> int:
        """Return the true time, for the harness's probes and never for the node."""
        return self._machine_wall_us()

    def set(self, setting: ClockSetting) -> None:
        """Follow `setting` from now on; the monotonic clock goes on from where it is."""
        machine_us = self._machine_monotonic_us()
        self._anchor_us = self.at_machine_us(machine_us)
        self._anchor_machine_us = machine_us
        self.setting = setting
