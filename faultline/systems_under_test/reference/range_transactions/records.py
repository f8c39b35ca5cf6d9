"""The records in the log of a `range-transactions` node, and in its snapshots.

One log holds the decisions of the coordinator, the changes of ranges, and what happens to transactions on each range.
A snapshot of the state is a shorter log that leads to the same state, so `replay` is the one way to rebuild it.
"""

from __future__ import annotations

import msgspec

from faultline.systems_under_test.patterns.data_partitioning.coordinator_records import CoordinatorRecord, RecordCodec
from faultline.systems_under_test.patterns.data_partitioning.key_range_partitions import Partition
from faultline.systems_under_test.patterns.data_partitioning.range_table import (
    HostPartition,
    MovePartition,
    SplitPartition,
)
from faultline.systems_under_test.reference.range_transactions.messages import InstallRange, RangeRecord

__all__ = [
    "RECORDS",
    "DropRange",
    "GenerationSeen",
    "InRange",
    "LeavingRange",
    "Record",
    "StoreRecord",
]


class InRange(msgspec.Struct, frozen=True, tag="in-range"):
    """A record of the participant of one range."""

    range_id: int
    record: RangeRecord


class DropRange(msgspec.Struct, frozen=True, tag="drop-range"):
    """The other node has the range that moved away."""

    range_id: int


class LeavingRange(msgspec.Struct, frozen=True, tag="leaving-range"):
    """In a snapshot: a range on its way to another node, as it will be there."""

    partition: Partition
    records: list[RangeRecord]


class GenerationSeen(msgspec.Struct, frozen=True, tag="generation-seen"):
    """In a snapshot: the last generation of a range that was here and is no longer."""

    range_id: int
    generation: int


StoreRecord = (
    InRange | HostPartition | SplitPartition | MovePartition | InstallRange | DropRange | LeavingRange | GenerationSeen
)
"""The records of the ranges of a node."""

Record = CoordinatorRecord | StoreRecord
"""All kinds of records in a log of `range-transactions`."""

RECORDS: RecordCodec[Record] = RecordCodec(Record)
"""The bytes of these records."""
