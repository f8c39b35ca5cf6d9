"""Closed Timestamp: read at a time in the past from any replica that knows that time to be closed.

*Problem.* A replica must not answer a read *at* time t while it may still learn of a write at t or before. And writes
take their timestamps from clocks, not from the log.

*Idea.* The leader gives every write a timestamp above all it has given and above all it has *closed*. Now and then it
closes a time: it will never again write at or below it. The closing travels through the log like a write. So a replica
that has applied it has applied every write up to that time, and a later leader finds it in its own log and stays above
it too. A follower answers a read at t when t is closed for it, out of its versioned values, without asking.

*Invariants.* Timestamps grow along the log. After C was closed no write gets a timestamp of C or less. A read at a
closed time has one answer, on every replica and for ever.

*Tolerates.* Leaders that come and go; clocks that step back: timestamps then go on above the last.

*Does not tolerate.* A clock far ahead: timestamps cannot go back, so all later ones are ahead, too.

*Workloads.* None of its own: a component for stores with versions by time.

*Checkers.* Its tests.

*Planted bugs.* A leader that closes a time and writes below it, as a component.

Sources: Patterns of Distributed Systems ch. 16, "Examples"; Taft et al., "CockroachDB" (SIGMOD 2020) section 4.3.
"""

from __future__ import annotations

from typing import Any

import msgspec

from faultline.systems_under_test.patterns.data_replication.versioned_value import OrderedVersions, VersionedStore

__all__ = ["ClosedTime", "ClosedTimestampLeader", "ClosedTimestampReplica", "NotClosed", "TimedWrite"]


class TimedWrite(msgspec.Struct, frozen=True):
    """Log entry: `key` holds `value` from `timestamp` on."""

    timestamp: int
    key: str
    value: Any


class ClosedTime(msgspec.Struct, frozen=True):
    """Log entry: no more writes at `timestamp` or before."""

    timestamp: int


class NotClosed(LookupError):
    """The requested time is not closed here yet: ask later, or ask the leader."""


class ClosedTimestampLeader:
    """The leader's side, which gives out timestamps.

    A new leader starts from the highest one in its log, closed or not.
    """

    def __init__(self, log: list[TimedWrite | ClosedTime]) -> None:
        self._last = max((entry.timestamp for entry in log), default=0)

    def write(self, now: int, key: str, value: Any) -> TimedWrite:
        """Return the entry of a write at `now`, or just above the last timestamp if the clock is behind it."""
        self._last = self._write_timestamp(now)
        return TimedWrite(self._last, key, value)

    def close(self, now: int, lag: int) -> ClosedTime:
        """Return the entry that closes `now - lag`, and at least all earlier writes."""
        self._last = max(now - lag, self._last)
        return ClosedTime(self._last)

    def _write_timestamp(self, now: int) -> int:
        return max(now, self._last + 1)


class ClosedTimestampReplica:
    """A replica's side, which applies the log in order and answers reads at closed times."""

    def __init__(self) -> None:
        self.closed = 0
        self.values: VersionedStore[int] = OrderedVersions()

    def apply(self, entry: TimedWrite | ClosedTime) -> None:
        """Apply the next committed entry. Raises ValueError for a write below a time that was closed."""
        if isinstance(entry, ClosedTime):
            self.closed = max(self.closed, entry.timestamp)
            return
        if entry.timestamp <= self.closed:
            raise ValueError(f"a write at {entry.timestamp}, though {self.closed} is closed")
        self.values.put(entry.key, entry.timestamp, entry.value)

    def read_at(self, key: str, timestamp: int) -> Any:
        """Return the final value of `key` at `timestamp`, None if it had none. Raises NotClosed."""
        if timestamp > self.closed:
            raise NotClosed(f"{timestamp} is not closed yet, {self.closed} is")
        seen = self.values.get(key, timestamp)
        return None if seen is None else seen.value
