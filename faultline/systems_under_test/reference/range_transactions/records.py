"""The records in the log of a `range-transactions` node, and in its snapshots.

One log holds the decisions of the coordinator, the changes of ranges, and what happens to transactions on each range.
A snapshot of the state is a shorter log that leads to the same state, so `replay` is the one way to rebuild it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from faultline.systems_under_test.patterns.data_partitioning.coordinator_records import CoordinatorRecord
from faultline.systems_under_test.patterns.data_partitioning.key_range_partitions import Partition
from faultline.systems_under_test.patterns.data_partitioning.range_table import (
    HostPartition,
    MovePartition,
    SplitPartition,
)
from faultline.systems_under_test.reference.range_transactions.messages import InstallRange, RangeRecord

__all__ = [
    "DropRange",
    "GenerationSeen",
    "InRange",
    "LeavingRange",
    "Record",
    "StoreRecord",
    "decode_record",
    "decode_state",
    "encode_record",
    "encode_state",
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

_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(Record)
_STATE_DECODER: msgspec.msgpack.Decoder[list[Record]] = msgspec.msgpack.Decoder(list[Record])


def encode_record(record: Record) -> bytes:
    """Return the data of a log entry."""
    return _ENCODER.encode(record)


def decode_record(data: bytes) -> Record:
    """Return the record in the data of a log entry."""
    return _DECODER.decode(data)


def encode_state(records: Iterable[Record]) -> bytes:
    """Return the state that these records lead to, as it stands in a snapshot."""
    return _ENCODER.encode(list(records))


def decode_state(state: bytes) -> list[Record]:
    """Return the records of a snapshot. Raise `msgspec.MsgspecError` for bytes that are none."""
    return _STATE_DECODER.decode(state)
