"""Hybrid clock: timestamps that respect causes as a Lamport clock's do, and stay close to wall time.

*Problem.* Lamport timestamps order causes, but a client cannot use them to ask for "the state of 12:45". Wall clocks
have such times, but they stand still, go back, and differ between servers, so a later write can get the earlier time.

*Idea.* A timestamp is a wall time and a count of ticks. While the wall clock is ahead of all timestamps seen, a new one
is (wall time, 0). When it is not, because it was set back, or because the request comes from a server whose clock is
ahead, the largest timestamp seen is kept and a tick is added. So timestamps always increase, and their wall part is a
time that some clock of the cluster has really shown.

    Jupiter 19:30                 Neptune 19:25
       │ write Boston → (19:30, 0)
       │── client carries (19:30, 0) ──▶│ write London → (19:30, 1)

*Invariants.* HYC-I1 the timestamps of a node increase strictly, also across restarts. HYC-I2 an event that happened
before another has the smaller timestamp. HYC-I3 the wall part is at least the issuer's own wall time. HYC-I4 the wall
part is at most the largest wall time that any clock of the cluster has shown.

*Tolerates.* Clocks that stand still, step back or differ. Restarts: a node goes on above every timestamp it has stored.

*Does not tolerate.* A clock far ahead: it drags along every clock that hears of it, and ticks count until time catches
up. With `forward_jump_us_max` a node refuses such requests instead (`ClockTooFarAhead`). The order is still partial:
the errors of the clocks order the writes of unrelated clients; clock-bound wait solves that.

*Workloads.* `causal-pairs` and `causal-writes` on `timestamped-kv` (`clock=hybrid`, the default) under clock faults.

*Checkers.* `causal-pairs`, `dependent-writes`; invariants HYC-I1, HYC-I3, LMC-I3.

*Planted bugs.* `wall-time-stamps`, `ignore-request-stamp`, `clock-not-restored`; of replicated stores
`stamped-when-replayed`.

Sources: Patterns of Distributed Systems ch. 23; Kulkarni, Demirbas, Madappa, Avva and Leone, "Logical Physical Clocks"
(OPODIS 2014). CockroachDB, YugabyteDB and MongoDB keep such clocks.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import msgspec

__all__ = ["BEFORE_ALL", "ClockTooFarAhead", "HybridClock", "HybridTimestamp", "as_of_system_time"]

TICKS_MAX = 2**31 - 1


class ClockTooFarAhead(ValueError):
    """A request's timestamp is further ahead of this node's wall clock than the clocks of the cluster may differ."""


class HybridTimestamp(msgspec.Struct, frozen=True, order=True, array_like=True):
    """A wall time in microseconds since the epoch, then ticks: compared in this order."""

    wall_us: int
    ticks: int

    @classmethod
    def from_system_time(cls, wall_us: int) -> HybridTimestamp:
        """Return a wall time for use in a maximum: with -1 ticks, so that adding a tick gives (time, 0)."""
        return cls(wall_us, -1)

    def add_ticks(self, count: int) -> HybridTimestamp:
        """Return the timestamp that is `count` ticks later."""
        return HybridTimestamp(self.wall_us, self.ticks + count)


BEFORE_ALL = HybridTimestamp(0, 0)
"""The timestamp of a request that knows of no event."""


class HybridClock:
    """One node's clock; `wall_us` reads the wall clock, which may stand still or jump."""

    __slots__ = ("_forward_jump_us_max", "_wall_us", "latest_time")

    def __init__(self, wall_us: Callable[[], int], forward_jump_us_max: int | None = None) -> None:
        self._wall_us = wall_us
        self._forward_jump_us_max = forward_jump_us_max
        self.latest_time = HybridTimestamp(wall_us(), 0)

    def now(self) -> HybridTimestamp:
        """Return the timestamp of a local event of this node."""
        wall_us = self._wall_us()
        if self.latest_time.wall_us >= wall_us:
            self.latest_time = self.latest_time.add_ticks(1)
        else:
            self.latest_time = HybridTimestamp(wall_us, 0)
        return self.latest_time

    def tick(self, request_time: HybridTimestamp) -> HybridTimestamp:
        """Return the timestamp of a new event that knows of `request_time`: larger than that and than all earlier ones
        here.

        Raises ClockTooFarAhead, and changes nothing, when `request_time` is beyond the permitted jump.
        """
        wall_us = self._wall_us()
        # Before the clock takes the timestamp over: a clock that has jumped can never go back.
        self._refuse_a_jump(request_time, wall_us)
        system_time = HybridTimestamp.from_system_time(wall_us)
        self.latest_time = max(system_time, request_time, self.latest_time).add_ticks(1)
        return self.latest_time

    def update_to(self, time: HybridTimestamp) -> None:
        """Take over a timestamp that was seen, or read back from the disk at a restart."""
        # A maximum, never an assignment: timestamps that were given must stay below all later ones.
        self.latest_time = max(self.latest_time, time)

    def _refuse_a_jump(self, request_time: HybridTimestamp, wall_us: int) -> None:
        if self._forward_jump_us_max is None:
            return
        ahead_us = request_time.wall_us - wall_us
        if ahead_us > self._forward_jump_us_max:
            raise ClockTooFarAhead(
                f"the request's clock is {ahead_us} us ahead; {self._forward_jump_us_max} us are permitted"
            )


def as_of_system_time(text: str) -> HybridTimestamp:
    """Return the timestamp up to which `AS OF SYSTEM TIME '2016-10-03 12:45:00'` reads, the time taken as UTC.

    All timestamps within that millisecond count (the printed code stops at tick 0 and would leave out writes of the
    same instant). Raises ValueError for a text that is not a date and time.
    """
    moment = datetime.fromisoformat(text)
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    milliseconds = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    return HybridTimestamp(1_000 * milliseconds + 999, TICKS_MAX)
