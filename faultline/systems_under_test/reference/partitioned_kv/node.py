"""A node of `partitioned-kv`: a member that hosts partitions, and for the first few nodes also a replica of the core.

    client ── request ─▶ partition host ── answer ─▶ client         the partition is served here under that generation
                             │                                       (or: refused, look at the table again)
    coordinator ◀─ heartbeats, acks ─ member ◀─ host, move, cancel ─ coordinator

Messages pass through one queue. A node's messages to itself (the coordinator may own partitions too) go through the
same queue and not over the network.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from faultline.harness.world.ports import READY, Node, NodeId, NodeStatus, Ports
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import Answer, Written
from faultline.systems_under_test.patterns.data_partitioning.partition_host import (
    HostedPartition,
    NotHosted,
    PartitionHost,
    PartitionIsMigrating,
)
from faultline.systems_under_test.patterns.data_replication.singular_update_queue import SingularUpdateQueue, crash
from faultline.systems_under_test.reference.partitioned_kv.coordinator import Coordinator, CoordinatorParts
from faultline.systems_under_test.reference.partitioned_kv.membership import MemberOfCluster
from faultline.systems_under_test.reference.partitioned_kv.messages import (
    CancelPartitionMigration,
    CoordinatorRedirect,
    HostPartition,
    HostPartitionAck,
    HostStarted,
    KeyStored,
    MigrationCancelledByHost,
    MigrationCompleteMessage,
    MovePartition,
    PartitionMovementComplete,
    PartitionRefused,
    PartitionRequest,
    PartitionResponse,
    PartitionsHosted,
    PartitionTaken,
    ReadTable,
    RegisterClusterNodeResponse,
    RequestPartitionMigration,
    TablePublished,
    TableResponse,
    WriteAccepted,
)
from faultline.systems_under_test.reference.partitioned_kv.options import PartitionSettings
from faultline.systems_under_test.reference.shared.key_commands import GetValue, executed

__all__ = ["CoreServer", "NodeParts", "PartitionedNode", "Send"]

_QUEUE_CAPACITY = 1_000


@dataclass(frozen=True, slots=True)
class NodeParts:
    """The parts of a node; a planted bug is put in front of one of them."""

    host: type[PartitionHost] = PartitionHost
    coordinator: type[Coordinator] = Coordinator
    coordinator_parts: CoordinatorParts = field(default_factory=CoordinatorParts)


Send = Callable[[str, Any], None]
"""A function that sends a message to a node, which may be this one."""

CoreServer = Callable[[Ports, tuple[NodeId, ...], PartitionSettings, NodeParts, Send], Node]
"""A function that makes this node's server of the core, for which messages go out through `Send`."""


class PartitionedNode:
    """One node: implements `Node` over its ports."""

    def __init__(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        settings: PartitionSettings,
        parts: NodeParts,
        core_server: CoreServer,
    ) -> None:
        self.ports = ports
        self._settings = settings
        core = members[: settings.core_size]
        self.host = parts.host(ports, settings.snapshot_every_entries)
        joins_late = ports.node_id in members[len(members) - settings.late_nodes :]
        self.member = MemberOfCluster(ports, core, settings, self._send, settings.join_after_us if joins_late else 0)
        self.core: Node | None = None
        if ports.node_id in core:
            self.core = core_server(ports, core, settings, parts, self._send)
        self._handlers: dict[type, Callable[[NodeId, Any], None]] = {
            PartitionRequest: self._handle_request,
            ReadTable: self._handle_read_table,
            TablePublished: self._handle_table,
            CoordinatorRedirect: self.member.handle_redirect,
            RegisterClusterNodeResponse: self.member.handle_registered,
            HostPartition: self._handle_host,
            RequestPartitionMigration: self._handle_request_migration,
            CancelPartitionMigration: self._handle_cancel,
            MovePartition: self._handle_move,
            PartitionMovementComplete: self._handle_moved,
        }
        self._queue: SingularUpdateQueue[tuple[NodeId, Any], None] = SingularUpdateQueue(
            self._handle, _QUEUE_CAPACITY, on_error=crash
        )

    def start(self) -> None:
        """Recover what is hosted here and, in the core, the directory; then become a member."""
        self.host.recover()
        hosted = tuple((number, partition.generation) for number, partition in self.host.partitions.items())
        self.ports.trace.emit(HostStarted(hosted))
        if self.core is not None:
            self.core.start()
        self.member.start()

    def receive(self, source: NodeId, message: Any) -> None:
        """Take a message into the queue."""
        self._queue.post((source, message))

    def status(self) -> NodeStatus:
        """Return the status: its role in the core, and the partitions it hosts."""
        detail = {"hosted": sorted(self.host.partitions), "table_version": self.member.table.version}
        if self.core is None:
            return NodeStatus(role=READY, leader=self.member.coordinator, detail=detail)
        core = self.core.status()
        return NodeStatus(role=core.role, generation=core.generation, leader=core.leader, detail=detail | core.detail)

    def _handle(self, item: tuple[NodeId, Any]) -> None:
        source, message = item
        handle = self._handlers.get(type(message))
        if handle is not None:
            handle(source, message)
        elif self.core is not None:
            self.core.receive(source, message)

    def _send(self, to: str, message: msgspec.Struct) -> None:
        if to == self.ports.node_id:
            self._queue.post((self.ports.node_id, message))
        else:
            self.ports.network.send(NodeId(to), message)

    def _handle_table(self, source: NodeId, message: TablePublished) -> None:
        self.member.handle_table(source, message)

    def _handle_host(self, source: NodeId, message: HostPartition) -> None:
        if self.host.host(message.partition, message.generation, fresh=message.fresh):
            self._report(message.partition)
            self._send(source, HostPartitionAck(message.partition, message.generation))

    def _handle_request_migration(self, source: NodeId, message: RequestPartitionMigration) -> None:
        migration = message.migration
        # The coordinator asks until it hears of the end, so a late question may come after the data has left for good.
        if self.host.has_left(migration):
            self._send(source, MigrationCompleteMessage(migration))
            return
        content = self.host.send_off(migration)
        if content is not None:
            self._report(migration.partition)
            self._send(migration.target, MovePartition(migration, content))

    def _handle_move(self, source: NodeId, message: MovePartition) -> None:
        # Stored here before the source is told, which drops its copy then: at every moment one disk has the data.
        if self.host.install(message.migration, message.content):
            self.ports.trace.emit(PartitionTaken(message.migration.partition, message.migration.generation))
        self._report(message.migration.partition)
        self._send(source, PartitionMovementComplete(message.migration))

    def _handle_moved(self, _: NodeId, message: PartitionMovementComplete) -> None:
        """Drop the copy that the target has now, and tell the coordinator; it asks again if that message is lost."""
        self.host.drop(message.migration)
        self._report(message.migration.partition)
        if self.host.has_left(message.migration) and self.member.coordinator is not None:
            self._send(self.member.coordinator, MigrationCompleteMessage(message.migration))

    def _handle_cancel(self, source: NodeId, message: CancelPartitionMigration) -> None:
        migration = message.migration
        if self.host.has_left(migration):
            self._send(source, MigrationCompleteMessage(migration))
        elif self.host.keep(migration):
            self._report(migration.partition)
            self._send(source, MigrationCancelledByHost(migration))

    def _report(self, partition: int) -> None:
        hosted = self.host.partitions.get(partition)
        generation = self.host.known_generation(partition)
        self.ports.trace.emit(PartitionsHosted(partition, generation, hosted.state if hosted else ""))

    def _handle_read_table(self, source: NodeId, _: ReadTable) -> None:
        self.ports.network.send(source, TableResponse(self.member.table))

    def _handle_request(self, source: NodeId, request: PartitionRequest) -> None:
        try:
            if type(request.command) is GetValue:
                hosted = self.host.readable(request.partition, request.generation)
                answer = Answer(request.request_number, None, hosted.values.get(request.command.key))
            else:
                hosted = self.host.writable(request.partition, request.generation)
                answer = self._answer_to_write(source, request, hosted)
        except NotHosted:
            self._refuse(source, request)
        except PartitionIsMigrating:
            self.ports.trace.sometimes("write-refused-while-migrating")
            self.ports.network.send(source, PartitionRefused(request.request_number, migrating=True))
        else:
            self.ports.network.send(source, PartitionResponse(answer.request_number, answer.error, answer.value))

    def _refuse(self, source: NodeId, request: PartitionRequest) -> None:
        self.ports.trace.sometimes("not-hosted-refused")
        self.ports.network.send(source, PartitionRefused(request.request_number))

    def _answer_to_write(self, source: NodeId, request: PartitionRequest, hosted: HostedPartition) -> Answer:
        """Execute a write and return its answer, or the known one if it was executed, here or at an earlier owner."""
        known = hosted.answers.get(source)
        if known is not None and request.request_number <= known.request_number:
            self.ports.trace.sometimes("duplicate-answered")
            return known
        key = request.command.key
        result = executed(hosted.values.get(key), request.command)
        answer = Answer(request.request_number, result.error, result.answer)
        self.ports.trace.emit(WriteAccepted(request.partition, hosted.generation))
        self.ports.trace.emit(KeyStored(key, request.partition, self._settings.partitions))
        self.host.write(Written(request.partition, key, result.value, source, answer))
        return answer
