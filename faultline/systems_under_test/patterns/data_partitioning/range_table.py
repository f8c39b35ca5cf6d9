"""The coordinator's table of key-range partitions: changed by commands from a log, with the tasks that are still open.

A command changes the table at once and leaves a *task* behind: a message that is repeated to a host until it confirms.
A partition with an open task is busy, and takes no other change; so at most one change of a partition is under way.
Both table and tasks follow from the log, so a restarted coordinator goes on where it stopped (KRP-R22).

A command is checked when it is applied, not only when it is proposed: of two splits that were proposed for the same
range the second is ignored (KRP-R14), and so is one that would make an empty range (KRP-R15).

Source: Patterns of Distributed Systems ch. 20. The two ways to number the halves are those of the book and of
YugabyteDB: the parent keeps its id and shrinks, or it is retired and both halves are new.
"""

from __future__ import annotations

import msgspec

from faultline.systems_under_test.patterns.data_partitioning.key_range_partitions import Partition, PartitionMap

__all__ = [
    "ConfirmPartition",
    "CreateTable",
    "HostPartition",
    "MovePartition",
    "RangeTable",
    "SplitPartition",
    "TableCommand",
    "TableState",
    "Task",
]


class CreateTable(msgspec.Struct, frozen=True, tag="create-table"):
    """The first table."""

    partitions: tuple[Partition, ...]


class HostPartition(msgspec.Struct, frozen=True, tag="host-partition"):
    """Task: hold this partition, which is empty."""

    partition: Partition

    @property
    def awaited(self) -> Partition:
        """The partition that the host confirms."""
        return self.partition

    @property
    def concerned(self) -> tuple[int, ...]:
        """The partitions that are busy during the task."""
        return (self.partition.id,)

    @property
    def addresses(self) -> tuple[str, ...]:
        """The members that must hear of the task."""
        return (self.partition.address,)


class SplitPartition(msgspec.Struct, frozen=True, tag="split-partition"):
    """Command and task: `parent_id` becomes `left` and `right`; `left` may keep the id. `reason` is size or load."""

    parent_id: int
    left: Partition
    right: Partition
    reason: str = "size"

    @property
    def awaited(self) -> Partition:
        """The half that is new in any case."""
        return self.right

    @property
    def concerned(self) -> tuple[int, ...]:
        """Both halves, and the partition that they come from."""
        return (self.parent_id, self.left.id, self.right.id)

    @property
    def addresses(self) -> tuple[str, ...]:
        """The present host: both halves stay there."""
        return (self.left.address,)


class MovePartition(msgspec.Struct, frozen=True, tag="move-partition"):
    """Command and task: `partition`, with a new address and generation, leaves `source`."""

    partition: Partition
    source: str

    @property
    def awaited(self) -> Partition:
        """The partition at its new address."""
        return self.partition

    @property
    def concerned(self) -> tuple[int, ...]:
        """Only the partition itself."""
        return (self.partition.id,)

    @property
    def addresses(self) -> tuple[str, ...]:
        """The source, which gives the partition up, and the target, which answers whether it has it already."""
        return (self.source, self.partition.address)


class ConfirmPartition(msgspec.Struct, frozen=True, tag="confirm-partition"):
    """The host of the partition has carried out its task."""

    partition_id: int


Task = HostPartition | SplitPartition | MovePartition
TableCommand = CreateTable | SplitPartition | MovePartition | ConfirmPartition


class TableState(msgspec.Struct, frozen=True, array_like=True):
    """A snapshot of the table."""

    partitions: list[Partition]
    tasks: list[tuple[int, Task]]
    next_id: int


class RangeTable(PartitionMap):
    """The table, the open tasks by the id of the partition that is awaited, and the next free id."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks: dict[int, Task] = {}
        self.next_id = 1

    def state(self) -> TableState:
        """Return the whole table, for a snapshot."""
        return TableState(list(self.partitions.values()), list(self.tasks.items()), self.next_id)

    def restore(self, state: TableState) -> None:
        """Restore the state of a snapshot in an empty table."""
        self.partitions = {partition.id: partition for partition in state.partitions}
        self.tasks = dict(state.tasks)
        self.next_id = state.next_id

    def is_busy(self, partition_id: int) -> bool:
        """Return whether a change of the partition is under way."""
        return any(partition_id in task.concerned for task in self.tasks.values())

    def is_online(self, partition_id: int) -> bool:
        """Return whether the partition's host has confirmed that it holds it as the table says."""
        return partition_id in self.partitions and not self.is_busy(partition_id)

    def apply(self, command: TableCommand) -> bool:
        """Execute a command of the log; return False when it does not fit the table, which then stays as it is."""
        if isinstance(command, CreateTable):
            return self._create(command)
        if isinstance(command, SplitPartition):
            return self._split(command)
        if isinstance(command, MovePartition):
            return self._move(command)
        return self.tasks.pop(command.partition_id, None) is not None

    def _create(self, command: CreateTable) -> bool:
        if self.partitions:
            return False
        for partition in command.partitions:
            self._put(partition, HostPartition(partition))
        return True

    def _split(self, command: SplitPartition) -> bool:
        if not self._fits(command):
            return False
        del self.partitions[command.parent_id]
        self._put(command.left)
        self._put(command.right, command)
        return True

    def _fits(self, command: SplitPartition) -> bool:
        """Return whether the halves are those of the present partition, and both are ranges."""
        parent = self.partitions.get(command.parent_id)
        left, right = command.left, command.right
        # A split of an older generation was proposed for another range; applying it would break the tiling.
        if parent is None or self.is_busy(parent.id) or left.generation != parent.generation + 1:
            return False
        halves = (left.range.start, left.range.end, right.range.start, right.range.end)
        middle = right.range.start
        return parent.range.can_split_at(middle) and halves == (parent.range.start, middle, middle, parent.range.end)

    def _move(self, command: MovePartition) -> bool:
        partition = command.partition
        before = self.partitions.get(partition.id)
        if before is None or self.is_busy(before.id) or partition.generation != before.generation + 1:
            return False
        self._put(partition, command)
        return True

    def _put(self, partition: Partition, task: Task | None = None) -> None:
        self.partitions[partition.id] = partition
        self.next_id = max(self.next_id, partition.id + 1)
        if task is not None:
            self.tasks[partition.id] = task

    def split_of(
        self, partition_id: int, generation: int, key: str, reason: str, *, keeps_parent: bool = True
    ) -> SplitPartition | None:
        """Return the command that splits the partition at `key`; None when the split is not, or no longer, possible."""
        parent = self.partitions.get(partition_id)
        if parent is None or generation != parent.generation or self.is_busy(partition_id):
            return None
        if not parent.range.can_split_at(key):
            return None
        ranges = parent.range.split(key)
        ids = (parent.id, self.next_id) if keeps_parent else (self.next_id, self.next_id + 1)
        left, right = (
            Partition(number, each, generation + 1, parent.address) for number, each in zip(ids, ranges, strict=True)
        )
        return SplitPartition(parent.id, left, right, reason)

    def move_of(self, partition_id: int, target: str) -> MovePartition | None:
        """Return the command that moves the partition to `target`; None when it is there already, or busy."""
        partition = self.partitions.get(partition_id)
        if partition is None or partition.address == target or self.is_busy(partition_id):
            return None
        moved = Partition(partition.id, partition.range, partition.generation + 1, target)
        return MovePartition(moved, partition.address)
