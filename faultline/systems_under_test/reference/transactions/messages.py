"""The messages between clients and servers of transactional systems.

A client numbers its requests. A repetition carries the same number, and so does the reply.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from faultline.systems_under_test.patterns.data_partitioning.transaction_client import Verb
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import TransactionId, TransactionRef
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import HybridTimestamp

__all__ = [
    "REQUESTS",
    "AddKey",
    "AskCommit",
    "AskRollback",
    "Begin",
    "GetInTransaction",
    "PutInTransaction",
    "ReadAt",
    "ReadTime",
    "Reply",
]


class Begin(msgspec.Struct, frozen=True, tag="begin-transaction"):
    """Begin a transaction of the age of `first`, at a time after `seen`, the latest that the client knows of."""

    number: int
    first: TransactionRef | None
    seen: HybridTimestamp


class AddKey(msgspec.Struct, frozen=True, tag="add-key"):
    """Note that the transaction is about to touch `key`."""

    number: int
    id: TransactionId
    key: str


class GetInTransaction(msgspec.Struct, frozen=True, tag="get-in-transaction"):
    """Read `key`, the request of this position among those of the transaction to this server."""

    number: int
    ref: TransactionRef
    key: str
    position: int


class PutInTransaction(msgspec.Struct, frozen=True, tag="put-in-transaction"):
    """Write `key` if the transaction commits."""

    number: int
    ref: TransactionRef
    key: str
    value: Any
    position: int


class AskCommit(msgspec.Struct, frozen=True, tag="ask-commit"):
    """Commit the transaction, and answer whether it is committed."""

    number: int
    id: TransactionId


class AskRollback(msgspec.Struct, frozen=True, tag="ask-rollback"):
    """Give the transaction up."""

    number: int
    id: TransactionId


class ReadTime(msgspec.Struct, frozen=True, tag="read-time"):
    """Ask for a time to read at."""

    number: int
    seen: HybridTimestamp


class ReadAt(msgspec.Struct, frozen=True, tag="read-at"):
    """Read `key` as of `time`, outside of any transaction."""

    number: int
    key: str
    time: HybridTimestamp


class Reply(msgspec.Struct, frozen=True, tag="reply"):
    """The answer to the request of that number."""

    number: int
    error: str | None = None
    value: Any = None
    ref: TransactionRef | None = None
    time: HybridTimestamp | None = None


REQUESTS: Mapping[str, type[msgspec.Struct]] = {
    Verb.BEGIN: Begin,
    Verb.ADD_KEY: AddKey,
    Verb.GET: GetInTransaction,
    Verb.PUT: PutInTransaction,
    Verb.COMMIT: AskCommit,
    Verb.ROLL_BACK: AskRollback,
    Verb.READ_TIME: ReadTime,
    Verb.READ_AT: ReadAt,
}
"""The message for each verb of a client."""
