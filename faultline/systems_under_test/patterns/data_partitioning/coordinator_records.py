"""The records that a coordinator of two-phase commit writes, the log that it needs, and the bytes of records.

Source: Patterns of Distributed Systems ch. 21.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import TransactionId, TransactionRef
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import HybridTimestamp

__all__ = [
    "Begun",
    "CoordinatorRecord",
    "KeyAdded",
    "NumbersForgotten",
    "RecordCodec",
    "RecordLog",
    "StatusChanged",
    "TransactionStatus",
]

_Record = TypeVar("_Record")


class RecordLog(Protocol):
    """The server's one write-ahead log, as a coordinator and a participant use it."""

    def append(self, record: Any) -> None:
        """Add a record; durable after the next `flush`."""

    def flush(self) -> None:
        """Hold back messages that are sent from now on until all records are durable."""


class RecordCodec(Generic[_Record]):
    """The bytes of records of one kind, each in an entry of a log, or all together in a snapshot."""

    def __init__(self, kind: Any) -> None:
        """Encode and decode records of `kind`, a record type or a union of them."""
        self.encode: Callable[[_Record], bytes] = msgspec.msgpack.Encoder().encode
        self.decode: Callable[[bytes], _Record] = msgspec.msgpack.Decoder(kind).decode
        self._decode_all: Callable[[bytes], list[_Record]] = msgspec.msgpack.Decoder(list[kind]).decode

    def encode_all(self, records: Iterable[_Record]) -> bytes:
        """Return the state that these records lead to, as it stands in a snapshot."""
        return msgspec.msgpack.encode(list(records))

    def decode_all(self, state: bytes) -> list[_Record]:
        """Return the records of a snapshot. Raise `msgspec.MsgspecError` for bytes that are none."""
        return self._decode_all(state)


class TransactionStatus(Enum):
    """The progress of a transaction, as its coordinator's log has it."""

    ACTIVE = "active"
    PREPARING = "preparing"
    COMMITTED = "committed"
    COMPLETE = "complete"
    ROLLING_BACK = "rolling-back"
    ROLLED_BACK = "rolled-back"


class Begun(msgspec.Struct, frozen=True, tag="begun"):
    """Log record: a transaction began here."""

    ref: TransactionRef


class KeyAdded(msgspec.Struct, frozen=True, tag="key-added"):
    """Log record: the transaction is about to touch this key."""

    id: TransactionId
    key: str


class StatusChanged(msgspec.Struct, frozen=True, tag="status-changed"):
    """Log record: a transaction reached `status`; `time` is the one under which it commits."""

    id: TransactionId
    status: TransactionStatus
    time: HybridTimestamp | None = None


class NumbersForgotten(msgspec.Struct, frozen=True, tag="numbers-forgotten"):
    """Record of a snapshot: of transactions up to `last`, only those in the snapshot are remembered."""

    last: int


CoordinatorRecord = Begun | KeyAdded | StatusChanged | NumbersForgotten
"""The records from which a coordinator's state comes."""
