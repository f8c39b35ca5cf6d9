"""One member of a group of `transactional-kv`: Raft beneath, a node that knows nothing of it on top.

    requests ──▶ node of the group (coordinator, participant) ── records ──▶ replicated log ──▶ members
             ◀── outbox: what the records up to there allow ◀── high-water mark ──┘

Every member has the node in memory, and keeps it up to date by replaying what is committed: it *stands by*. A member
that was elected appends a no-op; when that is applied, all that was ever committed is replayed, and the node begins to
serve: it takes up the prepared transactions with their locks, rolls back what has no decision and sends what has one,
by the same code as after a restart. Serving, its memory is ahead of the log, as a node's is ahead of its disk; so a
deposed leader throws it away and builds a new one from its snapshot and its log.

Snapshots are the node's records (`records`). Standing by they belong to the last entry applied. A leader's belong to
the last entry *written*: they are taken at once and published when that one is committed.

Sources: Patterns of Distributed Systems ch. 21, "Using Replicated Log"; multi-raft as in TiKV and CockroachDB.
"""

from __future__ import annotations

from collections.abc import Callable
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
from faultline.systems_under_test.reference.transactional_kv.group_ports import LeadershipPorts, ReplicaPorts
from faultline.systems_under_test.reference.transactional_kv.node import TransactionalKvNode
from faultline.systems_under_test.reference.transactional_kv.options import TransactionSettings
from faultline.systems_under_test.reference.transactional_kv.parts import Parts
from faultline.systems_under_test.reference.transactional_kv.records import (
    Record,
    decode_record,
    decode_state,
    encode_record,
    encode_state,
)

__all__ = ["GroupReplica", "LeaderCompaction", "ReplicatedRecords"]

_BATCH_ENTRIES_MAX = 64
_BATCH_SIZE_BYTES = 65536
_IN_FLIGHT_MAX = 5
_STEP_DOWN_AFTER_ELECTION_TIMEOUTS = 2

Enter = Callable[[Callable[[], None]], None]


class ReplicatedRecords:
    """The group's log as the node on top writes to it: implements `NodeLog`; read back by standing by, not here."""

    def __init__(self, log: ReplicatedLog, wal: WriteAheadLog) -> None:
        self._log = log
        self._wal = wal
        self._unsent: list[bytes] = []

    def append(self, record: Record) -> None:
        """See `NodeLog`."""
        self._unsent.append(encode_record(record))

    def flush(self) -> None:
        """See `NodeLog`: one batch to all members."""
        batch, self._unsent = self._unsent, []
        if batch:
            self._log.append_batch_and_replicate(DATA, batch)

    def recover(self) -> list[Record]:
        """See `NodeLog`: whoever stands by has replayed everything."""
        return []

    def compact(self, state: bytes) -> None:
        """See `NodeLog`: snapshots are the member's business."""

    def written_index(self) -> int:
        """The index of the last record."""
        return self._wal.last_index + len(self._unsent)


class LeaderCompaction(Compaction):
    """Snapshots of a state that may be ahead of what is committed: published once the log has come that far."""

    written_index: Callable[[], int]
    _taken: Snapshot | None = None

    def snapshot_index(self) -> int:
        """The entry that the state belongs to."""
        return self.written_index()

    def take_snapshot(self) -> None:
        """Take it now, and publish it when its last entry is committed."""
        index = self.snapshot_index()
        if index <= self._log.last_applied:
            super().take_snapshot()
        else:
            self._taken = Snapshot(index, self._wal.generation_at(index), self._store.snapshot())

    def note_applied(self, index: int) -> None:
        """More is committed."""
        taken = self._taken
        if taken is not None and index >= taken.index:
            self._taken = None
            self.publish_taken(taken)
        elif index >= self.due_index:
            self.request_snapshot()

    def stop_leading(self) -> None:
        """What was not committed may never be."""
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
        parts: Parts,
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
        self.compaction = LeaderCompaction(self.ports, settings.group, self._wal, self.log, self, enter)
        self.compaction.written_index = self._state_index
        self._heartbeats = HeartBeatScheduler(
            ports.timers, settings.group.heartbeat_interval_us, lambda: enter(self._heartbeat)
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
        group = self._settings.group
        timeout_us = group.election_timeout_us
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
                interval_us=group.heartbeat_interval_us,
                vote_stickiness=True,
                silence_us_min=timeout_us,
            ),
            PauseAwareFailureDetector(TimeoutBasedFailureDetector(clock, timeout_us), clock, timeout_us),
        )
        return RaftElection(context, pre_vote=True)

    def _timing(self) -> ReplicationTiming:
        group = self._settings.group
        return ReplicationTiming(
            batch_entries_max=_BATCH_ENTRIES_MAX,
            batch_size_bytes=_BATCH_SIZE_BYTES,
            in_flight_max=_IN_FLIGHT_MAX,
            retransmit_us=2 * group.heartbeat_interval_us,
            silent_us=group.election_timeout_us,
            quiet_us=group.heartbeat_interval_us // 2,
        )

    # -- life ---------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Recover log, generation and vote; then wait for a leader."""
        self.compaction.recover()
        self._clock.recover(generation_min=self._wal.last_generation)
        self.ports.trace.emit(NodeStarted(self._clock.generation, self._wal.last_index))
        self.compaction.start()
        self.election.start()

    def receive(self, source: NodeId, message: Any) -> None:
        """A message of another member's."""
        self._handlers.take(source, message)

    @property
    def leads(self) -> bool:
        """Is this the leader, as it believes?"""
        return self.election.role is ServerRole.LEADING

    # -- the node on top ----------------------------------------------------------------------------------------------

    def _stand_by(self) -> None:
        """A node with empty memory, to be filled from snapshot and log."""
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
        self.is_serving = True
        self.ports.trace.sometimes("group-served-by-new-leader")
        self.node.serve()
        promises, ended = self.node.participant.promises(), self.node.participant.ended()
        self.leadership.emit(TookOver(promises, ended))

    def _start_anew(self) -> None:
        """Forget what this leader knew, and read again what is committed."""
        self.leadership.close()
        self._stand_by()
        self.compaction.restore_newest()
        first = self.compaction.newest_index() + 1
        for entry in self._wal.entries(first, self.log.last_applied - first + 1):
            self._replay(entry)

    def _replay(self, entry: LogEntry) -> None:
        if entry.kind == DATA:
            self.node.replay(decode_record(entry.data))

    # -- Standing -----------------------------------------------------------------------------------------------------

    @property
    def generation(self) -> int:
        """See `Standing`."""
        return self._clock.generation

    def written_index(self) -> int:
        """See `Standing`."""
        return self._records.written_index()

    def replicated_index(self) -> int:
        """See `Standing`."""
        return self.log.high_water_mark.value

    def holds_lease(self) -> bool:
        """See `Standing`: a majority promised, within the lease, to elect nobody else for longer than that."""
        if not self.leads:
            return False
        now_us = self.log.stamp_us()
        contact_us = self.log.quorum_contact_us(now_us)
        return contact_us is not None and now_us - contact_us < self._settings.group.leader_lease_us

    # -- the state for snapshots --------------------------------------------------------------------------------------

    def _state_index(self) -> int:
        return self.written_index() if self.is_serving else self.log.last_applied

    def snapshot(self) -> bytes:
        """The node's records, without what is over for long."""
        self.node.forget_what_is_over()
        return encode_state(self.node.records())

    def restore(self, state: bytes) -> None:
        """The state of a snapshot in place of this one. Raises `msgspec.MsgspecError` for bytes that are none."""
        records = decode_state(state)
        self.leadership.close()
        self._stand_by()
        for record in records:
            self.node.replay(record)

    # -- LogListener, ElectionListener --------------------------------------------------------------------------------

    def apply(self, entry: LogEntry) -> None:
        """An entry is committed: who stands by replays it, who serves lets go of what waited for it."""
        self.ports.trace.emit(EntryApplied(entry.index, entry.generation, crc32(entry.data), 0, 0, True))
        if self.is_serving:
            self.leadership.outbox.release()
        else:
            self._replay(entry)
            if entry.kind == NO_OP and self.leads and entry.generation == self._clock.generation:
                self._enter(self._serve_if_leading)
        self.compaction.note_applied(entry.index)

    def _serve_if_leading(self) -> None:
        if self.leads and not self.is_serving:
            self._serve()

    def became_leader(self) -> None:
        """Heartbeats at once, then the no-op that finds out what is committed."""
        self.log.start_leading()
        self._leading_since_us = self.log.stamp_us()
        self.log.send_heartbeats()
        self._heartbeats.start()
        self.log.append_and_replicate(NO_OP, b"")

    def stepped_down(self) -> None:
        """What was in memory only is lost, with what was not let go of."""
        self._heartbeats.stop()
        self.log.stop_leading()
        self.compaction.stop_leading()
        if self.is_serving:
            self._start_anew()

    # -- leading and following ----------------------------------------------------------------------------------------

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
        return now_us - since_us < _STEP_DOWN_AFTER_ELECTION_TIMEOUTS * self._settings.group.election_timeout_us

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
