"""Clock-bound wait: wait out the maximum error of clocks, so that timestamps follow the order of real time.

*Problem.* A write ends on a server whose clock is fast. A friend of the writer hears of it and reads through a server
whose clock is slow, at the time of *that* clock. The friend gets the old value, because the new value lies in the
future of that server.

*Idea.* Assume that the error of every clock is bounded, and let the writer or the reader wait for that long.

    write wait    The timestamp ts is now. The value becomes visible only after the server's own clock has passed
                  ts + max_offset. Every clock has passed ts by then, so no reader's time lies before it.
    read restart  Writers do not wait. A reader at r that meets a version in (r, r + max_offset] cannot tell whether
                  that version came before, and reads again at it. The upper limit stays that of the first try, or a
                  busy key would make the reader restart for ever.
    commit wait   Clocks give intervals [earliest, latest] that contain the true time. The timestamp ts is latest. It
                  is announced as pending, and the value becomes visible once ts < earliest. A reader at r waits until
                  r < earliest and until no pending write is at or before r. The state that it then sees never changes.

*Invariants.* CBW-I1 a write that begins after another was acknowledged, at any node, gets the larger timestamp. CBW-I2
reads are linearizable. CBW-I3 no version is stored at or below a time that was read (commit wait). CBW-I4 a version
becomes visible only after the server's own clock has passed its timestamp by the bound.

*Tolerates.* All clock faults within the bound. A clock that is set back during a wait prolongs the wait, because the
server reads its clock again instead of sleeping for a fixed time.

*Does not tolerate.* Clocks beyond the bound. The bound is an assumption; where it breaks, the anomaly is back.

*Workloads.* `read-write` on `timestamped-kv` with `wait=write|restart|commit`.

*Checkers.* Linearizability; invariants CBW-I1, CBW-I3.

*Planted bugs.* `no-write-wait`, `answer-before-wait`, `store-before-wait`, `stamp-earliest`, `no-pending-check`,
`no-read-wait`, `window-too-small`; of transactions on ranges `no-commit-wait`, `locks-released-before-the-wait`,
`restart-of-one-key`.

Sources: Patterns of Distributed Systems ch. 24; Corbett et al., "Spanner: Google's Globally-Distributed Database" (OSDI
2012) §3 and §4.2 (TrueTime, commit wait); CockroachDB's and YugabyteDB's uncertainty intervals are read restarts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import HybridTimestamp

__all__ = ["BoundedClock", "ClockBound", "PendingWrites", "uncertain_version"]


class ClockBound(msgspec.Struct, frozen=True, array_like=True):
    """An interval of wall times, in microseconds, that holds the true time."""

    earliest_us: int
    latest_us: int

    def before(self, wall_us: int) -> bool:
        """Return whether `wall_us` is certainly in the past: strictly, as a clock that shows it just now has not
        passed it.
        """
        return wall_us < self.earliest_us

    def after(self, wall_us: int) -> bool:
        """Return whether `wall_us` is certainly in the future."""
        return wall_us > self.latest_us


class BoundedClock:
    """A wall clock that knows its largest error, `error_us` either way."""

    __slots__ = ("_wall_us", "error_us")

    def __init__(self, wall_us: Callable[[], int], error_us: int) -> None:
        self._wall_us = wall_us
        self.error_us = error_us

    def now(self) -> ClockBound:
        """Return the interval that holds the true time, as far as this node can tell."""
        wall_us = self._wall_us()
        return ClockBound(wall_us - self.error_us, wall_us + self.error_us)


class PendingWrites:
    """The timestamps of a node's writes that are not visible yet, by key."""

    def __init__(self) -> None:
        self._stamps: dict[str, list[HybridTimestamp]] = {}

    def add(self, key: str, stamp: HybridTimestamp) -> None:
        """Add the stamp of a write, in the same step that chose it, so that no reader falls in between."""
        self._stamps.setdefault(key, []).append(stamp)

    def remove(self, key: str, stamp: HybridTimestamp) -> None:
        """Remove the stamp of a write that is shown, or given up."""
        self._stamps[key].remove(stamp)

    def at_or_before(self, key: str, read_time: HybridTimestamp) -> bool:
        """Return whether a write of `key` may still be shown at or below `read_time`."""
        return any(stamp <= read_time for stamp in self._stamps.get(key, ()))


def uncertain_version(
    versions: Sequence[HybridTimestamp], read_time: HybridTimestamp, limit_us: int
) -> HybridTimestamp | None:
    """Return the newest of a key's `versions` of which a reader at `read_time` cannot tell whether it came before.

    It is above `read_time` with a wall time of at most `limit_us` (the reader's first time and the largest offset).
    """
    # A version above the reader may have been written before the read began, by a clock that is ahead. Beyond the
    # largest error it cannot have been.
    uncertain = [version for version in versions if read_time < version and version.wall_us <= limit_us]
    return max(uncertain, default=None)
