"""Closed Timestamp: read at a time in the past from any replica that knows that time to be closed.

*Problem.* A replica must not answer a read *at* time t while it may still learn of a write at t or before. And writes
take their timestamps from clocks, not from the log.

*Idea.* The leader gives every write a timestamp above all that it has given and above all that it has *closed*. Now and
then it closes a time: it will never again write at or below that time. The closing travels through the log like a
write. So a replica that has applied the closing has applied every write up to that time. A later leader finds the
closing in its own log and stays above it too. When t is closed for a follower, it answers a read at t out of its
versioned values, without asking.

    write at 10 ── write at 20 ── 25 is closed ── write at 26 ──►  the log
                                  └─ a replica that has applied this answers reads at 25 and below

A write gets its timestamp when it is appended, so none is on its way below the present, and the leader closes the
present. CockroachDB, whose writes have their timestamps before they reach the log, stays some seconds behind.

*Invariants.* Timestamps grow along the log. After C was closed no write gets a timestamp of C or less. A read at a
closed time has one answer, on every replica and for ever.

*Tolerates.* Changes of leader. Replicas without contact to any leader. Clocks that step back: timestamps then go on
above the last.

*Does not tolerate.* A clock far ahead: timestamps cannot go back, so all later timestamps are ahead, too.

*Workloads.* `follower-reads` and the other workloads of sessions, with `follower_reads=closed`.

*Checkers.* `follower-reads`, the invariants FR-R22 and VVL-I1 to VVL-I4.

*Planted bugs.* `timestamps-of-the-clock-alone`, `closed-when-received`, `read-before-it-is-closed`.

Sources: Patterns of Distributed Systems ch. 16, "Examples"; Taft et al., "CockroachDB" (SIGMOD 2020) section 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from faultline.systems_under_test.patterns.data_replication.versioned_value import VersionedStore

__all__ = ["ClosedTime", "ClosedTimestampLeader", "ClosedTimestampReplica", "NotClosed", "TimeClosed", "TimedCommand"]


class TimedCommand(msgspec.Struct, frozen=True, tag="timed-command"):
    """Log entry: what `command` writes, it writes at `timestamp`."""

    timestamp: int
    command: bytes


class ClosedTime(msgspec.Struct, frozen=True, tag="closed-time"):
    """Log entry: no more writes at `timestamp` or before."""

    timestamp: int


class TimeClosed(msgspec.Struct, frozen=True):
    """Trace: this replica applied the closing of `timestamp`, which is the entry at `index`."""

    index: int
    timestamp: int


class NotClosed(LookupError):
    """The requested time is not closed here yet: ask another replica, or the leader."""


class ClosedTimestampLeader:
    """The leader's side, which gives out timestamps.

    A new leader starts from the highest one in its log, closed or not: that of `applied` entries, or of those in `log`.
    """

    def __init__(self, log: Iterable[TimedCommand | ClosedTime], applied: int = 0) -> None:
        self._last = max((entry.timestamp for entry in log), default=0)
        self._last = max(self._last, applied)

    def write(self, now: int, command: bytes) -> TimedCommand:
        """Return the entry of a write at `now`, or just above the last timestamp if the clock is behind it."""
        self._last = self._write_timestamp(now)
        return TimedCommand(self._last, command)

    def close(self, now: int) -> ClosedTime:
        """Return the entry that closes `now`, and at least all earlier writes."""
        self._last = max(now, self._last)
        return ClosedTime(self._last)

    # A method of its own, so that a planted bug can override it.

    def _write_timestamp(self, now: int) -> int:
        return max(now, self._last + 1)


class ClosedTimestampReplica:
    """A replica's side: it knows what is closed, and answers reads at closed times out of `values`."""

    def __init__(self, values: VersionedStore[int]) -> None:
        self.closed = 0
        self.values = values

    def close(self, timestamp: int) -> None:
        """Apply a closing, after every entry before it."""
        self.closed = max(self.closed, timestamp)

    def read_at(self, key: str, timestamp: int) -> Any:
        """Return the final value of `key` at `timestamp`, None if it had none. Raise `NotClosed`."""
        if not self._is_closed(timestamp):
            raise NotClosed(f"{timestamp} is not closed yet, {self.closed} is")
        seen = self.values.get(key, timestamp)
        return None if seen is None else seen.value

    # A method of its own, so that a planted bug can override it.

    def _is_closed(self, timestamp: int) -> bool:
        return timestamp <= self.closed
