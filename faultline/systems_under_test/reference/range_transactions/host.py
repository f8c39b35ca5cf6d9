"""The host's half of a node of `range-transactions`: serves ranges, and carries out their splits and moves.

    check  ── too busy ──▶ trigger to the table's coordinator ──▶ its log ──▶ split here: one entry of the log
    move   ── one entry of the node's log ──▶ the whole range to the other host ──▶ its log ──▶ served there

The host alone decides if it serves a message, by the generation of the range that the message names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_partitioning.range_partition import middle_of_requests
from faultline.systems_under_test.patterns.data_partitioning.range_table import (
    HostPartition,
    MovePartition,
    SplitPartition,
)
from faultline.systems_under_test.reference.range_transactions.messages import InstallRange, RangeRefused, ToRange
from faultline.systems_under_test.reference.range_transactions.options import RangeTransactionSettings
from faultline.systems_under_test.reference.range_transactions.ranges import HeldRange, RangeStore
from faultline.systems_under_test.reference.ranges.messages import (
    NOT_HERE_YET,
    STALE_TABLE,
    PartitionReady,
    RegisterMember,
    SplitTrigger,
)
from faultline.systems_under_test.reference.transactions.messages import Reply

__all__ = ["RangeHost"]

_REGISTER_EVERY_US = 100_000


class RangeHost:
    """The ranges of one node, as clients, coordinators and the coordinator of the table see them."""

    def __init__(
        self,
        ports: Ports,
        table_node: NodeId,
        settings: RangeTransactionSettings,
        store: RangeStore,
        every: Callable[[int, Callable[[], None]], None],
    ) -> None:
        """`every` calls a function at intervals, in turn with messages."""
        self._ports = ports
        self._table_node = table_node
        self._settings = settings
        self._store = store
        self._every = every
        self.handlers: Mapping[type, Callable[[NodeId, Any], None]] = {
            ToRange: self._handle_message,
            HostPartition: self._handle_host,
            SplitPartition: self._handle_split,
            MovePartition: self._handle_move,
            InstallRange: self._handle_install,
            PartitionReady: self._handle_taken_over,
        }

    def start(self) -> None:
        """Begin to register, to check the load, and to send again the ranges that leave."""
        self._register()
        self._every(_REGISTER_EVERY_US, self._register)
        self._every(self._settings.task_retry_us, self._send_leaving)
        self._every(self._settings.split_check_us, self._check_load)

    def tick(self) -> None:
        """Let each range ask about transactions that it has not heard of for a while."""
        for held in self._store.held.values():
            held.participant.tick()

    def _register(self) -> None:
        self._ports.network.send(self._table_node, RegisterMember())

    def _handle_message(self, source: NodeId, envelope: ToRange) -> None:
        held = self._store.find(envelope.range_id, envelope.generation)
        if held is None:
            self._refuse(source, envelope)
            return
        self._count(held, envelope.message)
        held.requests.handlers[type(envelope.message)](source, envelope.message)

    def _refuse(self, source: NodeId, envelope: ToRange) -> None:
        """Tell a client to give the attempt up, and a coordinator to look for the range."""
        self._ports.trace.sometimes("stale-range-refused")
        number = getattr(envelope.message, "number", None)
        if number is None:
            self._ports.trace.sometimes("protocol-message-refused")
            self._ports.network.send(source, RangeRefused(envelope.range_id, envelope.generation))
        else:
            is_past = self._store.last_generation(envelope.range_id) >= envelope.generation
            self._ports.network.send(source, Reply(number, STALE_TABLE if is_past else NOT_HERE_YET))

    def _count(self, held: HeldRange, message: Any) -> None:
        key = getattr(message, "key", None)
        if key is not None:
            held.load[key] += 1

    def _handle_host(self, table_node: NodeId, command: HostPartition) -> None:
        if not self._store.has_seen(command.partition):
            self._store.host(command)
        self._confirm(table_node, command.partition.id, command.partition.generation)

    def _handle_split(self, table_node: NodeId, command: SplitPartition) -> None:
        """Split once, and confirm it each time: transactions may have begun on the halves since."""
        if self._store.find(command.parent_id, command.left.generation - 1) is not None:
            self._ports.trace.sometimes("partition-split")
            self._store.split(command)
        elif not self._store.has_seen(command.right):
            return
        self._confirm(table_node, command.right.id, command.right.generation)

    def _handle_move(self, table_node: NodeId, command: MovePartition) -> None:
        """Let go and send the range, at the source; confirm that it has come, at the target."""
        partition = command.partition
        if self._store.has_seen(partition):
            self._confirm(table_node, partition.id, partition.generation)
        elif self._store.find(partition.id, partition.generation - 1) is not None:
            self._store.let_go(command)
            self._send_leaving()

    def _confirm(self, to: NodeId, range_id: int, generation: int) -> None:
        self._ports.network.send(to, PartitionReady(range_id, generation))

    def _send_leaving(self) -> None:
        """Send the ranges that move away, until the other host has them."""
        for left in self._store.leaving.values():
            self._ports.network.send(NodeId(left.partition.address), InstallRange(left.partition, left.records))

    def _handle_install(self, source: NodeId, message: InstallRange) -> None:
        partition = message.partition
        if not self._store.has_seen(partition):
            self._ports.trace.sometimes("range-moved")
            self._store.install(message)
        self._confirm(self._table_node, partition.id, partition.generation)
        self._confirm(source, partition.id, partition.generation)

    def _handle_taken_over(self, _: NodeId, message: PartitionReady) -> None:
        leaving = self._store.leaving.get(message.partition_id)
        if leaving is not None and leaving.partition.generation == message.generation:
            self._store.drop(message.partition_id)

    def _check_load(self) -> None:
        """Propose to split each range that had many requests since the last check, where it halves them."""
        for held in list(self._store.held.values()):
            key = middle_of_requests(held.load)
            is_busy = held.load.total() >= self._settings.partition_load_max
            if is_busy and key is not None and held.info.range.can_split_at(key):
                trigger = SplitTrigger(held.info.id, held.info.generation, key, "load")
                self._ports.network.send(self._table_node, trigger)
            held.load.clear()
