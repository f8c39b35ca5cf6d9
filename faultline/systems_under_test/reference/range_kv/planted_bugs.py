"""The planted bugs of `range-kv`: each a record, and a change to one of its `Parts`.

They break it for good: never use them outside the harness.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self

from faultline.harness.system import PlantedBug
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
from faultline.systems_under_test.reference.range_kv.coordinator import RangeCoordinator
from faultline.systems_under_test.reference.range_kv.host import RangeHost
from faultline.systems_under_test.reference.range_kv.messages import (
    NOT_HERE_YET,
    InstallPartition,
    ReadKey,
    ScanKeys,
)
from faultline.systems_under_test.reference.range_kv.node import Parts
from faultline.systems_under_test.reference.shared.planted_bugs import layered, together, with_bugs

__all__ = ["PLANTED_BUGS", "mutated_parts"]

_PATTERN = "key-range-partitions"
_COPY_US = 60_000

_RECORDS = (
    PlantedBug(
        name="no-generation-check",
        pattern=_PATTERN,
        id="KRP-M1",
        summary="a host serves whoever names a partition it holds, whatever generation the client knows",
        shows_as="a client with an old table writes where nobody looks, and its scans end where the parent does now",
        campaign="range-splits",
        caught_by=("KRP-I4", "KRP-I2", "linearizability", "scans"),
    ),
    PlantedBug(
        name="repeated-split-empties",
        pattern=_PATTERN,
        id="KRP-M2",
        summary="a host that is told of a split again makes the new half again, which is empty",
        shows_as="what was written to the new half before is gone",
        campaign="range-splits",
        caught_by=("linearizability", "scans"),
    ),
    PlantedBug(
        name="inclusive-end",
        pattern=_PATTERN,
        id="KRP-M3",
        summary="a partition takes the end of its range for a key of its own",
        shows_as="the key at a boundary is stored in two partitions, and comes twice in a scan",
        campaign="range-splits",
        caught_by=("KRP-I2", "scans"),
    ),
    PlantedBug(
        name="split-at-half-the-maximum",
        pattern=_PATTERN,
        id="KRP-M4",
        summary="a partition is split when it has reached half of the configured size",
        shows_as="twice as many partitions as asked for",
        campaign="range-splits",
        caught_by=("KRP-R10",),
    ),
    PlantedBug(
        name="split-without-the-data",
        pattern=_PATTERN,
        id="KRP-M5",
        summary="the new half begins empty, though the table says that the partition was split",
        shows_as="the upper half of the keys reads as absent",
        campaign="range-splits",
        caught_by=("linearizability", "scans"),
    ),
    PlantedBug(
        name="split-at-the-start",
        pattern=_PATTERN,
        id="KRP-M6",
        summary="a partition is split at its first key, and nobody looks whether something is left below",
        shows_as="empty ranges, again and again",
        campaign="range-splits",
        caught_by=("KRP-I1",),
    ),
    PlantedBug(
        name="no-end-is-the-lowest-key",
        pattern=_PATTERN,
        id="KRP-M7",
        summary="the end of the last range is taken for the empty key when the partition is scanned",
        shows_as="a scan finds nothing in the last partition",
        campaign="range-splits",
        caught_by=("scans",),
    ),
    PlantedBug(
        name="scan-in-table-order",
        pattern=_PATTERN,
        id="KRP-M8",
        summary="a client asks the partitions of a scan in the order in which they stand in the table",
        shows_as="a scan that is not in order",
        campaign="range-splits",
        caught_by=("scans",),
    ),
    PlantedBug(
        name="writes-during-copy-lost",
        pattern=_PATTERN,
        id="KRP-M9",
        summary="a partition that moves is copied first and let go later; what is written meanwhile stays behind",
        shows_as="acknowledged writes are gone after the move",
        campaign="range-moves",
        caught_by=("linearizability", "scans"),
    ),
    PlantedBug(
        name="absent-where-not-held",
        pattern=_PATTERN,
        id="KRP-R19",
        summary="a host that is asked for a partition it does not hold yet answers that there is no such key",
        shows_as="keys are absent while their partition is on its way",
        campaign="range-moves",
        caught_by=("linearizability", "scans"),
    ),
    PlantedBug(
        name="repeated-install-replaces",
        pattern=_PATTERN,
        id="KRP-R16",
        summary="a host that is sent a partition again puts it in the place of the one that it has written to since",
        shows_as="acknowledged writes are gone after the move",
        campaign="range-moves",
        caught_by=("linearizability", "scans"),
    ),
)

PLANTED_BUGS: dict[str, PlantedBug] = {record.name: record for record in _RECORDS}
"""Every planted bug by name."""


class _NoGenerationCheck(RangeHost):
    def _refusal(self, request: Any) -> str | None:
        return None if request.partition_id in self.store.held else NOT_HERE_YET


class _RepeatedSplitEmpties(RangeHost):
    def _handle_split(self, coordinator: NodeId, command: SplitPartition) -> None:
        held = self.store.held.get(command.right.id)
        if held is not None and held.info.generation == command.right.generation:
            self.store.record(InstallPartition(command.right, []))
        super()._handle_split(coordinator, command)


class _InclusiveEnd(RangePartition):
    def scan(self, wanted: KeyRange) -> Entries:
        return [
            (key, self.get(key))
            for key in self.keys
            if wanted.start <= key and (wanted.end is None or key <= wanted.end)
        ]


class _HalfSize(RangeHost):
    def _is_too_big(self, size: int) -> bool:
        return 2 * size >= self._settings.partition_size_max


class _SplitWithoutData(RangePartition):
    def split(self, left: Partition, right: Partition) -> tuple[Self, Self]:
        kept, _ = super().split(left, right)
        return kept, type(self)(right)


class _SplitAtStart(RangeHost):
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


class _EmptyRangesPermitted(RangeCoordinator):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.table = _CredulousTable()


class _NoEndIsTheLowestKey(RangeHost):
    def _handle_scan(self, client: NodeId, request: ScanKeys) -> None:
        partition = self._partition_for(client, request)
        if partition is not None:
            ends_nowhere = request.wanted.end is None
            self._answer(client, request, [] if ends_nowhere else partition.scan(request.wanted))


class _TableOrder(PartitionMap):
    def partitions_in(self, wanted: KeyRange) -> list[Partition]:
        return [each for _, each in sorted(self.partitions.items()) if each.range.overlaps(wanted)]


class _CopyFirstLetGoLater(RangeHost):
    _copying: frozenset[Partition] = frozenset()

    def _let_go(self, command: MovePartition) -> None:
        """The copy takes a while, and the partition is let go when it is done, with what was written meanwhile."""
        if command.partition in self._copying:
            return
        self._copying |= {command.partition}
        copy = RangePartition(command.partition, self.store.held[command.partition.id].entries())
        self.ports.timers.after(_COPY_US, lambda: self._let_go_at_last(command, copy))

    def _let_go_at_last(self, command: MovePartition, copy: RangePartition) -> None:
        self.store.record(command)
        self.store.leaving[command.partition.id] = (command.partition, copy)
        self._send_leaving()


class _AbsentWhereNotHeld(RangeHost):
    def _handle_read(self, client: NodeId, request: ReadKey) -> None:
        self._answer_or(super()._handle_read, client, request, None)

    def _handle_scan(self, client: NodeId, request: ScanKeys) -> None:
        self._answer_or(super()._handle_scan, client, request, [])

    def _answer_or(self, handle: Callable[..., None], client: NodeId, request: Any, nothing: Any) -> None:
        if self._refusal(request) == NOT_HERE_YET:
            self._answer(client, request, nothing)
        else:
            handle(client, request)


class _RepeatedInstallReplaces(RangeHost):
    def _handle_install(self, source: NodeId, message: InstallPartition) -> None:
        held = self.store.held.get(message.partition.id)
        if held is not None and held.info.generation == message.partition.generation:
            self._install(message)
        super()._handle_install(source, message)


_CHANGES: dict[str, Callable[[Parts], Parts]] = {
    "no-generation-check": layered("host", _NoGenerationCheck),
    "repeated-split-empties": layered("host", _RepeatedSplitEmpties),
    "inclusive-end": layered("partition", _InclusiveEnd),
    "split-at-half-the-maximum": layered("host", _HalfSize),
    "split-without-the-data": layered("partition", _SplitWithoutData),
    "split-at-the-start": together(layered("host", _SplitAtStart), layered("coordinator", _EmptyRangesPermitted)),
    "no-end-is-the-lowest-key": layered("host", _NoEndIsTheLowestKey),
    "scan-in-table-order": layered("map", _TableOrder),
    "writes-during-copy-lost": layered("host", _CopyFirstLetGoLater),
    "absent-where-not-held": layered("host", _AbsentWhereNotHeld),
    "repeated-install-replaces": layered("host", _RepeatedInstallReplaces),
}


def mutated_parts(names: Iterable[str]) -> Parts:
    """The parts of a cluster with the planted bugs `names`, the correct ones with none. Raises UsageError."""
    return with_bugs("range-kv", names, Parts(), _CHANGES)
