"""Compaction of a replicated log: low-water mark, snapshots and their installation.

After every so many applied entries the server takes a snapshot of its store, sessions included, under the index of the
last entry *applied*; the cleaner removes log files that the retained snapshots make superfluous; a follower that needs
removed entries is sent the newest snapshot. This log rebuilds the state, so the time-based and the
acknowledgement-based mark remove only entries that the snapshots cover (LWM-R11): they keep *more*, the former for a
window of time, the latter until every server has stored them.

    applied ── every n entries ──► snapshot ── durable ──► mark ──► cleaner ──► segments deleted
                                      │
    lagging follower ◄── chunks ──────┘

Only the leader knows the entries that all servers have stored. With an acknowledgement-based mark it tells the others
before it cleans; such an index stays true under later leaders, because it was committed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Protocol
from zlib import crc32

import msgspec

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_replication.follower_handler import FollowerHandler
from faultline.systems_under_test.patterns.data_replication.generation_clock import GenerationClock
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import (
    Handlers,
    LeaderElection,
    ServerRole,
)
from faultline.systems_under_test.patterns.data_replication.low_water_mark import (
    AcknowledgedMark,
    LogCleaned,
    LogCleaner,
    LowestMark,
    LowWaterMark,
    SnapshotMark,
    StoredByAll,
    TimeMark,
)
from faultline.systems_under_test.patterns.data_replication.replicated_log import ReplicatedLog
from faultline.systems_under_test.patterns.data_replication.snapshot_installation import (
    InstallSnapshotRequest,
    InstallSnapshotResponse,
    SnapshotReceiver,
    SnapshotSender,
)
from faultline.systems_under_test.patterns.data_replication.snapshot_store import (
    CorruptSnapshot,
    Snapshot,
    SnapshotStore,
    decode_snapshot,
)
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import WriteAheadLog
from faultline.systems_under_test.reference.shared.trace_events import SnapshotTaken, StateRestored

__all__ = ["Compaction", "CompactionSettings", "SnapshottedState"]

_NEVER = sys.maxsize


class CompactionSettings(Protocol):
    """The options of snapshots: when they are taken, how they are sent, and the entries they allow to go."""

    @property
    def snapshots_retained(self) -> int:
        """The number of snapshots kept, with the log from the oldest of them on."""

    @property
    def snapshot_every_entries(self) -> int:
        """Applied entries between two snapshots."""

    @property
    def snapshot_chunk_bytes(self) -> int:
        """The part of a snapshot that is sent at once."""

    @property
    def heartbeat_interval_us(self) -> int:
        """A chunk without an answer is sent again after four of them."""

    @property
    def low_water_mark(self) -> str:
        """`snapshot`, `time`, `acknowledged` or `off`."""

    @property
    def log_cleaning_interval_us(self) -> int:
        """The time between two runs of the cleaner."""

    @property
    def log_retention_us(self) -> int:
        """The age at which entries may go, with the mark `time`."""


class SnapshottedState(Protocol):
    """The state behind the log."""

    def snapshot(self) -> bytes:
        """Return the present state."""

    def restore(self, state: bytes) -> None:
        """Replace the state by that of a snapshot. Raise `msgspec.MsgspecError` for bytes that are none."""


class Compaction:
    """One server's snapshots and cleaner. All methods run on its singular update queue."""

    snapshot_mark: type[SnapshotMark] = SnapshotMark
    cleaner: type[LogCleaner] = LogCleaner
    snapshot_store: type[SnapshotStore] = SnapshotStore

    def __init__(
        self,
        ports: Ports,
        settings: CompactionSettings,
        wal: WriteAheadLog,
        log: ReplicatedLog,
        store: SnapshottedState,
        enter: Callable[[Callable[[], None]], None],
    ) -> None:
        self.due_index = _NEVER
        """The next snapshot is due once this entry is applied."""
        self._ports = ports
        self._settings = settings
        self._wal = wal
        self._log = log
        self._store = store
        self._enter = enter
        self._snapshots = self.snapshot_store(ports.storage, retained=settings.snapshots_retained)
        self._sender = SnapshotSender(
            ports.network, ports.node_id, settings.snapshot_chunk_bytes, 4 * settings.heartbeat_interval_us
        )
        self._receiver = SnapshotReceiver()
        self._stored_by_all = 0
        log.send_snapshot = self._send_snapshot

    def handlers(self, election: LeaderElection, clock: GenerationClock) -> Handlers:
        """Return the handlers of the messages of snapshots and marks; only a leader of this generation installs."""

        def handle_request(source: NodeId, request: InstallSnapshotRequest) -> None:
            if request.generation < clock.generation:
                self.refuse_install(source, request)
            else:
                election.follow(request.generation, source)
                self.handle_install_request(source, request)

        def handle_response(source: NodeId, response: InstallSnapshotResponse) -> None:
            if response.generation > clock.generation:
                election.become_follower(response.generation, None)
            elif response.generation == clock.generation and election.role is ServerRole.LEADING:
                self.handle_install_response(source, response)

        return {
            InstallSnapshotRequest: handle_request,
            InstallSnapshotResponse: handle_response,
            StoredByAll: self.handle_stored_by_all,
        }

    def recover(self) -> None:
        """Restore the newest usable snapshot, and the log after it. Raise `UnusableSnapshot` or `CorruptLog`."""
        snapshot = self._snapshots.recover()
        if snapshot is None:
            self._wal.recover()
        else:
            self._wal.recover(snapshot.index, snapshot.generation)
            self._restore(snapshot)
        self._snapshots.require_reach(self._wal.last_index)

    def start(self) -> None:
        """Begin to take snapshots and to clean, unless that is switched off."""
        if self._snapshots.newest is not None:
            self._report_restored(self._snapshots.newest, installed=False)
        if self._settings.low_water_mark == "off":
            return
        self.set_due()
        interval_us = self._settings.log_cleaning_interval_us
        self.cleaner(self._ports.timers, interval_us, self._wal, self._mark(), self._report, self._enter).startup()

    def stop_leading(self) -> None:
        """Send no more snapshots."""
        self._sender.stop()

    def newest_index(self) -> int:
        """Return the last entry of the newest snapshot; 0 when there is none."""
        newest = self._snapshots.newest
        return newest.index if newest is not None else 0

    def restore_newest(self) -> None:
        """Replace the state, which may never have been committed, by that of the newest snapshot."""
        newest = self._snapshots.newest
        if newest is not None:
            self._store.restore(newest.state)

    def request_snapshot(self) -> None:
        """Take a snapshot after the event that is being handled: once, however many entries it applies."""
        self.due_index = _NEVER
        self._enter(self.take_snapshot)

    def take_snapshot(self) -> None:
        """Store the state as it is now, under the index of the last entry applied to it."""
        index = self.snapshot_index()
        self.publish_taken(Snapshot(index, self._wal.generation_at(index), self._store.snapshot()))

    def publish_taken(self, snapshot: Snapshot) -> None:
        """Make a snapshot of applied entries durable, and report it."""
        self.publish(snapshot)
        self.set_due()
        self._ports.trace.sometimes("snapshot-taken")
        self._ports.trace.emit(
            SnapshotTaken(
                snapshot.index,
                snapshot.generation,
                crc32(snapshot.state),
                self._log.last_applied,
                self.covered_index(),
            )
        )

    def snapshot_index(self) -> int:
        """Return the entry that the state belongs to: the last one applied, perhaps far behind the end of the log."""
        return self._log.last_applied

    def covered_index(self) -> int:
        """Return the last index up to which durable snapshots make the log superfluous."""
        return self._snapshots.low_water_mark

    def publish(self, snapshot: Snapshot) -> None:
        """Make `snapshot` durable; only snapshots retained on disk move the mark."""
        self._snapshots.publish(snapshot)

    def set_due(self) -> None:
        """Set the next snapshot due so many entries after the newest one."""
        newest = self._snapshots.newest
        self.due_index = (newest.index if newest is not None else 0) + self._settings.snapshot_every_entries

    def _mark(self) -> LowWaterMark:
        snapshots = self.snapshot_mark(self.covered_index)
        if self._settings.low_water_mark == "time":
            return LowestMark(snapshots, TimeMark(self._ports.clock.wall_us, self._settings.log_retention_us))
        if self._settings.low_water_mark == "acknowledged":
            return LowestMark(snapshots, AcknowledgedMark(self._acknowledged_by_all))
        return snapshots

    def _acknowledged_by_all(self) -> int:
        followers = self._log.followers
        if followers:
            index = min(follower.match_index for follower in followers.values())
            self.handle_stored_by_all(self._ports.node_id, StoredByAll(min(index, self._log.high_water_mark.value)))
            for follower in followers:
                self._ports.network.send(follower, StoredByAll(self._stored_by_all))
        return self._stored_by_all

    def handle_stored_by_all(self, _: NodeId, message: StoredByAll) -> None:
        """Remember the index that the logs of all servers reach."""
        self._stored_by_all = max(self._stored_by_all, message.index)

    def _report(self, cleaned: LogCleaned) -> None:
        if cleaned.deleted:
            self._ports.trace.sometimes("log-cleaned")
        self._ports.trace.emit(cleaned)

    def _send_snapshot(self, follower: FollowerHandler) -> None:
        snapshot = self._snapshots.newest
        assert snapshot is not None, "entries are discarded only below a snapshot"
        self._sender.send(follower.id, snapshot, self._log.generation, self._ports.clock.monotonic_us())

    def resend_what_was_lost(self) -> None:
        """Send chunks again that were not answered."""
        self._sender.resend_what_was_lost(self._log.generation, self._ports.clock.monotonic_us())

    def handle_install_response(self, source: NodeId, response: InstallSnapshotResponse) -> None:
        """Send the next chunk, or go on with entries (the generation has been compared already)."""
        index = self._sender.handle_response(source, response, self._ports.clock.monotonic_us())
        if index:
            self._log.note_installed(source, index)

    def handle_install_request(self, source: NodeId, request: InstallSnapshotRequest) -> None:
        """Take a chunk of the leader's snapshot, and install it when it is whole (the generation was compared)."""
        index = request.snapshot_index
        if index > self._log.last_applied:
            data = self._receiver.take(request)
            if data is None:
                self._answer(source, index, self._receiver.next_offset)
                return
            try:
                snapshot = decode_snapshot(data, f"the snapshot of {source}")
            except CorruptSnapshot:
                self._ports.trace.sometimes("damaged-snapshot-refused")
                self._answer(source, index, 0)
                return
            self._install(snapshot)
        self._answer(source, index, request.size, installed=True)

    def refuse_install(self, source: NodeId, request: InstallSnapshotRequest) -> None:
        """Tell a deposed leader the generation it missed."""
        self._answer(source, request.snapshot_index, 0)

    def _answer(self, to: NodeId, index: int, next_offset: int, *, installed: bool = False) -> None:
        response = InstallSnapshotResponse(self._ports.node_id, self._log.generation, index, next_offset, installed)
        self._ports.network.send(to, response)

    def _install(self, snapshot: Snapshot) -> None:
        """Put a snapshot of the leader in place of the state, and of a log that does not agree with it."""
        # Snapshot first, log second: a crash in between leaves a log that the snapshot replaces. The other way round it
        # would leave a log that begins after entries no snapshot holds.
        self._snapshots.publish(snapshot)
        if self._wal.generation_at(snapshot.index) != snapshot.generation:
            self._wal.restart_after(snapshot.index, snapshot.generation)
            self._snapshots.drop_before(snapshot.index)
            self._wal.flush()
        self._restore(snapshot)
        self._report_restored(snapshot, installed=True)
        self.set_due()
        self._ports.trace.sometimes("snapshot-installed")

    def _restore(self, snapshot: Snapshot) -> None:
        try:
            self._store.restore(snapshot.state)
        except msgspec.MsgspecError as error:
            raise CorruptSnapshot(f"the snapshot of entry {snapshot.index} holds no state: {error}") from error
        self._log.start_from(self.applied_in(snapshot))

    def _report_restored(self, snapshot: Snapshot, *, installed: bool) -> None:
        self._ports.trace.emit(
            StateRestored(
                snapshot.index,
                snapshot.generation,
                crc32(self._store.snapshot()),
                self._wal.compacted_index,
                self._wal.last_index,
                installed,
            )
        )

    def applied_in(self, snapshot: Snapshot) -> int:
        """Return the last entry that need not be applied any more."""
        return snapshot.index
