"""A data node of `coordinated-kv`: a member, a candidate for control, and a leader or follower of partitions.

                    ┌────────── core (three servers of `consistent-core`) ──────────┐
                    │ leases: members/…, controller   keys: members/…, controller, table │
                    └──▲───────────────▲────────────────────────────│───────────────┘
       lease, refresh  │        claim, │ compare-and-set            │ watches: controller, table
                    membership      controller                      ▼
    client ── request ─▶ partition leader ◀── entry of the table ── node ── install, replicate ─▶ followers

Messages, timers and the node's messages to itself pass through one queue.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from faultline.harness.world.ports import READY, NodeId, NodeStatus, Ports
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import Answer
from faultline.systems_under_test.patterns.data_replication.singular_update_queue import SingularUpdateQueue, crash
from faultline.systems_under_test.reference.coordinated_kv.controller import TABLE, Controller
from faultline.systems_under_test.reference.coordinated_kv.core import Core, Enter
from faultline.systems_under_test.reference.coordinated_kv.leading import PartitionLeader
from faultline.systems_under_test.reference.coordinated_kv.membership import Membership
from faultline.systems_under_test.reference.coordinated_kv.messages import (
    AlterInSync,
    ClusterTableRead,
    ConfirmReads,
    DataRefused,
    DataRequest,
    DataResponse,
    InstallReplica,
    LeadershipResigned,
    ReadClusterTable,
    ReadsConfirmed,
    ReplicaChanged,
    ReplicaRefused,
    ReplicasRecovered,
    ReplicaStored,
    ReplicateWrite,
    RequestServed,
    TableSeen,
    TableTaken,
)
from faultline.systems_under_test.reference.coordinated_kv.replicas import ReplicaStore
from faultline.systems_under_test.reference.coordinated_kv.settings import DataNodeSettings
from faultline.systems_under_test.reference.coordinated_kv.table import ClusterTable, Entry, table_of
from faultline.systems_under_test.reference.shared.handler_table import HandlerTable

__all__ = ["DataNode", "DataParts"]

_QUEUE_CAPACITY = 1_000


class _Task(msgspec.Struct, frozen=True):
    """The node's own event: a step that must not run in the middle of another."""

    run: Callable[[], None]


@dataclass(frozen=True, slots=True)
class DataParts:
    """The parts of a data node; a planted bug is put in front of one of them."""

    store: type[ReplicaStore] = ReplicaStore
    leader: type[PartitionLeader] = PartitionLeader
    controller: type[Controller] = Controller
    membership: type[Membership] = Membership


class DataNode:
    """One data node: implements `Node` over its ports."""

    def __init__(
        self, ports: Ports, settings: DataNodeSettings, parts: DataParts, session: Callable[[Enter], Core]
    ) -> None:
        self.ports = ports
        self._settings = settings
        self._parts = parts
        self.session = session(self._enter)
        self.membership = parts.membership(ports, self.session, self._follow_the_table)
        self.controller = parts.controller(ports, settings, self.session)
        self.store = parts.store(ports)
        self.table = ClusterTable()
        self.leading: dict[int, PartitionLeader] = {}
        self._handlers = HandlerTable(
            {
                DataRequest: self._handle_request,
                ReadClusterTable: self._handle_read_table,
                InstallReplica: self._handle_install,
                ReplicateWrite: self._handle_replicate,
                ReplicaStored: self._handle_stored,
                ReplicaRefused: self._handle_refused,
                ConfirmReads: self._handle_confirm,
                ReadsConfirmed: self._handle_confirmed,
                AlterInSync: lambda source, wish: self.controller.wish(source, wish),
                LeadershipResigned: lambda source, wish: self.controller.wish(source, wish),
                _Task: lambda _, task: task.run(),
                **dict.fromkeys(self.session.messages, self.session.receive),
            }
        )
        self._queue: SingularUpdateQueue[tuple[NodeId, Any], None] = SingularUpdateQueue(
            self._handle, _QUEUE_CAPACITY, on_error=crash
        )

    def start(self) -> None:
        """Recover the copies; then become a member, watch the table, and stand by as a controller."""
        self.store.recover()
        recovered = ((number, copy.generation, copy.number) for number, copy in sorted(self.store.all().items()))
        self.ports.trace.emit(ReplicasRecovered(tuple(recovered)))
        self.session.start()
        self.membership.start()
        self._watched = self.session.watch(TABLE, self._take_table)
        self.controller.start()
        self.ports.timers.every(self._settings.retransmit_us, lambda: self._enter(self._look_around))

    def receive(self, source: NodeId, message: Any) -> None:
        """Take a message into the queue."""
        self._queue.post((source, message))

    def status(self) -> NodeStatus:
        """Return the status: the leader is the node that faults are aimed at."""
        detail = {
            "leads": sorted(self.leading),
            "controls": self.controller.acts,
            "table_version": self.table.version,
            "incarnation": self.membership.incarnation,
        }
        generation = self._aimed_at()
        role = "leader" if generation else READY
        return NodeStatus(role=role, generation=generation, leader=self.controller.elected, detail=detail)

    def _aimed_at(self) -> int:
        """Return a number above 0 if faults aimed at the leader hit this node."""
        if self._settings.aim == "controller":
            return self.controller.token
        if self._settings.aim == "owner" and 0 in self.leading:
            return self.leading[0].generation
        return 0

    def _handle(self, item: tuple[NodeId, Any]) -> None:
        source, message = item
        self._handlers[type(message)](source, message)

    def _enter(self, run: Callable[[], None]) -> None:
        self._queue.post((self.ports.node_id, _Task(run)))

    def _send(self, to: str, message: msgspec.Struct) -> None:
        if to == self.ports.node_id:
            self._queue.post((self.ports.node_id, message))
        else:
            self.ports.network.send(NodeId(to), message)

    def _take_table(self) -> None:
        table = table_of(self._watched.values.get(TABLE))
        self.ports.trace.emit(TableSeen(table.version, table.token))
        if table.version > self.table.version:
            self.table = table
            self.ports.trace.emit(TableTaken(table))
            self._follow_the_table()

    def _follow_the_table(self) -> None:
        """Lead the partitions that the table gives to this incarnation of this node, and no others."""
        for partition, entry in enumerate(self.table.entries):
            leader = self.leading.get(partition)
            if leader is not None and leader.is_of(entry) and self._is_appointed(entry):
                if entry.revision > leader.entry.revision:
                    leader.take(entry)
            else:
                self._change_leader(partition, entry)

    def _change_leader(self, partition: int, entry: Entry) -> None:
        leader = self.leading.pop(partition, None)
        # The old leadership ends before the new one writes down its generation: both would write to one copy.
        if leader is not None:
            leader.end()
        if self._is_appointed(entry) and entry.generation > self.store.replica(partition).generation:
            self.leading[partition] = self._parts.leader(self.ports, self._settings, self.store, partition, entry)

    def _is_appointed(self, entry: Entry) -> bool:
        """Return whether the table names this node, under the lease that it has now."""
        return entry.leader == self.ports.node_id and entry.incarnation == self.membership.incarnation

    def _look_around(self) -> None:
        for leader in self.leading.values():
            wish = leader.look_around()
            if wish is not None and self.controller.elected is not None:
                self._send(self.controller.elected, wish)

    def _handle_install(self, source: NodeId, message: InstallReplica) -> None:
        if self._refuses(source, message.partition, message.generation):
            return
        # First the end of the own leadership, then the later leader's copy in its place.
        self._give_way(message.partition, message.generation)
        self.store.install(message.partition, message.generation, message.number, message.content)
        self._report_stored(source, message.partition)

    def _give_way(self, partition: int, generation: int) -> None:
        """Lead no longer when a later leader sends its copy, whatever the own table says."""
        leader = self.leading.get(partition)
        if leader is not None and generation > leader.generation:
            self.ports.trace.sometimes("former-leader-gave-way")
            leader.end()

    def _handle_replicate(self, source: NodeId, message: ReplicateWrite) -> None:
        partition = message.written.partition
        if self._refuses(source, partition, message.generation):
            return
        if self.store.append(message.generation, message.number, message.written):
            self._report_stored(source, partition)
        else:
            self.ports.trace.sometimes("replica-has-a-gap")

    def _refuses(self, source: NodeId, partition: int, generation: int) -> bool:
        """Return whether a message is of a former leader; if so, refuse it."""
        refuses = self.store.is_from_the_past(partition, generation)
        if refuses:
            self.ports.trace.sometimes("former-leader-refused")
            self._send(source, ReplicaRefused(partition, self.store.replica(partition).generation))
        return refuses

    def _report_stored(self, source: NodeId, partition: int) -> None:
        replica = self.store.replica(partition)
        self.ports.trace.emit(ReplicaChanged(partition, replica.generation, replica.number))
        self._send(source, ReplicaStored(partition, replica.generation, replica.number))

    def _handle_stored(self, source: NodeId, message: ReplicaStored) -> None:
        leader = self.leading.get(message.partition)
        if leader is not None:
            leader.handle_stored(source, message)

    def _handle_refused(self, _: NodeId, message: ReplicaRefused) -> None:
        self._give_way(message.partition, message.generation)

    def _handle_confirm(self, source: NodeId, message: ConfirmReads) -> None:
        if self._refuses(source, message.partition, message.generation):
            return
        if self.store.replica(message.partition).generation == message.generation:
            self._send(source, ReadsConfirmed(message.partition, message.generation, message.question))

    def _handle_confirmed(self, source: NodeId, message: ReadsConfirmed) -> None:
        leader = self.leading.get(message.partition)
        if leader is not None:
            leader.handle_confirmed(source, message)

    def _handle_read_table(self, source: NodeId, _: ReadClusterTable) -> None:
        self.ports.network.send(source, ClusterTableRead(self.table))

    def _handle_request(self, source: NodeId, request: DataRequest) -> None:
        leader = self.leading.get(request.partition)
        if leader is None or leader.is_over or leader.generation != request.generation or not self._may_answer():
            self._refuse(source, request)
            return

        def respond(number: int, answer: Answer) -> None:
            # Asked again: the lease may have ended while the answer waited for the followers.
            if self._may_answer():
                under_lease = self._settings.read_mode == "lease"
                self.ports.trace.emit(RequestServed(request.partition, request.generation, number, under_lease))
                self.ports.network.send(source, DataResponse(answer.request_number, answer.error, answer.value))

        leader.serve(source, request.request_number, request.command, respond)

    def _may_answer(self) -> bool:
        """Return whether no other node can lead: by the lease or, if each read is confirmed, by that."""
        return self._settings.read_mode == "confirmed" or self.membership.is_valid()

    def _refuse(self, source: NodeId, request: DataRequest) -> None:
        self.ports.trace.sometimes("not-the-leader-refused")
        entries = self.table.entries
        entry = entries[request.partition] if request.partition < len(entries) else None
        leader, generation = (entry.leader, entry.generation) if entry else ("", 0)
        self.ports.network.send(source, DataRefused(request.request_number, request.partition, leader, generation))
