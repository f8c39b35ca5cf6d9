"""Clock-bound wait: wait out the largest error of clocks, and the order of stamps is the order of real time.

*Problem.* A write ends on a server whose clock is fast. A friend of the writer hears of it, reads through a server
whose clock is slow, as of *its* time, and gets the old value: the new one lies in that server's future.

*Idea.* Assume that clocks are wrong by a bounded amount, and let the writer or the reader wait as long as that.

    write wait    stamp ts = now; show the value only once the own clock has passed ts + max_offset: every clock has
                  passed ts by then, so no reader's time lies before it
    read restart  writers do not wait; a reader at r that meets a version in (r, r + max_offset] cannot tell whether it
                  came before, and reads again at that version; the upper limit stays that of the first try, else a
                  busy key would send it on forever
    commit wait   clocks give intervals [earliest, latest] that hold the true time; stamp ts = latest, announce it as
                  pending, show the value once ts < earliest; a reader at r waits until r < earliest and until no
                  pending write is at or before r, and the state that it then sees never changes

*Invariants.* CBW-I1 a write that begins after another was acknowledged, anywhere, gets the larger stamp. CBW-I2 reads
are linearizable. CBW-I3 no version is ever stored at or below a time that was read (commit wait). CBW-I4 a version is
shown only when its stamp has passed on the own clock by the bound.

*Tolerates.* Any clock faults within the bound, and steps back while waiting: the clock is read again, not slept on.

*Does not tolerate.* Clocks beyond the bound. It is an assumption, and where it breaks, the anomaly is back.

*Workloads.* `read-write` on `timestamped-kv` with `wait=write|restart|commit`.

*Checkers.* Linearizability; invariants CBW-I1, CBW-I3.

*Planted bugs.* `no-write-wait`, `answer-before-wait`, `store-before-wait`, `stamp-earliest`, `no-pending-check`,
`no-read-wait`, `window-too-small`, `sleep-instead-of-clock`.

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
    """The stamps that have been given to writes of a node that are not shown yet, key by key."""

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
