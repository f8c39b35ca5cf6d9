"""Low-water mark: the entry up to which the log is no longer needed, and the cleaner that removes the part below.

*Problem.* A write-ahead log keeps every update. Segments make it possible to remove old entries by removing files, but
the choice of files must be right.

*Idea.* A mark decides which of the closed segments, from the oldest on, can be deleted. A cleaner asks it at an
interval in the background and deletes those files. A snapshot-based mark (`SnapshotMark`): entries that were applied to
a snapshot on disk need not be replayed. A time-based mark (`TimeMark`), only for logs from which no state is rebuilt:
entries older than a window, seven weeks as in Kafka, are no longer wanted. An acknowledgement-based mark
(`AcknowledgedMark`): entries that all nodes have stored need not be sent again. A log that serves several purposes
keeps the entries that any of them needs (`LowestMark`).

*Invariants.* LWM-I1 the snapshot and the retained log together give the full state. LWM-I2 the retained log is
contiguous and begins no later than right after the snapshot: segments are deleted from the oldest on, up to the first
that must stay, even if later ones could go. LWM-I3 the mark never moves back and never passes the applied index. LWM-I4
disk use is bounded: each run of the cleaner schedules the next one, even when it failed.

*Tolerates.* A crash between any two deletions: the remaining segments are contiguous, and the next run goes on. A file
that cannot be deleted: it stays, with all after it, and the next run tries again. Entries with timestamps out of order,
clocks that step: a segment is deleted only when all before it are.

*Does not tolerate.* A wall clock far ahead, with a time-based mark: the cleaner believes it, and removes every closed
segment (never the open one). A node that is away for good, with an acknowledgement-based mark: the log grows until it
is back.

*Workloads.* `register` in the campaign `compaction`.

*Checkers.* The invariants above; linearizability.

*Planted bugs.* `clean-by-first-entry` (LWM-M3) and `clean-once` (LWM-M7). As subclasses in the tests: deleting the open
segment (LWM-M4) and removing a segment from the middle (LWM-M8).

Deviations from the printed code: there the cleaner is scheduled once, the segments it marks need not follow each other,
and a snapshot is labelled with the last index of the log, which can be ahead of the entries applied to it. As printed,
a segment is deleted when it ends *strictly* below the snapshot's index, so that the entry at that index stays known.

Sources: Patterns of Distributed Systems ch. 5 (and ch. 3 for the third mark); log cleaning in ZooKeeper, etcd, Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Protocol

import msgspec

from faultline.harness.world.ports import Timers
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import ClosedSegment, WriteAheadLog

__all__ = [
    "SEVEN_WEEKS_US",
    "AcknowledgedMark",
    "LogCleaned",
    "LogCleaner",
    "LowWaterMark",
    "LowestMark",
    "SnapshotMark",
    "StoredByAll",
    "TimeMark",
]

SEVEN_WEEKS_US = 7 * 7 * 24 * 3600 * 1_000_000
"""The window of the text's example of a time-based mark."""

Segments = Sequence[ClosedSegment]


class LogCleaned(msgspec.Struct, frozen=True):
    """Trace: a run of the cleaner. The log now begins after `compacted_index` and ends at `last_index`.

    `deleted` is the number of segments that were deleted; `failure` is the error that stopped the run, or empty.
    `closed` holds the first and last entries of the closed segments that are left. The next run is due after
    `interval_us`.
    """

    deleted: int
    compacted_index: int
    last_index: int
    closed: tuple[tuple[int, int], ...]
    interval_us: int
    failure: str = ""


class StoredByAll(msgspec.Struct, frozen=True, tag="stored-by-all"):
    """The message of a leader that every server has stored the log up to `index`."""

    index: int


class LowWaterMark(Protocol):
    """A rule that decides which part of a log is no longer needed."""

    def deletable(self, closed: Segments) -> int:
        """Return how many of the closed segments, counted from the oldest, can be deleted."""


class SnapshotMark:
    """The mark of whole segments below the index of a durable snapshot (`getSegmentsBefore`)."""

    def __init__(self, snapshot_index: Callable[[], int]) -> None:
        self._snapshot_index = snapshot_index

    def deletable(self, closed: Segments) -> int:
        """Count the segments whose last entry is below the snapshot's."""
        index = self._snapshot_index()
        return _count_while(closed, lambda segment: self.is_below(segment, index))

    def is_below(self, segment: ClosedSegment, index: int) -> bool:
        """Return whether every entry of `segment` is below `index`."""
        return segment.last_index < index


class TimeMark:
    """The mark of segments whose newest entry is older than a window (`getSegmentsPast`), by the wall clock."""

    def __init__(self, wall_us: Callable[[], int], window_us: int = SEVEN_WEEKS_US) -> None:
        self._wall_us = wall_us
        self._window_us = window_us

    def deletable(self, closed: Segments) -> int:
        """Count the segments past the window, up to the first that is not."""
        now_us = self._wall_us()
        return _count_while(closed, lambda segment: now_us - segment.last_time_us > self._window_us)


class AcknowledgedMark:
    """The mark of segments below the index up to which all nodes have stored the log."""

    def __init__(self, acknowledged_index: Callable[[], int]) -> None:
        self._acknowledged_index = acknowledged_index

    def deletable(self, closed: Segments) -> int:
        """Count the segments that all nodes have.

        Strictly below, as requests name the entry before the next one sent.
        """
        index = self._acknowledged_index()
        return _count_while(closed, lambda segment: segment.last_index < index)


class LowestMark:
    """The lowest of several marks: a segment is deleted when none of them needs it."""

    def __init__(self, *marks: LowWaterMark) -> None:
        self._marks = marks

    def deletable(self, closed: Segments) -> int:
        """Count the segments that every mark gives up."""
        return min(mark.deletable(closed) for mark in self._marks)


def _count_while(closed: Segments, wanted: Callable[[ClosedSegment], bool]) -> int:
    return sum(1 for _ in takewhile(wanted, closed))


class LogCleaner:
    """The cleaner, which asks a mark at fixed intervals and deletes the segments below it.

    `enter` puts a run into the node's singular update queue, so that cleaning and appending exclude each other.
    """

    def __init__(
        self,
        timers: Timers,
        interval_us: int,
        log: WriteAheadLog,
        mark: LowWaterMark,
        report: Callable[[LogCleaned], None],
        enter: Callable[[Callable[[], None]], None] = lambda run: run(),
    ) -> None:
        self._timers = timers
        self._interval_us = interval_us
        self._log = log
        self._mark = mark
        self._report = report
        self._enter = enter

    def startup(self) -> None:
        """Clean for the first time after one interval, and from then on again and again."""
        self._schedule()

    def clean_logs(self) -> None:
        """Clean once; a disk that refuses a deletion is reported and not raised, as the log is whole and only too
        long.
        """
        log = self._log
        before = log.closed_segments()
        failure = ""
        try:
            log.discard_segments(self._mark.deletable(before))
        except OSError as error:
            failure = str(error)
        left = tuple((segment.first_index, segment.last_index) for segment in log.closed_segments())
        deleted = len(before) - len(left)
        self._report(LogCleaned(deleted, log.compacted_index, log.last_index, left, self._interval_us, failure))

    def run_and_reschedule(self) -> None:
        """Clean, and schedule the next run in any case."""
        try:
            self.clean_logs()
        finally:
            self.reschedule()

    def reschedule(self) -> None:
        """Schedule the next run, which the printed code forgets."""
        self._schedule()

    def _schedule(self) -> None:
        self._timers.after(self._interval_us, lambda: self._enter(self.run_and_reschedule))
