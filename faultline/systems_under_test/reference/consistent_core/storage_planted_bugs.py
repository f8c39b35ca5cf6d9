"""The planted bugs of `consistent-core` that concern its log files, snapshots and low-water mark, and its update queue.

Bugs of the files that would break every run from its first restart on (a segment sorted by name, a checksum that is
not looked at) are planted in the tests instead, in `tests/planted_bugs/test_storage_bugs.py`: no campaign is needed to
see them, and none could say more. Most bugs of the queue need threads, or callers that wait, which a node of the
harness has not; they are planted in `tests/planted_bugs/test_update_queue_bugs.py`.
"""

from __future__ import annotations

from typing import Any

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.data_replication.idempotent_receiver import ClientSessions
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import ServerRole
from faultline.systems_under_test.patterns.data_replication.low_water_mark import LogCleaner, SnapshotMark
from faultline.systems_under_test.patterns.data_replication.replicated_log import ReplicatedLog
from faultline.systems_under_test.patterns.data_replication.segmented_log import Segment, SegmentedLog
from faultline.systems_under_test.patterns.data_replication.snapshot_store import Snapshot
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import DATA, NO_OP, ClosedSegment, LogEntry
from faultline.systems_under_test.reference.consistent_core.parts import CoreParts
from faultline.systems_under_test.reference.raft.key_value_server import KeyValueServer
from faultline.systems_under_test.reference.shared.client_messages import ClientRequest, ClientResponse, SetValue
from faultline.systems_under_test.reference.shared.compaction import Compaction
from faultline.systems_under_test.reference.shared.planted_bugs import PlantedBugs

__all__ = ["BUGS"]

_LATE_US = 200_000

BUGS = PlantedBugs("consistent-core", CoreParts, pattern="low-water-mark", campaign="compaction")


@BUGS.plant(
    "snapshot-index-of-last-appended", "LWM-M1", part="compaction", caught_by=("LWM-I3", "LWM-I1", "linearizability")
)
class _SnapshotIndexOfLastAppended(Compaction):
    """A snapshot carries the index of the last entry in the log, not that of the last one applied to it.

    Shows as: after a restart, entries that were not yet applied are skipped: acknowledged writes are gone.
    """

    def snapshot_index(self) -> int:
        return self._wal.last_index


@BUGS.plant(
    "clean-before-snapshot-is-durable",
    "LWM-M2",
    part="compaction",
    caught_by=("node-crash", "WAL-I1", "linearizability"),
)
class _CleanBeforeSnapshotIsDurable(Compaction):
    """The mark moves when a snapshot is taken; it is written 200 ms later.

    Shows as: a server that dies in between has neither the beginning of the log nor a snapshot of it.
    """

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


@BUGS.plant("clean-by-first-entry", "LWM-M3", part="compaction", caught_by=("LWM-I2", "node-crash"))
class _CleanByFirstEntry(Compaction):
    """A segment goes when its first entry is below the mark, though its last one is not.

    Shows as: entries after the snapshot are deleted; a restart finds a gap.
    """

    snapshot_mark = _BelowByFirstEntry


@BUGS.plant(
    "roll-without-flush",
    "SEG-M4",
    part="segmented_log",
    pattern="segmented-log",
    caught_by=("node-crash", "linearizability", "WAL-I1", "LWM-I2", "LOG-I2", "LDR-I3"),
)
class _RollWithoutFlush(SegmentedLog):
    """A new segment is begun before the old one is flushed, and later flushes reach the new one only.

    Shows as: after a crash the end of a closed segment is missing: a gap, or acknowledged writes gone.
    """

    def _roll(self) -> Segment:
        self._dirty = False
        return super()._roll()


@BUGS.plant(
    "segment-name-not-synced",
    "SEG-M8",
    part="segmented_log",
    pattern="segmented-log",
    campaign="page-cache",
    caught_by=("list-append", "WAL-I1", "LOG-I2", "LDR-I3", "HWM-I2"),
    worlds=("simulated",),
    why_not="only the simulated world has disks that keep a file and lose its name",
)
class _SegmentNameNotSynced(SegmentedLog):
    """A new segment is synced, and the folder that holds its name is not.

    Shows as: after a loss of power the file is gone with all its acknowledged entries.
    """

    def _sync_names(self) -> None:
        pass


@BUGS.plant("replay-includes-snapshot-index", "LWM-M6", part="compaction", caught_by=("WAL-I3", "node-crash"))
class _ReplayIncludesSnapshotIndex(Compaction):
    """Replay begins with the entry of the snapshot's index, not with the one after it.

    Shows as: an entry is applied twice, or cannot be applied because it was discarded.
    """

    def applied_in(self, snapshot: Snapshot) -> int:
        return snapshot.index - 1


class _OneShotCleaner(LogCleaner):
    def reschedule(self) -> None:
        pass


@BUGS.plant("clean-once", "LWM-M7", part="compaction", caught_by=("LWM-I4",))
class _CleanOnce(Compaction):
    """The log is cleaned once after the start, and never again.

    Shows as: the disk fills up.
    """

    cleaner = _OneShotCleaner


@BUGS.plant("snapshot-without-answers", "LWM-M9", part="sessions", caught_by=("IDR-I1", "linearizability"))
class _SnapshotWithoutAnswers(ClientSessions[ClientResponse]):
    """A snapshot holds the clients' sessions, but not the answers they were given.

    Shows as: a retry that comes after a restart or an installation is executed again.
    """

    def content(self) -> dict[int, tuple[int, dict[int, ClientResponse]]]:
        return {client_id: (0, {}) for client_id in super().content()}


@BUGS.plant(
    "apply-by-own-clock",
    "WAL-M8",
    part="replicated_log",
    pattern="write-ahead-log",
    caught_by=("LOG-I2", "LOG-I1", "LWM-I1", "LWM-I5", "linearizability"),
)
class _ApplyByOwnClock(ReplicatedLog):
    """A server ignores commands that are older than 200 ms, by its own clock, when it applies them.

    Shows as: servers that catch up or restart end with another state than the others.
    """

    def _apply_up_to(self, index: int) -> None:
        while self.last_applied < index:
            self.last_applied += 1
            self._listener.apply(self._unless_expired(self._log.entry(self.last_applied)))

    def _unless_expired(self, entry: LogEntry) -> LogEntry:
        expired = entry.kind == DATA and self._ports.clock.wall_us() - entry.time_us > _LATE_US
        return LogEntry(entry.index, entry.generation, NO_OP, b"") if expired else entry


@BUGS.plant(
    "answered-when-queued",
    "SUQ-M3",
    part="node",
    pattern="singular-update-queue",
    campaign="leadership",
    caught_by=("linearizability",),
)
class _AnswersWhenQueued(KeyValueServer):
    """A leader acknowledges a write when it has taken it into its queue, before anything was done.

    Shows as: an acknowledged write is not there yet, or never comes because the leader lost its office.
    """

    def receive(self, source: NodeId, message: Any) -> None:
        is_write = type(message) is ClientRequest and type(message.command) is SetValue
        if is_write and self.election.role is ServerRole.LEADING:
            self.ports.network.send(source, ClientResponse(message.request_number))
        super().receive(source, message)
