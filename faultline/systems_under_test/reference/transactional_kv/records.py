"""The records in the log of a `transactional-kv` node, and in its snapshots.

A snapshot of the state is a shorter log that leads to the same state: `Coordinator.records` and `Participant.records`
say which records suffice. So `replay` is the one way to rebuild a state, from a log and from a snapshot.

A coordinator remembers the ends of its last `transactions_remembered` transactions. Asked about an older one it answers
that it has forgotten, never that it was rolled back. Old versions of values are kept: only the log is bounded, not the
data.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from faultline.systems_under_test.patterns.data_partitioning.coordinator_records import CoordinatorRecord
from faultline.systems_under_test.patterns.data_partitioning.transaction_records import (
    Ceiling,
    Finished,
    PendingValue,
    Prepared,
    VersionKept,
)

__all__ = [
    "OracleLimit",
    "Record",
    "TimeGiven",
    "decode_record",
    "decode_state",
    "encode_record",
    "encode_state",
]


class OracleLimit(msgspec.Struct, frozen=True, tag="oracle-limit"):
    """Log record: numbers up to this one may have been given out."""

    limit: int


class TimeGiven(msgspec.Struct, frozen=True):
    """Trace: the oracle gave out this number."""

    time: int


Record = CoordinatorRecord | PendingValue | Prepared | Finished | Ceiling | VersionKept | OracleLimit
"""All kinds of records in a log of `transactional-kv`."""

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
