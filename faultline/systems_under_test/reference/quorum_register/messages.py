"""The messages of `quorum-register`, and the events that its replicas report.

Marks (`sometimes`), each a situation a campaign should have reached:

| mark | where | meaning |
|---|---|---|
| replicas-disagreed | node | a read found copies of different age |
| write-back-needed | node | a read had to store the copy it found before it could answer |
| no-quorum-to-ask | node | too few replicas answered a question |
| no-quorum-to-store | node | too few replicas acknowledged a store: the outcome is unknown |
| older-copy-refused | node | a store came after a newer one |
| client-retried | client | a read, or a write that certainly did nothing, went to another replica |
"""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = [
    "MESSAGES",
    "NEVER_WRITTEN",
    "AnswersCompleted",
    "CopyStored",
    "QueryRequest",
    "QueryResponse",
    "ReadValue",
    "Stamp",
    "StoreCompleted",
    "StoreRequest",
    "StoreResponse",
    "ValueResponse",
    "WriteValue",
]


class Stamp(msgspec.Struct, frozen=True, order=True, array_like=True):
    """The age of a value: a counter, then the node that chose it, then a number that node never uses again."""

    counter: int
    node: str
    number: int


NEVER_WRITTEN = Stamp(0, "", 0)
"""The stamp of a key without a value, older than all others."""


class ReadValue(msgspec.Struct, frozen=True, tag="read-value"):
    """A client's read of `key`."""

    request_number: int
    key: str


class WriteValue(msgspec.Struct, frozen=True, tag="write-value"):
    """A client's write of `value` to `key`."""

    request_number: int
    key: str
    value: Any


class ValueResponse(msgspec.Struct, frozen=True, tag="value-response"):
    """The answer to a client: a value, or the code of an error."""

    request_number: int
    error: str | None = None
    value: Any = None


class QueryRequest(msgspec.Struct, frozen=True, tag="query-request"):
    """First phase: a question for the copy of `key` at a replica."""

    correlation_id: int
    key: str


class QueryResponse(msgspec.Struct, frozen=True, tag="query-response"):
    """The copy that the replica has."""

    correlation_id: int
    stamp: Stamp
    value: Any


class StoreRequest(msgspec.Struct, frozen=True, tag="store-request"):
    """Second phase: a copy to be kept, unless the replica has a newer one."""

    correlation_id: int
    key: str
    stamp: Stamp
    value: Any


class StoreResponse(msgspec.Struct, frozen=True, tag="store-response"):
    """The copy, or a newer one, is durable at the replica."""

    correlation_id: int


MESSAGES: tuple[type[msgspec.Struct], ...] = (
    ReadValue,
    WriteValue,
    ValueResponse,
    QueryRequest,
    QueryResponse,
    StoreRequest,
    StoreResponse,
)
"""Every message that crosses the network."""


class CopyStored(msgspec.Struct, frozen=True):
    """Trace: this replica took a copy of `key`; `checksum` is of the value."""

    key: str
    stamp: Stamp
    checksum: int


class AnswersCompleted(msgspec.Struct, frozen=True):
    """Trace: a coordinator goes on with the answers of `replicas`; `needed` of them make a read quorum."""

    key: str
    needed: int
    replicas: tuple[str, ...]


class StoreCompleted(msgspec.Struct, frozen=True):
    """Trace: a coordinator takes the copy as stored, as `replicas` acknowledged; `needed` make a write quorum."""

    key: str
    stamp: Stamp
    needed: int
    replicas: tuple[str, ...] = ()
