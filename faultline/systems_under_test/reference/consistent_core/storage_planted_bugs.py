"""The planted bugs of `consistent-core` that concern its log files, snapshots and low-water mark.

Bugs of these patterns that would break every run from its first restart on (a segment sorted by name, a checksum that
is not looked at) are planted in the tests instead, in `tests/planted_bugs/test_storage_bugs.py`: no campaign is needed to
see them, and none could say more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faultline.harness.system import PlantedBug
from faultline.systems_under_test.patterns.data_replication.idempotent_receiver import ClientSessions
from faultline.systems_under_test.patterns.data_replication.low_water_mark import LogCleaner, SnapshotMark
from faultline.systems_under_test.patterns.data_replication.replicated_log import ReplicatedLog
from faultline.systems_under_test.patterns.data_replication.segmented_log import Segment, SegmentedLog
from faultline.systems_under_test.patterns.data_replication.snapshot_store import Snapshot
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import DATA, NO_OP, ClosedSegment, LogEntry
from faultline.systems_under_test.reference.shared.client_messages import ClientResponse
from faultline.systems_under_test.reference.shared.compaction import Compaction
from faultline.systems_under_test.reference.shared.planted_bugs import layered

__all__ = ["STORAGE_BUGS", "STORAGE_CHANGES"]

_LATE_US = 200_000

STORAGE_BUGS = (
    PlantedBug(
        name="snapshot-index-of-last-appended",
        pattern="low-water-mark",
        id="LWM-M1",
        summary="a snapshot carries the index of the last entry in the log, not that of the last one applied to it",
        shows_as="after a restart, entries that were not yet applied are skipped: acknowledged writes are gone",
        campaign="compaction",
        caught_by=("LWM-I3", "LWM-I1", "linearizability"),
    ),
    PlantedBug(
        name="clean-before-snapshot-is-durable",
        pattern="low-water-mark",
        id="LWM-M2",
        summary="the mark moves when a snapshot is taken; it is written 200 ms later",
        shows_as="a server that dies in between has neither the beginning of the log nor a snapshot of it",
        campaign="compaction",
        caught_by=("node-crash", "WAL-I1", "linearizability"),
    ),
    PlantedBug(
        name="clean-by-first-entry",
        pattern="low-water-mark",
        id="LWM-M3",
        summary="a segment goes when its first entry is below the mark, though its last one is not",
        shows_as="entries after the snapshot are deleted; a restart finds a gap",
        campaign="compaction",
        caught_by=("LWM-I2", "node-crash"),
    ),
    PlantedBug(
        name="roll-without-flush",
        pattern="segmented-log",
        id="SEG-M4",
        summary="a new segment is begun before the old one is flushed, and later flushes reach the new one only",
        shows_as="after a crash the end of a closed segment is missing: a gap, or acknowledged writes gone",
        campaign="compaction",
        caught_by=("node-crash", "linearizability", "WAL-I1", "LWM-I2", "LOG-I2", "LDR-I3"),
    ),
    PlantedBug(
        name="replay-includes-snapshot-index",
        pattern="low-water-mark",
        id="LWM-M6",
        summary="replay begins with the entry of the snapshot's index, not with the one after it",
        shows_as="an entry is applied twice, or cannot be applied because it was discarded",
        campaign="compaction",
        caught_by=("WAL-I3", "node-crash"),
    ),
    PlantedBug(
        name="clean-once",
        pattern="low-water-mark",
        id="LWM-M7",
        summary="the log is cleaned once after the start, and never again",
        shows_as="the disk fills up",
        campaign="compaction",
        caught_by=("LWM-I4",),
    ),
    PlantedBug(
        name="snapshot-without-answers",
        pattern="low-water-mark",
        id="LWM-M9",
        summary="a snapshot holds the clients' sessions, but not the answers they were given",
        shows_as="a retry that comes after a restart or an installation is executed again",
        campaign="compaction",
        caught_by=("IDR-I1", "linearizability"),
    ),
    PlantedBug(
        name="apply-by-own-clock",
        pattern="write-ahead-log",
        id="WAL-M8",
        summary="a server ignores commands that are older than 200 ms, by its own clock, when it applies them",
        shows_as="servers that catch up or restart end with another state than the others",
        campaign="compaction",
        caught_by=("LOG-I2", "LOG-I1", "LWM-I1", "LWM-I5", "linearizability"),
    ),
)
"""The records of these bugs."""


class _RollWithoutFlush(SegmentedLog):
    def _roll(self) -> Segment:
        self._dirty = False
        return super()._roll()


class _SnapshotIndexOfLastAppended(Compaction):
    def snapshot_index(self) -> int:
        return self._wal.last_index


class _CleanBeforeSnapshotIsDurable(Compaction):
    _promised_index = 0

    def publish(self, snapshot: Snapshot) -> None:
        if self._promised_index < snapshot.index:
            self._promised_index = snapshot.index
            self._ports.timers.after(_LATE_US, lambda: self._enter(lambda: self._publish_late(snapshot)))

    def _publish_late(self, snapshot: Snapshot) -> None:
        newest = self._snapshots.newest
        if newest is None or newest.index < snapshot.index:
            super().publish(snapshot)

    def covered_index(self) -> int:
        return self._promised_index


class _BelowByFirstEntry(SnapshotMark):
    def is_below(self, segment: ClosedSegment, index: int) -> bool:
        return segment.first_index < index


class _CleanByFirstEntry(Compaction):
    snapshot_mark = _BelowByFirstEntry


class _ReplayIncludesSnapshotIndex(Compaction):
    def applied_in(self, snapshot: Snapshot) -> int:
        return snapshot.index - 1


class _OneShotCleaner(LogCleaner):
    def reschedule(self) -> None:
        pass


class _CleanOnce(Compaction):
    cleaner = _OneShotCleaner


class _SnapshotWithoutAnswers(ClientSessions[ClientResponse]):
    def content(self) -> dict[int, tuple[int, dict[int, ClientResponse]]]:
        return {client_id: (0, {}) for client_id in super().content()}


class _ApplyByOwnClock(ReplicatedLog):
    def _apply_up_to(self, index: int) -> None:
        while self.last_applied < index:
            self.last_applied += 1
            self._listener.apply(self._unless_expired(self._log.entry(self.last_applied)))

    def _unless_expired(self, entry: LogEntry) -> LogEntry:
        expired = entry.kind == DATA and self._ports.clock.wall_us() - entry.time_us > _LATE_US
        return LogEntry(entry.index, entry.generation, NO_OP, b"") if expired else entry


STORAGE_CHANGES: dict[str, Callable[[Any], Any]] = {
    "roll-without-flush": layered("segmented_log", _RollWithoutFlush),
    "snapshot-index-of-last-appended": layered("compaction", _SnapshotIndexOfLastAppended),
    "clean-before-snapshot-is-durable": layered("compaction", _CleanBeforeSnapshotIsDurable),
    "clean-by-first-entry": layered("compaction", _CleanByFirstEntry),
    "replay-includes-snapshot-index": layered("compaction", _ReplayIncludesSnapshotIndex),
    "clean-once": layered("compaction", _CleanOnce),
    "snapshot-without-answers": layered("sessions", _SnapshotWithoutAnswers),
    "apply-by-own-clock": layered("replicated_log", _ApplyByOwnClock),
}
"""The change that plants each of them."""
