"""A Raft server, from top to bottom: one node that keeps its state machine equal to those of its peers.

Everything that happens to the server – messages of other servers and clients, its timers – passes through its
singular update queue, one at a time. The rest is wiring: votes go to the election, entries to the replicated log,
committed entries to the state machine, and its answers to the clients that wait in the request waiting list, under the
index of their entry.

    proposal ──► update queue ──► replicated log ── entries ──► followers
                                      │ high-water mark
    answer ◄── waiting list ◄── state machine (with sessions)

The server chooses nothing. Which election, which replication and which files it uses is decided by the `Parts` it is
given; beside its log it does what its *extensions* do (`extension`). `KeyValueServer` adds what clients see.

Sources: Ongaro's thesis; Patterns of Distributed Systems ch. 3 to 11.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from faultline.harness.world.ports import NodeId, NodeStatus, Ports, Storage
from faultline.systems_under_test.patterns.data_replication.heartbeat import HeartBeatScheduler
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import ElectionContext, ServerRole
from faultline.systems_under_test.patterns.data_replication.leader_reads import Read
from faultline.systems_under_test.patterns.data_replication.log_entry import DATA, NO_OP, LogEntry
from faultline.systems_under_test.patterns.data_replication.replication_messages import (
    ReplicationRequest,
    ReplicationResponse,
)
from faultline.systems_under_test.patterns.data_replication.singular_update_queue import SingularUpdateQueue, crash
from faultline.systems_under_test.reference.raft.append_batches import AppendBatches, Proposal
from faultline.systems_under_test.reference.raft.extension import ServerExtension
from faultline.systems_under_test.reference.raft.key_value_store import Applied, KeyValueStore
from faultline.systems_under_test.reference.raft.sessions import SessionKeeping
from faultline.systems_under_test.reference.shared.client_messages import RedirectToLeader
from faultline.systems_under_test.reference.shared.handler_table import HandlerTable
from faultline.systems_under_test.reference.shared.trace_events import (
    AnsweredWithoutLeading,
    EntryApplied,
    NodeStarted,
)

if TYPE_CHECKING:
    from faultline.systems_under_test.reference.raft.parts import Parts
    from faultline.systems_under_test.reference.raft.settings import RaftSettings

__all__ = ["RaftServer"]

_QUEUE_CAPACITY = 1_000
_STEP_DOWN_AFTER_ELECTION_TIMEOUTS = 2


class _Task(msgspec.Struct, frozen=True):
    """The server's own event: something of its own that must not run in the middle of anything else."""

    run: Callable[[], None]


class RaftServer:
    """One server: implements `Node` over its ports."""

    def __init__(
        self, ports: Ports, members: tuple[NodeId, ...], settings: RaftSettings, parts: Parts, store: KeyValueStore
    ) -> None:
        self.ports = ports
        self.settings = settings
        self.store = store
        self.extensions: tuple[ServerExtension, ...] = ()
        self._parts = parts
        self._leading_since_us = 0
        replicas = parts.replicas(members, settings)
        self.wal = parts.write_ahead_log(ports, settings)
        self._clock = parts.generation_clock(ports.storage)
        self.election = parts.election(
            ElectionContext(
                ports,
                replicas,
                self.wal,
                self._clock,
                self,
                lambda: self.enter(self._election_timed_out),
                parts.election_timing(settings),
                parts.failure_detector(ports, settings),
            ),
            members,
            settings,
        )
        self.log = parts.replication(replicas, settings)(
            ports, replicas, self.wal, self._clock, self, parts.replication_timing(settings)
        )
        self.compaction = parts.compaction(ports, settings, self.wal, self.log, store, self.enter)
        self.reads = parts.leader_reads(settings, self.log, ports.trace, self.serve, self.refuse_without_lease)
        self.sessions = SessionKeeping(
            ports.trace,
            store.sessions,
            parts.session_expiry(ports.clock, settings.session_timeout_us, settings.session_check_us),
        )
        self.waiting = parts.waiting_list(ports.clock, settings.client_timeout_us)
        self._batches = AppendBatches(
            ports,
            parts.append_limits(settings),
            self._append_batch,
            lambda: self.enter(self._send_due_batch),
            parts.batch_queue,
        )
        self._heartbeats = HeartBeatScheduler(
            ports.timers, settings.heartbeat_interval_us, lambda: self.enter(self._beat)
        )
        self._handlers = HandlerTable(self._own_handlers())
        self._queue: SingularUpdateQueue[tuple[NodeId, Any], None] = SingularUpdateQueue(
            self._handle, _QUEUE_CAPACITY, on_error=crash
        )
        self._post = self._queue.post

    def _own_handlers(self) -> dict[type, Callable[[NodeId, Any], None]]:
        return {
            ReplicationRequest: self._handle_replication_request,
            ReplicationResponse: self._handle_replication_response,
            **self.log.handlers(self.election, lambda: self.reads.progress()),
            **self.compaction.handlers(self.election, self._clock),
            **self.election.handlers(),
            _Task: lambda _, task: task.run(),
        }

    def extend(self, *extensions: ServerExtension) -> None:
        """Do what these extensions do as well, from the beginning: call it before `start`."""
        self.extensions = extensions
        for extension in extensions:
            self._handlers |= extension.handlers()

    def start(self) -> None:
        """Recover log, generation and vote from storage; then wait for a leader."""
        storage = self.ports.storage
        bytes_found = _stored_bytes(storage)
        self.compaction.recover()
        self._clock.recover(generation_min=self.wal.last_generation)
        if _stored_bytes(storage) < bytes_found:
            self.ports.trace.sometimes("torn-tail-dropped")
        self.ports.trace.emit(NodeStarted(self._clock.generation, self.wal.last_index))
        self.compaction.start()
        self.election.start()
        for extension in reversed(self.extensions):
            extension.start()

    def status(self) -> NodeStatus:
        """Return the leader, as this server believes, and how far its log reaches."""
        return NodeStatus(
            role=self.election.role.value,
            generation=self._clock.generation,
            leader=self.election.leader_id,
            detail={
                "last_index": self.wal.last_index,
                "high_water_mark": self.log.high_water_mark.value,
                "applied": self.log.last_applied,
                "waiting": len(self.waiting),
            },
        )

    @property
    def leads(self) -> bool:
        """True on a server that leads, as far as it knows."""
        return self.election.role is ServerRole.LEADING

    @property
    def leader_id(self) -> NodeId | None:
        """The leader, as far as this server knows it."""
        return self.election.leader_id

    # The update queue: everything enters here and runs alone.

    def receive(self, source: NodeId, message: Any) -> None:
        """Take a message into the queue."""
        self._post((source, message))

    def enter(self, run: Callable[[], None]) -> None:
        """Run it when nothing else runs. Timers call this, since they ring while a message may be half handled."""
        self._post((self.ports.node_id, _Task(run)))

    def handle(self, source: NodeId, message: Any) -> None:
        """Handle a message that came inside another one, as part of the same event."""
        self._handlers[type(message)](source, message)

    def _handle(self, item: tuple[NodeId, Any]) -> None:
        source, message = item
        if not self.extensions:
            self._handlers[type(message)](source, message)
            return
        for extension in self.extensions:
            extension.arrived(message)
        self._handlers[type(message)](source, message)
        for extension in reversed(self.extensions):
            extension.handled()

    # Leading.

    def _election_timed_out(self) -> None:
        self.election.election_timeout()

    def became_leader(self) -> None:
        """Send heartbeats at once, then the no-op that finds out what is committed (LDR-R9, LOG-R15)."""
        no_op_index = self.wal.last_index + 1
        for extension in self.extensions:
            extension.start_leading(no_op_index)
        self.log.start_leading()
        self._leading_since_us = self.log.stamp_us()
        self.log.send_heartbeats()
        self._heartbeats.start()
        self.reads.start_leading(no_op_index)
        self.sessions.start_leading()
        self.log.append_and_replicate(NO_OP, b"")

    def stepped_down(self) -> None:
        """Send all waiting clients away: their entries may yet be committed, but this server will not know by whom."""
        self._heartbeats.stop()
        self.log.stop_leading()
        self.compaction.stop_leading()
        deposed = ConnectionAbortedError("this server leads no longer")
        self.waiting.fail_all(deposed)
        self._batches.give_up(deposed)
        for read in self.reads.stop_leading():
            self.redirect(read.source, read.request_number)
        for extension in reversed(self.extensions):
            extension.stop_leading()

    def _beat(self) -> None:
        if self.leads:
            self._beat_as_leader()
        for extension in reversed(self.extensions):
            extension.beat()

    def _beat_as_leader(self) -> None:
        # A leader that is cut off would keep its clients waiting while another one is elected.
        if not self._reaches_a_quorum():
            self.ports.trace.sometimes("leader-stepped-down-without-quorum")
            self._step_down()
            return
        self.log.send_heartbeats_if_due()
        self.log.resend_what_was_lost()
        self.compaction.resend_what_was_lost()
        self.waiting.expire()
        # With entries still to be applied, a session that looks idle may be about to show a sign of life.
        if self.sessions.is_due() and self.log.last_applied == self.wal.last_index:
            self._end_idle_sessions()

    def _end_idle_sessions(self) -> None:
        """Propose to end them: only the log ends a session, at the same entry on every server."""
        proposal = self.sessions.proposal()
        if proposal is not None:
            self.log.append_and_replicate(DATA, proposal)

    def _reaches_a_quorum(self) -> bool:
        now_us = self.log.stamp_us()
        contact_us = self.log.quorum_contact_us(now_us)
        # A leadership that has just begun has heard nothing yet; it is given the same time.
        since_us = max(self._leading_since_us, contact_us or 0)
        return now_us - since_us < _STEP_DOWN_AFTER_ELECTION_TIMEOUTS * self.settings.election_timeout_us

    def _step_down(self) -> None:
        self.election.become_follower(self._clock.generation, None)

    def _handle_replication_response(self, source: NodeId, response: ReplicationResponse) -> None:
        generation = self._clock.generation
        if response.generation > generation:
            self.election.become_follower(response.generation, None)
        elif self._is_of_this_generation(response) and self.election.role is ServerRole.LEADING:
            self.log.handle_replication_response(source, response)
            self.reads.progress()

    def _is_of_this_generation(self, response: ReplicationResponse) -> bool:
        """Return whether it answers this leadership, and not an earlier one of the same server (GEN-S4)."""
        return response.generation == self._clock.generation

    # Following.

    def _handle_replication_request(self, source: NodeId, request: ReplicationRequest) -> None:
        if self._is_from_the_past(request):
            self.ports.trace.sometimes("old-generation-request-refused")
            self.log.refuse(source, request)
            return
        self.election.follow(request.generation, source)
        self.log.handle_replication_request(source, request)

    def _is_from_the_past(self, request: ReplicationRequest) -> bool:
        """Return whether an earlier leader sent it (GEN-R5)."""
        return request.generation < self._clock.generation

    # Proposing and applying.

    def propose(self, reply: Any, data: bytes) -> None:
        """Let `reply` wait for the next entry, then append that entry: never the other way round."""
        for extension in self.extensions:
            data = extension.logged(data)
        if self.settings.batch_linger_us:
            self._batches.propose(reply, data, reply.correlation_id)
            return
        self.waiting.add(self.wal.last_index + 1, reply)
        self.log.append_and_replicate(DATA, data)

    def _append_batch(self, batch: list[Proposal]) -> None:
        for index, proposal in enumerate(batch, self.wal.last_index + 1):
            self.waiting.add(index, proposal.reply)
        self.log.append_batch_and_replicate(DATA, [proposal.command for proposal in batch])

    def _send_due_batch(self) -> None:
        self._batches.send_due()

    def apply(self, entry: LogEntry) -> None:
        """Execute a committed entry, and answer the client that waits for it."""
        if entry.index >= self.compaction.due_index:
            self.compaction.request_snapshot()
        if entry.kind == NO_OP:
            self.ports.trace.emit(EntryApplied(entry.index, entry.generation, 0, 0, 0, False))
        else:
            self._execute(entry)
        for extension in reversed(self.extensions):
            extension.applied(entry)

    def _execute(self, entry: LogEntry) -> None:
        applied = self.store.apply(entry.index, entry.data)
        self.sessions.report(entry, applied)
        if self.election.role is ServerRole.LEADING:
            self.sessions.refresh(applied.client_id)
        elif len(self.waiting):
            self.ports.trace.emit(AnsweredWithoutLeading(entry.index))
        self._answer(entry, applied)

    def _answer(self, entry: LogEntry, applied: Applied) -> None:
        self.waiting.handle_response(entry.index, applied.response)

    # Answering without the log.

    def serve(self, read: Read) -> None:
        """Answer a read from the state as it is now."""
        self.ports.network.send_ahead(read.source, self.store.answer(read.request_number, read.key))

    def refuse_without_lease(self, read: Read) -> None:
        """Give the leadership up, since another server may lead already, and send the reader on (LOG-R22)."""
        self._step_down()
        self.redirect(read.source, read.request_number)

    def redirect(self, source: NodeId, correlation_id: int) -> None:
        """Name the leader to a client, as far as this server knows it."""
        self.ports.network.send_ahead(source, RedirectToLeader(correlation_id, self.leader_id))


def _stored_bytes(storage: Storage) -> int:
    return sum(len(storage.read(file)) for file in storage.files())
