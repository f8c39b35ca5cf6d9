"""The coordinator of key ranges: makes the table, splits and moves partitions, and answers clients.

Every change is an entry of its log, durable before any other node hears of it. A restart reads the table and the open
tasks back, from the newest snapshot and the entries after it, and goes on repeating the tasks.

Limit: the coordinator is one node. Its log outlives a crash, and not the loss of its disk; the pattern asks for a
replicated log in its place, which `consistent-core` has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_partitioning.key_range_partitions import (
    arranged,
    least_loaded,
    ranges_between,
)
from faultline.systems_under_test.patterns.data_partitioning.range_table import (
    ConfirmPartition,
    CreateTable,
    RangeTable,
    SplitPartition,
    TableCommand,
    TableState,
    Task,
)
from faultline.systems_under_test.patterns.data_replication.compacted_log import CompactedLog
from faultline.systems_under_test.reference.ranges.messages import (
    PartitionReady,
    ProposalReceived,
    RegisterMember,
    SplitTrigger,
    TableChanged,
    TableRequest,
    TableResponse,
)

__all__ = ["RangeCoordinator", "TableSettings"]

_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[TableCommand] = msgspec.msgpack.Decoder(TableCommand)
_STATE_DECODER = msgspec.msgpack.Decoder(TableState)


class TableSettings(Protocol):
    """The settings of such a coordinator; times in microseconds."""

    @property
    def splits(self) -> tuple[str, ...]:
        """The keys at which the first ranges begin."""

    @property
    def members_min(self) -> int:
        """The number of nodes needed before the first table is made."""

    @property
    def spread(self) -> str:
        """The splits after which the new half moves: `never`, `after-split`, or `after-` a reason and `-split`."""

    @property
    def keeps_parent(self) -> bool:
        """True if a partition that is split lives on, smaller, under its own id."""

    @property
    def task_retry_us(self) -> int:
        """The time after which a task that is not confirmed is sent again."""

    @property
    def member_timeout_us(self) -> int:
        """The silence after which a node is given no partition."""

    @property
    def snapshot_every_entries(self) -> int:
        """The entries of its log between two snapshots."""


class RangeCoordinator:
    """The table of partitions, and the live members that can hold them."""

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], settings: TableSettings) -> None:
        self.ports = ports
        self.table = RangeTable()
        self._log = CompactedLog(ports.storage, settings.snapshot_every_entries, self._note_due, name="table")
        self._snapshot_is_due = False
        self._members = members
        self._settings = settings
        self._heard_us: dict[NodeId, int] = {}
        self.handlers: Mapping[type, Callable[[NodeId, Any], None]] = {
            RegisterMember: self._handle_member,
            SplitTrigger: self._handle_trigger,
            TableRequest: self._handle_table_request,
        }

    def start(self) -> None:
        """Recover the table, and begin to repeat the tasks that are not confirmed."""
        state, entries = self._log.recover()
        if state is not None:
            self.table.restore(_STATE_DECODER.decode(state))
        for entry in entries:
            self.table.apply(_DECODER.decode(entry))
        if self.table.tasks:
            self.ports.trace.sometimes("tasks-resumed")
        self.ports.timers.every(self._settings.task_retry_us, self._repeat_tasks)

    def record(self, command: TableCommand) -> None:
        """Log and execute `command`, and send the tasks that it begins."""
        # Durable first: a host that acts on a task must find it in the table of a restarted coordinator.
        self._log.append(_ENCODER.encode(command))
        self._log.flush()
        before = dict(self.table.tasks)
        fits = self.table.apply(command)
        if self._snapshot_is_due:
            self._snapshot_is_due = False
            self._log.compact(_ENCODER.encode(self.table.state()))
        if not fits:
            return
        partitions = tuple(self.table.partitions.values())
        self.ports.trace.emit(TableChanged(self._log.last_index, partitions))
        for number, task in self.table.tasks.items():
            if before.get(number) != task:
                self._send(task)

    def _note_due(self) -> None:
        self._snapshot_is_due = True

    def _repeat_tasks(self) -> None:
        for task in self.table.tasks.values():
            self._send(task)

    def _send(self, task: Task) -> None:
        for address in task.addresses:
            self.ports.network.send(NodeId(address), task)

    def _handle_member(self, source: NodeId, _: RegisterMember) -> None:
        self._heard_us[source] = self.ports.clock.monotonic_us()
        live = self.live()
        if not self.table.partitions and len(live) >= min(self._settings.members_min, len(self._members)):
            ranges = ranges_between(self._settings.splits)
            self.record(CreateTable(tuple(arranged(ranges, live))))

    def live(self) -> list[NodeId]:
        """Return the members heard of lately, in the order of the cluster."""
        since_us = self.ports.clock.monotonic_us() - self._settings.member_timeout_us
        return [member for member in self._members if self._heard_us.get(member, -1) >= max(since_us, 0)]

    def _handle_trigger(self, _: NodeId, trigger: SplitTrigger) -> None:
        self.ports.trace.emit(ProposalReceived(trigger.partition_id, trigger.generation))
        split = self._split_for(trigger)
        if split is None:
            self.ports.trace.sometimes("trigger-refused")
        else:
            self.record(split)

    def _split_for(self, trigger: SplitTrigger) -> SplitPartition | None:
        return self.table.split_of(
            trigger.partition_id,
            trigger.generation,
            trigger.split_key,
            trigger.reason,
            keeps_parent=self._settings.keeps_parent,
        )

    def handle_ready(self, _: NodeId, message: PartitionReady) -> None:
        """Confirm a host's task; a new half may then move on."""
        task = self.table.tasks.get(message.partition_id)
        if task is None or task.awaited.generation != message.generation:
            return
        self.record(ConfirmPartition(message.partition_id))
        if isinstance(task, SplitPartition) and self._moves_after(task.reason):
            self._spread(task.right.id)

    def _moves_after(self, reason: str) -> bool:
        return self._settings.spread == "after-split" or self._settings.spread == f"after-{reason}-split"

    def _spread(self, partition_id: int) -> None:
        """Move the partition to the live node with the fewest, if that has fewer than its present node."""
        target = least_loaded(self.live(), self.table.partitions)
        hosted = [partition.address for partition in self.table.partitions.values()]
        source = self.table.partitions[partition_id].address
        if target is None or hosted.count(target) >= hosted.count(source):
            return
        move = self.table.move_of(partition_id, target)
        if move is not None:
            self.record(move)

    def _handle_table_request(self, client: NodeId, request: TableRequest) -> None:
        partitions = tuple(self.table.partitions.values())
        self.ports.network.send(client, TableResponse(request.request_number, partitions))
