"""The clocks of a `timestamped-kv` node behind one interface: the stamps of writes and the times of reads.

A Lamport stamp is written as a hybrid one whose wall part is the counter, so that both have one place in messages and
in the log. A reader under a Lamport clock reads the newest version: a counter is no time to read at.
"""

from __future__ import annotations

from typing import Protocol

from faultline.harness.world.ports import Clock
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import HybridClock, HybridTimestamp
from faultline.systems_under_test.patterns.distributed_time.lamport_clock import LamportClock
from faultline.systems_under_test.reference.timestamped_kv.options import TimestampSettings

__all__ = ["END_OF_TIME", "HybridStamps", "LamportStamps", "Stamps"]

END_OF_TIME = HybridTimestamp(2**62, 0)
"""Later than every stamp: to read here is to read the newest."""


class Stamps(Protocol):
    """The source of the stamps of a node's versions."""

    def tick(self, seen: HybridTimestamp) -> HybridTimestamp:
        """Return the stamp of a write whose client knows of `seen`."""

    def update_to(self, stamp: HybridTimestamp) -> None:
        """Never stamp at or below `stamp` again."""

    def restore(self, stamp: HybridTimestamp) -> None:
        """Take note, after a restart, of a version with `stamp` on the disk."""

    def read_time(self, seen: HybridTimestamp) -> HybridTimestamp:
        """Return the time at which a client that knows of `seen` reads the latest version here."""


class HybridStamps:
    """Stamps of a hybrid clock."""

    def __init__(self, clock: Clock, settings: TimestampSettings) -> None:
        self._wall_us = clock.wall_us
        self._clock = HybridClock(clock.wall_us, settings.forward_jump_us)

    def tick(self, seen: HybridTimestamp) -> HybridTimestamp:
        return self._clock.tick(seen)

    def update_to(self, stamp: HybridTimestamp) -> None:
        self._clock.update_to(stamp)

    def restore(self, stamp: HybridTimestamp) -> None:
        self.update_to(stamp)

    def read_time(self, seen: HybridTimestamp) -> HybridTimestamp:
        """Return the physical time, or `seen` if it is later: a read is no event, so it takes no tick."""
        return max(HybridTimestamp(self._wall_us(), 0), seen)


class LamportStamps:
    """Stamps of a Lamport clock."""

    def __init__(self, _: Clock, __: TimestampSettings) -> None:
        self._clock = LamportClock()

    def tick(self, seen: HybridTimestamp) -> HybridTimestamp:
        return HybridTimestamp(self._clock.tick(seen.wall_us), 0)

    def update_to(self, stamp: HybridTimestamp) -> None:
        self._clock.update_to(stamp.wall_us)

    def restore(self, stamp: HybridTimestamp) -> None:
        self.update_to(stamp)

    def read_time(self, _: HybridTimestamp) -> HybridTimestamp:
        return END_OF_TIME
