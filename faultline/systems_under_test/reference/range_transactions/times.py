"""The times of a `range-transactions` node, from a clock that knows its largest error; and the wait for a commit.

    wait=commit    a commit gets the largest vote, or the latest that the time may be; then the coordinator waits until
                   that is past for certain. The participants are prepared meanwhile: their locks are held, and reads
                   at or above their votes wait (CBW-R25). Only then the decision is written down and told.
    wait=restart   a commit gets the largest vote, at once. A reader that meets a version up to `max_offset` above its
                   time reads anew at that version, all of its keys (CBW-R14).

With `wait=commit` a reader at the latest time of its node needs no wait of its own. Each value that it can see belongs
to a commit that is past, so a later reader, whose time is at least the true one, sees it as well (Spanner reads so,
while `timestamped-kv` lets readers wait as the book does).

Sources: Patterns of Distributed Systems ch. 24; Corbett et al., "Spanner" (OSDI 2012) §4.1.2 and §4.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faultline.harness.world.ports import Ports
from faultline.systems_under_test.patterns.distributed_time.clock_bound_wait import BoundedClock
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import HybridClock, HybridTimestamp
from faultline.systems_under_test.patterns.promise import Promise
from faultline.systems_under_test.reference.range_transactions.options import RangeTransactionSettings

__all__ = ["BoundedTimes"]

_RESERVED_US = 100_000


class BoundedTimes:
    """The times of one node: implements `Stamps`, `CommitTimes` and `RequestTimes`. `later` sets a timer."""

    def __init__(
        self, ports: Ports, settings: RangeTransactionSettings, later: Callable[[int, Callable[[], None]], Any]
    ) -> None:
        self._ports = ports
        self._settings = settings
        self._later = later
        self._bounded = BoundedClock(ports.clock.wall_us, settings.error_bound_us)
        self._stamps = HybridClock(ports.clock.wall_us)

    @property
    def earliest_us(self) -> int:
        """The earliest that the true time may be."""
        return self._bounded.now().earliest_us

    def tick(self) -> HybridTimestamp:
        """Return a time above all that were seen here, for a vote."""
        return self._stamps.now()

    def update_to(self, time: HybridTimestamp) -> None:
        """Vote for no time at or below `time` any more."""
        self._stamps.update_to(time)

    def ceiling(self, time: HybridTimestamp) -> HybridTimestamp:
        """Return a time a tenth of a second ahead; `time` itself where readers rely on stamps that no clock exceeds."""
        # After a restart votes lie above the ceiling. Commit wait waits for that too; a reader that reads again looks
        # no further ahead than clocks differ.
        return HybridTimestamp(time.wall_us + _RESERVED_US, 0) if self._settings.waits_at_commit else time

    def accepts(self, time: HybridTimestamp) -> bool:
        """Return whether `time` is within the permitted jump of the latest that the time may be, or that was seen."""
        ahead_of_us = max(self._bounded.now().latest_us, self._stamps.latest_time.wall_us)
        return time.wall_us - ahead_of_us <= self._settings.forward_jump_us

    def start_time(self, seen: HybridTimestamp) -> Promise[HybridTimestamp]:
        """Return the latest that the time may be, or the clock's time if readers read again; at least `seen`."""
        promise: Promise[HybridTimestamp] = Promise()
        promise.complete(max(HybridTimestamp(self._now_us(), 0), seen))
        return promise

    def _now_us(self) -> int:
        return self._bounded.now().latest_us if self._settings.waits_at_commit else self._ports.clock.wall_us()

    def commit_time(self, voted: HybridTimestamp) -> Promise[HybridTimestamp]:
        """Return the time of a commit with this largest vote, once it may be told."""
        promise: Promise[HybridTimestamp] = Promise()
        time = self._time_of_commit(voted)
        self.update_to(time)
        self._when_it_may_be_told(time, lambda: promise.complete(time))
        return promise

    def _time_of_commit(self, voted: HybridTimestamp) -> HybridTimestamp:
        """Return a time that no vote exceeds, and with commit wait not before the true time."""
        if not self._settings.waits_at_commit:
            return voted
        # A reader elsewhere may have been answered at any time up to the true one.
        return max(voted, HybridTimestamp(self._bounded.now().latest_us, 0))

    def _when_it_may_be_told(self, time: HybridTimestamp, then: Callable[[], None]) -> None:
        if self._settings.waits_at_commit:
            self._ports.trace.sometimes("commit-waited")
            self.when_past(time, then)
        else:
            then()

    def when_past(self, time: HybridTimestamp, then: Callable[[], None]) -> None:
        """Call `then` once `time` is past for certain; ask the clock again as long as it is not, as it may go back."""
        if self._bounded.now().before(time.wall_us):
            then()
        else:
            self._later(time.wall_us - self.earliest_us + 1, lambda: self.when_past(time, then))
