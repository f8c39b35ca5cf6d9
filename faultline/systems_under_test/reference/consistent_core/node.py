"""A server of `consistent-core`: the patterns of replication joined into one node.

Everything that happens to the server – messages of other servers and clients, its timers – passes through its
singular update queue, one at a time. The rest is wiring: votes go to the election, entries to the replicated log,
committed entries to the key-value store, and the store's answers to the clients that wait in the request waiting
list, under the index of their entry.

    client ── request ──► update queue ──► replicated log ── entries ──► followers
                                               │ high-water mark
    client ◄── answer ── waiting list ◄── key-value store (sessions)

`Parts` names the classes the node is built from; a planted bug is a subclass of one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.world.ports import NodeId, NodeStatus, Ports, Storage
from faultline.systems_under_test.patterns.data_replication.heartbeat import HeartBeatScheduler
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import ServerRole
from faultline.systems_under_test.patterns.data_replication.leader_reads import LeaderReads, LocalReads, Read
from faultline.systems_under_test.patterns.data_replication.lone_log import LoneLog, OwnCopyDurable
from faultline.systems_under_test.patterns.data_replication.pulled_log import PulledLog
from faultline.systems_under_test.patterns.data_replication.replicated_log import (
    ReplicationRequest,
    ReplicationResponse,
    ReplicationTiming,
)
from faultline.systems_under_test.patterns.data_replication.singular_update_queue import SingularUpdateQueue, crash
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import DATA, NO_OP, LogEntry
from faultline.systems_under_test.reference.consistent_core.append_batches import AppendBatches, Proposal
from faultline.systems_under_test.reference.consistent_core.elections import new_election, replicas_of
from faultline.systems_under_test.reference.consistent_core.fetching import fetch_handlers
from faultline.systems_under_test.reference.consistent_core.key_value_store import (
    Applied,
    KeyValueStore,
    encode_command,
)
from faultline.systems_under_test.reference.consistent_core.options import CoreSettings
from faultline.systems_under_test.reference.consistent_core.parts import Parts
from faultline.systems_under_test.reference.consistent_core.replies import RegistrationReply, Reply
from faultline.systems_under_test.reference.consistent_core.sessions import SessionKeeping, discard_policy
from faultline.systems_under_test.reference.shared.client_messages import (
    ClientCommand,
    ClientRequest,
    ClientResponse,
    GetValue,
    RedirectToLeader,
    RegisterClient,
    RegisterClientRequest,
    SessionHeartbeat,
)
from faultline.systems_under_test.reference.shared.compaction import compaction_handlers, log_of
from faultline.systems_under_test.reference.shared.handler_table import HandlerTable
from faultline.systems_under_test.reference.shared.trace_events import (
    AnsweredWithoutLeading,
    EntryApplied,
    NodeStarted,
)

__all__ = ["ConsistentCoreNode", "Parts"]

Store = TypeVar("Store", bound=KeyValueStore)

_QUEUE_CAPACITY = 1_000
_STEP_DOWN_AFTER_ELECTION_TIMEOUTS = 2
_REGISTER = encode_command(RegisterClient())


class _ElectionTimeout(msgspec.Struct, frozen=True):
    """The server's own event: the election timer rang."""


class _Task(msgspec.Struct, frozen=True):
    """The server's own event: something of its own that must not run in the middle of anything else."""

    run: Callable[[], None]


class _HeartbeatTick(msgspec.Struct, frozen=True):
    """The server's own event: a leader's interval is over."""


class _BatchDue(msgspec.Struct, frozen=True):
    """The server's own event: commands have lingered long enough."""


class ConsistentCoreNode:
    """One server: implements `Node` over its ports."""

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], settings: CoreSettings, parts: Parts) -> None:
        if len(members) < 2 and (settings.election, settings.replication) != ("raft", "push"):
            raise UsageError(
                "A single node elects itself and replicates to nobody, so election must be raft and replication push.",
                "Leave these options out, or use 3 or 5 nodes (--nodes 3).",
            )
        self.ports = ports
        self.settings = settings
        self._members = members
        self.store = self._new_store(parts)
        self.sessions = SessionKeeping(ports, self.store.sessions, settings, parts.session_expiry)
        self._parts = parts
        self._log = log_of(ports, settings, parts.segmented_log)
        self._clock = parts.generation_clock(ports.storage)
        self.election = new_election(
            ports, members, self._log, self._clock, self, self._election_timer_rang, settings, parts.elections
        )
        members = replicas_of(members, settings)
        timing = ReplicationTiming(
            batch_entries_max=settings.batch_entries_max,
            batch_size_bytes=settings.batch_size_bytes,
            in_flight_max=settings.in_flight_max,
            retransmit_us=2 * settings.heartbeat_interval_us,
            silent_us=settings.election_timeout_us,
            quiet_us=settings.heartbeat_interval_us // 2,
        )
        log_type = parts.pulled_log if settings.replication == "pull" else parts.replicated_log
        if len(members) == 1:
            log_type = LoneLog
        self.log = log_type(ports, members, self._log, self._clock, self, timing)
        self.compaction = parts.compaction(ports, settings, self._log, self.log, self.store, self._enter)
        self.reads = self._leader_reads()
        self.waiting = parts.waiting_list(ports.clock, settings.client_timeout_us)
        self._heartbeats = HeartBeatScheduler(ports.timers, settings.heartbeat_interval_us, self._heartbeat_timer_rang)
        self._leading_since_us = 0
        self._batches = AppendBatches(ports, settings, self._append_batch, self._batch_timer_rang, parts.batch_queue)
        self._handlers = HandlerTable(
            {
                ReplicationRequest: self._handle_replication_request,
                ReplicationResponse: self._handle_replication_response,
                **compaction_handlers(self.compaction, self.election, self._clock),
                ClientRequest: self._handle_client_request,
                RegisterClientRequest: self._handle_register_client,
                SessionHeartbeat: self._handle_session_heartbeat,
                **self.election.handlers(),
                _ElectionTimeout: self._handle_election_timeout,
                _HeartbeatTick: self._handle_heartbeat_tick,
                _BatchDue: self._handle_batch_due,
                _Task: lambda _, task: task.run(),
            }
        )
        if isinstance(self.log, LoneLog):
            self._handlers[OwnCopyDurable] = self.log.handle_own_copy
        if isinstance(self.log, PulledLog):
            self._handlers |= fetch_handlers(self.log, self.election, self._clock, self.reads)
        self._queue: SingularUpdateQueue[tuple[NodeId, Any], None] = SingularUpdateQueue(
            self._handle, _QUEUE_CAPACITY, on_error=crash
        )
        self._post = self._queue.post

    # -- Node ---------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Recover log, generation and vote from storage; then wait for a leader."""
        storage = self.ports.storage
        bytes_found = _stored_bytes(storage)
        self.compaction.recover()
        self._clock.recover(generation_min=self._log.last_generation)
        if _stored_bytes(storage) < bytes_found:
            self.ports.trace.sometimes("torn-tail-dropped")
        self.ports.trace.emit(NodeStarted(self._clock.generation, self._log.last_index))
        self.compaction.start()
        self.election.start()

    def receive(self, source: NodeId, message: Any) -> None:
        """Take a message into the queue."""
        self._post((source, message))

    def status(self) -> NodeStatus:
        """Who leads, as this server believes, and how far its log reaches."""
        return NodeStatus(
            role=self.election.role.value,
            generation=self._clock.generation,
            leader=self.election.leader_id,
            detail={
                "last_index": self._log.last_index,
                "high_water_mark": self.log.high_water_mark.value,
                "applied": self.log.last_applied,
                "waiting": len(self.waiting),
            },
        )

    def _handle(self, item: tuple[NodeId, Any]) -> None:
        source, message = item
        self._handlers.take(source, message)

    def _election_timer_rang(self) -> None:
        self._post((self.ports.node_id, _ELECTION_TIMEOUT))

    def _heartbeat_timer_rang(self) -> None:
        self._post((self.ports.node_id, _HEARTBEAT_TICK))

    def _enter(self, run: Callable[[], None]) -> None:
        self._post((self.ports.node_id, _Task(run)))

    # -- leading ------------------------------------------------------------------------------------------------------

    def became_leader(self) -> None:
        """Heartbeats at once, then the no-op that finds out what is committed (LDR-R9, LOG-R15)."""
        self.log.start_leading()
        self._leading_since_us = self.log.stamp_us()
        self.log.send_heartbeats()
        self._heartbeats.start()
        self.reads.start_leading(self._log.last_index + 1)
        self.sessions.start_leading()
        self.log.append_and_replicate(NO_OP, b"")

    def stepped_down(self) -> None:
        """Nobody who waits here will be answered with a result; they may ask the next leader."""
        self._heartbeats.stop()
        self.log.stop_leading()
        self.compaction.stop_leading()
        deposed = ConnectionAbortedError("this server leads no longer")
        self.waiting.fail_all(deposed)
        self._batches.give_up(deposed)
        for read in self.reads.stop_leading():
            self._redirect(read.source, read.request_number)

    def _handle_heartbeat_tick(self, _: NodeId, __: _HeartbeatTick) -> None:
        if self.election.role is not ServerRole.LEADING:
            return
        if self._parts.confirms_leadership and not self._reaches_a_quorum():
            self.ports.trace.sometimes("leader-stepped-down-without-quorum")
            self._step_down()
            return
        self.log.send_heartbeats_if_due()
        self.log.resend_what_was_lost()
        self.compaction.resend_what_was_lost()
        self.waiting.expire()
        if self.sessions.is_due() and self.log.last_applied == self._log.last_index:
            self._end_idle_sessions()

    def _end_idle_sessions(self) -> None:
        """Propose it: only the log ends a session, at the same entry on every server."""
        proposal = self.sessions.proposal()
        if proposal is not None:
            self.log.append_and_replicate(DATA, proposal)

    def _reaches_a_quorum(self) -> bool:
        now_us = self.log.stamp_us()
        contact_us = self.log.quorum_contact_us(now_us)
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

    # -- following ----------------------------------------------------------------------------------------------------

    def _handle_replication_request(self, source: NodeId, request: ReplicationRequest) -> None:
        if self._is_from_the_past(request):
            self.ports.trace.sometimes("old-generation-request-refused")
            self.log.refuse(source, request)
            return
        self.election.follow(request.generation, source)
        self.log.handle_replication_request(source, request)

    def _is_from_the_past(self, request: ReplicationRequest) -> bool:
        """Did a leader of before send it (GEN-R5)?"""
        return request.generation < self._clock.generation

    def _is_of_this_generation(self, response: ReplicationResponse) -> bool:
        """Does it answer a request of this leadership, and not of an earlier one of the same server (GEN-S4)?"""
        return response.generation == self._clock.generation

    def _handle_election_timeout(self, _: NodeId, __: _ElectionTimeout) -> None:
        self.election.election_timeout()

    # -- clients ------------------------------------------------------------------------------------------------------

    def _handle_register_client(self, source: NodeId, request: RegisterClientRequest) -> None:
        if self.election.role is not ServerRole.LEADING:
            self._redirect(source, request.correlation_id)
        else:
            self._propose(RegistrationReply(self.ports, source, request.correlation_id), _REGISTER)

    def _handle_client_request(self, source: NodeId, request: ClientRequest) -> None:
        command = request.command
        bypasses_log = type(command) is GetValue and self.settings.read_mode != "log"
        if bypasses_log and self.settings.read_mode == "stale":
            self._serve(Read(source, request.request_number, command.key))
        elif self.election.role is not ServerRole.LEADING:
            self._redirect(source, request.request_number)
        else:
            self.sessions.refresh(request.client_id)
            if bypasses_log:
                self.reads.read(Read(source, request.request_number, command.key))
            else:
                self._propose(Reply(self.ports, source, request.request_number), _logged(request))

    def _handle_session_heartbeat(self, source: NodeId, heartbeat: SessionHeartbeat) -> None:
        if self.election.role is ServerRole.LEADING:
            self.sessions.refresh(heartbeat.client_id)
        elif self.election.leader_id is not None and source not in self._members:
            self.ports.network.send_ahead(NodeId(self.election.leader_id), heartbeat)

    def _propose(self, reply: Reply, data: bytes) -> None:
        """Let `reply` wait for the next entry, then append that entry: never the other way round."""
        if self.settings.batch_linger_us:
            self._batches.propose(reply, data, reply.correlation_id)
            return
        self.waiting.add(self._log.last_index + 1, reply)
        self.log.append_and_replicate(DATA, data)

    def _append_batch(self, batch: list[Proposal]) -> None:
        """The same for several commands at once."""
        for index, proposal in enumerate(batch, self._log.last_index + 1):
            self.waiting.add(index, proposal.reply)
        self.log.append_batch_and_replicate(DATA, [proposal.command for proposal in batch])

    def _batch_timer_rang(self) -> None:
        self._post((self.ports.node_id, _BATCH_DUE))

    def _handle_batch_due(self, _: NodeId, __: _BatchDue) -> None:
        self._batches.send_due()

    def _redirect(self, source: NodeId, correlation_id: int) -> None:
        self.ports.network.send_ahead(source, RedirectToLeader(correlation_id, self.election.leader_id))

    def _leader_reads(self) -> LeaderReads:
        if not self._parts.confirms_leadership:
            return LocalReads(self._serve)
        if self.settings.read_mode == "leader-lease":
            return self._parts.lease_reads(
                self.log, self._serve, self._refuse_without_lease, self.ports.trace, self.settings.leader_lease_us
            )
        return self._parts.read_index_reads(self.log, self._serve, self.ports.trace)

    def _serve(self, read: Read) -> None:
        value = self.store.values.get(read.key)
        self.ports.network.send_ahead(read.source, ClientResponse(read.request_number, None, value))

    def _refuse_without_lease(self, read: Read) -> None:
        self._step_down()
        self._redirect(read.source, read.request_number)

    # -- the state machine --------------------------------------------------------------------------------------------

    def _new_store(self, parts: Parts) -> KeyValueStore:
        return self._store_type(KeyValueStore)(parts.sessions(discard_policy(self.settings)))

    def _store_type(self, usual: type[Store]) -> type[Store]:
        """The class to make a store of, where `usual` would do: what a kind of server puts in front of it."""
        return usual

    def apply(self, entry: LogEntry) -> None:
        """Execute a committed entry, and answer whoever waits for it."""
        if entry.index >= self.compaction.due_index:
            self.compaction.request_snapshot()
        if entry.kind == NO_OP:
            self.ports.trace.emit(EntryApplied(entry.index, entry.generation, 0, 0, 0, False))
            return
        applied = self.store.apply(entry.index, entry.data)
        self.sessions.report(entry, applied)
        if self.election.role is ServerRole.LEADING:
            self.sessions.refresh(applied.client_id)
        elif len(self.waiting):
            self.ports.trace.emit(AnsweredWithoutLeading(entry.index))
        self._answer(entry, applied)

    def _answer(self, entry: LogEntry, applied: Applied) -> None:
        self.waiting.handle_response(entry.index, applied.response)


_ELECTION_TIMEOUT = _ElectionTimeout()
_HEARTBEAT_TICK = _HeartbeatTick()
_BATCH_DUE = _BatchDue()


def _logged(request: ClientRequest) -> bytes:
    return encode_command(
        ClientCommand(request.client_id, request.request_number, request.command, request.acknowledged)
    )


def _stored_bytes(storage: Storage) -> int:
    return sum(len(storage.read(file)) for file in storage.files())
