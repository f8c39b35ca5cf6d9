"""One member of a group of `transactional-kv`: Raft beneath, a node that knows nothing of it on top.

    requests ──▶ node of the group (coordinator, participant) ── records ──▶ replicated log ──▶ members
             ◀── outbox: what the records up to there allow ◀── high-water mark ──┘

Every member has the node in memory, and keeps it up to date by replaying committed entries: it *stands by*. A member
that was elected appends a no-op. Once that is applied, every earlier committed entry is replayed too, and the node
begins to serve: it takes up the prepared transactions with their locks, rolls back those without a decision and sends
the decisions of the others, by the same code as after a restart. While it serves, its memory is ahead of the log, as a
node's is ahead of its disk. A deposed leader therefore throws it away and builds a new one from its snapshot and log.

Snapshots are the node's records (`records`). A member that stands by takes them for the last entry applied. A leader
takes them for the last entry *written*, at once, and publishes them when that entry is committed.

Sources: Patterns of Distributed Systems ch. 21, "Using Replicated Log"; multi-raft as in TiKV and CockroachDB.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_replication.generation_clock import GenerationClock
from faultline.systems_under_test.patterns.data_replication.heartbeat import (
    HeartBeatScheduler,
    PauseAwareFailureDetector,
    TimeoutBasedFailureDetector,
)
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import (
    ElectionContext,
    ElectionTiming,
    ServerRole,
)
from faultline.systems_under_test.patterns.data_replication.raft_election import RaftElection
from faultline.systems_under_test.patterns.data_replication.replicated_log import (
    ReplicatedLog,
    ReplicationRequest,
    ReplicationResponse,
    ReplicationTiming,
)
from faultline.systems_under_test.patterns.data_replication.snapshot_store import Snapshot
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import DATA, NO_OP, LogEntry, WriteAheadLog
from faultline.systems_under_test.reference.shared.compaction import Compaction
from faultline.systems_under_test.reference.shared.handler_table import HandlerTable
from faultline.systems_under_test.reference.shared.trace_events import EntryApplied, NodeStarted
from faultline.systems_under_test.reference.transactional_kv.group_messages import TookOver
from faultline.systems_under_test.reference.transactional_kv.group_ports import LeadershipPorts, Outbox, ReplicaPorts
from faultline.systems_under_test.reference.transactional_kv.groups import GroupRoutes
from faultline.systems_under_test.reference.transactional_kv.node import Parts, TransactionalKvNode
from faultline.systems_under_test.reference.transactional_kv.options import TransactionSettings
from faultline.systems_under_test.reference.transactional_kv.records import RECORDS, Record

__all__ = ["GroupParts", "GroupReplica", "LeaderCompaction", "ReplicatedRecords"]

_BATCH_ENTRIES_MAX = 64
_BATCH_SIZE_BYTES = 65536
_IN_FLIGHT_MAX = 5
_STEP_DOWN_AFTER_ELECTION_TIMEOUTS = 2

Enter = Callable[[Callable[[], None]], None]


class ReplicatedRecords:
    """The group's log as the node on top writes to it: implements `RecordLog`."""

    def __init__(self, log: ReplicatedLog, wal: WriteAheadLog) -> None:
        self._log = log
        self._wal = wal
        self._unsent: list[bytes] = []

    def append(self, record: Record) -> None:
        self._unsent.append(RECORDS.encode(record))

    def flush(self) -> None:
        """Send the records to all members, as one batch."""
        batch, self._unsent = self._unsent, []
        if batch:
            self._log.append_batch_and_replicate(DATA, batch)

    def written_index(self) -> int:
        """Return the index of the last record."""
        return self._wal.last_index + len(self._unsent)


class LeaderCompaction(Compaction):
    """Snapshots of a state that may be ahead of what is committed: published once the log has come that far."""

    written_index: Callable[[], int]
    _taken: Snapshot | None = None

    def snapshot_index(self) -> int:
        """Return the index of the entry that the state belongs to."""
        return self.written_index()

    def take_snapshot(self) -> None:
        """Take a snapshot now, and publish it when its last entry is committed."""
        # An uncommitted entry may be overwritten by the next leader, and with it the state: such a snapshot must not be
        # used by a restart, and the log below it must stay.
        index = self.snapshot_index()
        if index <= self._log.last_applied:
            super().take_snapshot()
        else:
            self._taken = Snapshot(index, self._wal.generation_at(index), self._store.snapshot())

    def note_applied(self, index: int) -> None:
        """Publish the snapshot that was taken if entries up to `index` allow it, or take the next."""
        taken = self._taken
        if taken is not None and index >= taken.index:
            self._taken = None
            self.publish_taken(taken)
        elif index >= self.due_index:
            self.request_snapshot()

    def stop_leading(self) -> None:
        """Drop a snapshot whose entries were not committed: they may never be."""
        super().stop_leading()
        if self._taken is not None:
            self._taken = None
            self.set_due()


class GroupReplica:
    """The member of `group` on one node: implements `LogListener` and `ElectionListener`.

    `route` sends for the group, to a group or a client; `enter` is the node's queue.
    """

    def __init__(
        self,
        ports: Ports,
        group: NodeId,
        members: tuple[NodeId, ...],
        groups: tuple[NodeId, ...],
        settings: TransactionSettings,
        parts: GroupParts,
        route: Callable[[NodeId, NodeId, Any], None],
        enter: Enter,
    ) -> None:
        self.group = group
        self.node: TransactionalKvNode
        self.leadership: LeadershipPorts
        self.is_serving = False
        self._node_ports = ports
        self._groups = groups
        self._settings = settings
        self._parts = parts
        self._route = route
        self._enter = enter
        self.ports = ReplicaPorts(ports, group)
        self._wal = WriteAheadLog(self.ports.storage, segment_size_bytes_max=settings.segment_size_bytes)
        self._clock = GenerationClock(self.ports.storage)
        self.election = self._new_election(members)
        self.log = ReplicatedLog(self.ports, members, self._wal, self._clock, self, self._timing())
        self._records = ReplicatedRecords(self.log, self._wal)
        self.compaction = LeaderCompaction(self.ports, settings, self._wal, self.log, self, enter)
        self.compaction.written_index = self._state_index
        self._heartbeats = HeartBeatScheduler(
            ports.timers, settings.heartbeat_interval_us, lambda: enter(self._heartbeat)
        )
        self._leading_since_us = 0
        self._handlers = HandlerTable(
            {
                ReplicationRequest: self._handle_replication_request,
                ReplicationResponse: self._handle_replication_response,
                **self.compaction.handlers(self.election, self._clock),
                **self.election.handlers(),
            }
        )
        self._stand_by()

    def _new_election(self, members: tuple[NodeId, ...]) -> RaftElection:
        settings = self._settings
        timeout_us = settings.election_timeout_us
        clock = self.ports.clock
        context = ElectionContext(
            self.ports,
            members,
            self._wal,
            self._clock,
            self,
            lambda: self._enter(self.election.election_timeout),
            ElectionTiming(
                timeout_us=timeout_us,
                interval_us=settings.heartbeat_interval_us,
                vote_stickiness=True,
                silence_us_min=timeout_us,
            ),
            PauseAwareFailureDetector(TimeoutBasedFailureDetector(clock, timeout_us), clock, timeout_us),
        )
        return RaftElection(context, pre_vote=True)

    def _timing(self) -> ReplicationTiming:
        settings = self._settings
        return ReplicationTiming(
            batch_entries_max=_BATCH_ENTRIES_MAX,
            batch_size_bytes=_BATCH_SIZE_BYTES,
            in_flight_max=_IN_FLIGHT_MAX,
            retransmit_us=2 * settings.heartbeat_interval_us,
            silent_us=settings.election_timeout_us,
            quiet_us=settings.heartbeat_interval_us // 2,
        )

    def start(self) -> None:
        """Recover log, generation and vote; then wait for a leader."""
        self.compaction.recover()
        self._clock.recover(generation_min=self._wal.last_generation)
        self.ports.trace.emit(NodeStarted(self._clock.generation, self._wal.last_index))
        self.compaction.start()
        self.election.start()

    def receive(self, source: NodeId, message: Any) -> None:
        """Take a message of another member."""
        self._handlers[type(message)](source, message)

    @property
    def leads(self) -> bool:
        """True if this member believes that it leads."""
        return self.election.role is ServerRole.LEADING

    def _stand_by(self) -> None:
        """Make a node with empty memory, to be filled from snapshot and log."""
        self.leadership = LeadershipPorts(
            self._node_ports,
            self.group,
            self,
            lambda to, message: self._route(self.group, to, message),
            self._enter,
            self._parts.outbox,
        )
        self._records = ReplicatedRecords(self.log, self._wal)
        self.node = TransactionalKvNode(self.leadership, self._groups, self._settings, self._parts, self._records)
        self.is_serving = False

    def _serve(self) -> None:
        # Set first: an entry that is applied from now on must not be replayed into a node that is ahead of it.
        self.is_serving = True
        self.ports.trace.sometimes("group-served-by-new-leader")
        self.node.serve()
        promises, ended = self.node.participant.promises(), self.node.participant.ended()
        self.leadership.emit(TookOver(promises, ended))

    def _start_anew(self) -> None:
        """Forget the memory of this leader, and read the committed entries again."""
        # The outbox is closed before anything else: its messages rest on entries that the next leader may not have.
        self.leadership.close()
        self._stand_by()
        self.compaction.restore_newest()
        first = self.compaction.newest_index() + 1
        for entry in self._wal.entries(first, self.log.last_applied - first + 1):
            self._replay(entry)

    def _replay(self, entry: LogEntry) -> None:
        if entry.kind == DATA:
            self.node.replay(RECORDS.decode(entry.data))

    @property
    def generation(self) -> int:
        return self._clock.generation

    def written_index(self) -> int:
        return self._records.written_index()

    def replicated_index(self) -> int:
        return self.log.high_water_mark.value

    def holds_lease(self) -> bool:
        """Return whether a majority promised, within the lease, to elect no other node for longer than it."""
        if not self.leads:
            return False
        now_us = self.log.stamp_us()
        contact_us = self.log.quorum_contact_us(now_us)
        return contact_us is not None and now_us - contact_us < self._settings.leader_lease_us

    def _state_index(self) -> int:
        return self.written_index() if self.is_serving else self.log.last_applied

    def snapshot(self) -> bytes:
        """Return the node's records, without the transactions that ended long ago."""
        self.node.forget_what_is_over()
        return RECORDS.encode_all(self.node.records())

    def restore(self, state: bytes) -> None:
        """Replace the state by that of a snapshot. Raise `msgspec.MsgspecError` for bytes that are none."""
        records = RECORDS.decode_all(state)
        self.leadership.close()
        self._stand_by()
        for record in records:
            self.node.replay(record)

    def apply(self, entry: LogEntry) -> None:
        """Replay a committed entry when standing by; let go of the messages that waited for it when serving."""
        self.ports.trace.emit(EntryApplied(entry.index, entry.generation, crc32(entry.data), 0, 0, True))
        if self.is_serving:
            self.leadership.outbox.release()
        else:
            self._replay(entry)
            # The no-op of this generation is the first entry whose commit shows that all before it are committed too.
            if entry.kind == NO_OP and self.leads and entry.generation == self._clock.generation:
                self._enter(self._serve_if_leading)
        self.compaction.note_applied(entry.index)

    def _serve_if_leading(self) -> None:
        if self.leads and not self.is_serving:
            self._serve()

    def became_leader(self) -> None:
        """Send heartbeats at once, then append the no-op that finds out what is committed."""
        self.log.start_leading()
        self._leading_since_us = self.log.stamp_us()
        self.log.send_heartbeats()
        self._heartbeats.start()
        self.log.append_and_replicate(NO_OP, b"")

    def stepped_down(self) -> None:
        """Lose the memory that is ahead of the log, and the messages that were held back."""
        self._heartbeats.stop()
        self.log.stop_leading()
        self.compaction.stop_leading()
        if self.is_serving:
            self._start_anew()

    def _heartbeat(self) -> None:
        if not self.leads:
            return
        if not self._reaches_a_quorum():
            self.ports.trace.sometimes("leader-stepped-down-without-quorum")
            self.election.become_follower(self._clock.generation, None)
            return
        self.log.send_heartbeats_if_due()
        self.log.resend_what_was_lost()
        self.compaction.resend_what_was_lost()

    def _reaches_a_quorum(self) -> bool:
        now_us = self.log.stamp_us()
        since_us = max(self._leading_since_us, self.log.quorum_contact_us(now_us) or 0)
        return now_us - since_us < _STEP_DOWN_AFTER_ELECTION_TIMEOUTS * self._settings.election_timeout_us

    def _handle_replication_response(self, source: NodeId, response: ReplicationResponse) -> None:
        generation = self._clock.generation
        if response.generation > generation:
            self.election.become_follower(response.generation, None)
        elif response.generation == generation and self.leads:
            self.log.handle_replication_response(source, response)
            self.leadership.outbox.release()

    def _handle_replication_request(self, source: NodeId, request: ReplicationRequest) -> None:
        if request.generation < self._clock.generation:
            self.ports.trace.sometimes("old-generation-request-refused")
            self.log.refuse(source, request)
            return
        self.election.follow(request.generation, source)
        self.log.handle_replication_request(source, request)


@dataclass(frozen=True, slots=True)
class GroupParts(Parts):
    """The classes a node is built from, with those that only replicated groups have."""

    outbox: type[Outbox] = Outbox
    routes: type[GroupRoutes] = GroupRoutes
    replica: type[GroupReplica] = GroupReplica
