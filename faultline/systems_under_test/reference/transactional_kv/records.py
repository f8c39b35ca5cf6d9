"""What stands in the log of a `transactional-kv` node, and in its snapshots: the same kinds of records.

A snapshot of the state is a shorter log that leads to the same state: `Coordinator.records` and `Participant.records`
say which records suffice. So there is one way to rebuild a state, `replay`, whatever it is rebuilt from.

What became of a transaction is remembered for the last `transactions_remembered` of each coordinator; whoever asks
about an older one is told that it is forgotten, never that it was rolled back. Old versions of values are kept: they
are data, and the log is bounded, not they.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from faultline.harness.world.ports import Storage
from faultline.systems_under_test.patterns.data_partitioning.coordinator_records import CoordinatorRecord
from faultline.systems_under_test.patterns.data_partitioning.transaction_records import (
    Ceiling,
    Finished,
    PendingValue,
    Prepared,
    VersionKept,
)
from faultline.systems_under_test.patterns.data_replication.compacted_log import CompactedLog

__all__ = [
    "NodeLog",
    "OracleLimit",
    "OwnLog",
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
"""Everything that is written to a log of `transactional-kv`."""

_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(Record)
_STATE_DECODER: msgspec.msgpack.Decoder[list[Record]] = msgspec.msgpack.Decoder(list[Record])


def encode_record(record: Record) -> bytes:
    """The data of a log entry."""
    return _ENCODER.encode(record)


def decode_record(data: bytes) -> Record:
    """The record in the data of a log entry."""
    return _DECODER.decode(data)


def encode_state(records: Iterable[Record]) -> bytes:
    """The state that these records lead to, as it stands in a snapshot."""
    return _ENCODER.encode(list(records))


def decode_state(state: bytes) -> list[Record]:
    """The records of a snapshot. Raises `msgspec.MsgspecError` for bytes that are none."""
    return _STATE_DECODER.decode(state)


class NodeLog(Protocol):
    """The one log of a node: a `RecordLog` that can be read back."""

    def append(self, record: Record) -> None:
        """Add a record; durable after the next `flush`."""

    def flush(self) -> None:
        """What is sent from now on waits until all records are durable."""

    def recover(self) -> list[Record]:
        """All records that lead to the state before the restart, in order."""

    def compact(self, state: bytes) -> None:
        """Everything so far leads to `state`: it may stand in place of the records."""


class OwnLog:
    """The log on the node's own disk: implements `NodeLog`."""

    def __init__(
        self, storage: Storage, segment_size_bytes: int, every_entries: int, on_due: Callable[[], None]
    ) -> None:
        self._log = CompactedLog(storage, every_entries, on_due, segment_size_bytes_max=segment_size_bytes)
        self.flush = self._log.flush
        self.compact = self._log.compact

    def append(self, record: Record) -> None:
        """See `NodeLog`."""
        self._log.append(_ENCODER.encode(record))

    def recover(self) -> list[Record]:
        """See `NodeLog`."""
        state, entries = self._log.recover()
        return [*(decode_state(state) if state is not None else ()), *map(decode_record, entries)]
