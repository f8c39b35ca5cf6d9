"""The planted bugs of `range-kv`: each a class put in front of the part that it breaks.

They break the system for good: never use them outside the harness.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.data_partitioning.key_range_partitions import (
    KeyRange,
    Partition,
    PartitionMap,
)
from faultline.systems_under_test.patterns.data_partitioning.range_partition import Entries, RangePartition
from faultline.systems_under_test.patterns.data_partitioning.range_table import (
    MovePartition,
    RangeTable,
    SplitPartition,
)
from faultline.systems_under_test.reference.range_kv.host import RangeHost
from faultline.systems_under_test.reference.range_kv.messages import InstallPartition, ReadKey, ScanKeys
from faultline.systems_under_test.reference.range_kv.node import Parts
from faultline.systems_under_test.reference.ranges.coordinator import RangeCoordinator
from faultline.systems_under_test.reference.ranges.messages import NOT_HERE_YET
from faultline.systems_under_test.reference.shared.planted_bugs import PlantedBugs

__all__ = ["BUGS"]

_COPY_US = 60_000

BUGS = PlantedBugs("range-kv", Parts, pattern="key-range-partitions", campaign="range-splits")

_MOVES = BUGS.group(campaign="range-moves", caught_by=("linearizability", "scans"))


@BUGS.plant("no-generation-check", "KRP-M1", part="host", caught_by=("KRP-I4", "KRP-I2", "linearizability", "scans"))
class _NoGenerationCheck(RangeHost):
    """A host serves each request for a partition it holds, whatever generation the client knows.

    Shows as: a client with an old table writes to the wrong half, and its scans end where the parent does now.
    """

    def _refusal(self, request: Any) -> str | None:
        return None if request.partition_id in self.store.held else NOT_HERE_YET


@BUGS.plant("repeated-split-empties", "KRP-M2", part="host", caught_by=("linearizability", "scans"))
class _RepeatedSplitEmpties(RangeHost):
    """A host that is told of a split again makes the new half again, which is empty.

    Shows as: the writes to the new half are gone.
    """

    def _handle_split(self, coordinator: NodeId, command: SplitPartition) -> None:
        held = self.store.held.get(command.right.id)
        if held is not None and held.info.generation == command.right.generation:
            self.store.record(InstallPartition(command.right, []))
        super()._handle_split(coordinator, command)


@BUGS.plant("inclusive-end", "KRP-M3", part="partition", caught_by=("KRP-I2", "scans"))
class _InclusiveEnd(RangePartition):
    """A partition takes the end of its range for a key of its own.

    Shows as: the key at a boundary is stored in two partitions, and comes twice in a scan.
    """

    def scan(self, wanted: KeyRange) -> Entries:
        return [
            (key, self.get(key))
            for key in self.keys
            if wanted.start <= key and (wanted.end is None or key <= wanted.end)
        ]


@BUGS.plant("split-at-half-the-maximum", "KRP-M4", part="host", caught_by=("KRP-R10",))
class _HalfSize(RangeHost):
    """A partition is split when it has reached half of the configured size.

    Shows as: twice as many partitions as asked for.
    """

    def _is_too_big(self, size: int) -> bool:
        return 2 * size >= self._settings.partition_size_max


@BUGS.plant("split-without-the-data", "KRP-M5", part="partition", caught_by=("linearizability", "scans"))
class _SplitWithoutData(RangePartition):
    """The new half begins empty, though the table says that the partition was split.

    Shows as: the upper half of the keys reads as absent.
    """

    def split(self, left: Partition, right: Partition) -> tuple[Self, Self]:
        kept, _ = super().split(left, right)
        return kept, type(self)(right)


@BUGS.plant("split-at-the-start", "KRP-M6", part="host", caught_by=("KRP-I1",))
class _SplitAtStart(RangeHost):
    """A partition is split at its first key, without a check that keys are left below.

    Shows as: empty ranges, again and again.
    """

    def _size_split_key(self, partition: RangePartition) -> str | None:
        return partition.keys[0] if partition.keys else None


class _CredulousTable(RangeTable):
    def _fits(self, command: SplitPartition) -> bool:
        return command.parent_id in self.partitions and not self.is_busy(command.parent_id)

    def split_of(
        self, partition_id: int, generation: int, key: str, reason: str, *, keeps_parent: bool = True
    ) -> SplitPartition | None:
        parent = self.partitions.get(partition_id)
        if parent is None or generation != parent.generation or self.is_busy(partition_id):
            return None
        left = Partition(parent.id, KeyRange(parent.range.start, key), generation + 1, parent.address)
        right = Partition(self.next_id, KeyRange(key, parent.range.end), generation + 1, parent.address)
        return SplitPartition(parent.id, left, right, reason)


@BUGS.also("split-at-the-start", part="coordinator")
class _EmptyRangesPermitted(RangeCoordinator):
    """A coordinator that takes the empty half for a range like any other."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.table = _CredulousTable()


@BUGS.plant("no-end-is-the-lowest-key", "KRP-M7", part="host", caught_by=("scans",))
class _NoEndIsTheLowestKey(RangeHost):
    """The end of the last range is taken for the empty key when the partition is scanned.

    Shows as: a scan finds nothing in the last partition.
    """

    def _handle_scan(self, client: NodeId, request: ScanKeys) -> None:
        partition = self._partition_for(client, request)
        if partition is not None:
            ends_nowhere = request.wanted.end is None
            self._answer(client, request, [] if ends_nowhere else partition.scan(request.wanted))


@BUGS.plant("scan-in-table-order", "KRP-M8", part="map", caught_by=("scans",))
class _TableOrder(PartitionMap):
    """A client asks the partitions of a scan in the order in which they stand in the table.

    Shows as: a scan that is not in order.
    """

    def partitions_in(self, wanted: KeyRange) -> list[Partition]:
        return [each for _, each in sorted(self.partitions.items()) if each.range.overlaps(wanted)]


@_MOVES.plant("writes-during-copy-lost", "KRP-M9", part="host")
class _CopyFirstLetGoLater(RangeHost):
    """A partition that moves is copied first and let go later; writes of the meantime stay behind.

    Shows as: acknowledged writes are gone after the move.
    """

    _copying: frozenset[Partition] = frozenset()

    def _let_go(self, command: MovePartition) -> None:
        """Copy for a while, and let the partition go afterwards, with the writes of the meantime."""
        if command.partition in self._copying:
            return
        self._copying |= {command.partition}
        copy = RangePartition(command.partition, self.store.held[command.partition.id].entries())
        self.ports.timers.after(_COPY_US, lambda: self._let_go_at_last(command, copy))

    def _let_go_at_last(self, command: MovePartition, copy: RangePartition) -> None:
        self.store.record(command)
        self.store.leaving[command.partition.id] = (command.partition, copy)
        self._send_leaving()


@_MOVES.plant("absent-where-not-held", "KRP-R19", part="host")
class _AbsentWhereNotHeld(RangeHost):
    """A host that is asked for a partition it does not hold yet answers that there is no such key.

    Shows as: keys are absent while their partition is on its way.
    """

    def _handle_read(self, client: NodeId, request: ReadKey) -> None:
        self._answer_or(super()._handle_read, client, request, None)

    def _handle_scan(self, client: NodeId, request: ScanKeys) -> None:
        self._answer_or(super()._handle_scan, client, request, [])

    def _answer_or(self, handle: Callable[..., None], client: NodeId, request: Any, nothing: Any) -> None:
        if self._refusal(request) == NOT_HERE_YET:
            self._answer(client, request, nothing)
        else:
            handle(client, request)


@_MOVES.plant("repeated-install-replaces", "KRP-R16", part="host")
class _RepeatedInstallReplaces(RangeHost):
    """A host that is sent a partition again puts it in the place of the one with later writes.

    Shows as: acknowledged writes are gone after the move.
    """

    def _handle_install(self, source: NodeId, message: InstallPartition) -> None:
        held = self.store.held.get(message.partition.id)
        if held is not None and held.info.generation == message.partition.generation:
            self._install(message)
        super()._handle_install(source, message)
