"""The messages of `quorum-kv`, and the events that its replicas report.

Marks (`sometimes`), each a situation a campaign should have reached:

| mark | where | meaning |
|---|---|---|
| siblings-kept | node | a key has several concurrent values |
| siblings-resolved | node | a write replaced several values at once |
| obsolete-write-refused | node | a client wrote without knowing the node's latest update |
| read-repaired | node | a read found a replica that lacked a value |
| not-enough-copies | node | too few replicas acknowledged a write: the outcome is unknown |
| next-replica-asked | client | a replica did not answer, so the next one in order is the first to write |
"""

from __future__ import annotations

from typing import Any

import msgspec

from faultline.systems_under_test.patterns.data_replication.version_vector import (
    EMPTY_VECTOR,
    VersionedValue,
    VersionVector,
)

__all__ = [
    "MESSAGES",
    "CountersRecovered",
    "FetchRequest",
    "FetchResponse",
    "GetSiblings",
    "LocateRequest",
    "LocateResponse",
    "PutValue",
    "ReplicateRequest",
    "ReplicateResponse",
    "SiblingsReceived",
    "SiblingsResponse",
    "SiblingsStored",
    "WriteRefused",
    "WriteTaken",
]


class LocateRequest(msgspec.Struct, frozen=True, tag="locate-request"):
    """A client's question whether the replica is there, as opening a connection would ask."""

    request_number: int


class LocateResponse(msgspec.Struct, frozen=True, tag="locate-response"):
    """The replica is there."""

    request_number: int


class GetSiblings(msgspec.Struct, frozen=True, tag="get-siblings"):
    """A client's read of `key`."""

    request_number: int
    key: str


class PutValue(msgspec.Struct, frozen=True, tag="put-value"):
    """A client's write of `value` in knowledge of `context`; `update` numbers its writes of this key."""

    request_number: int
    key: str
    value: Any
    context: VersionVector
    update: int


class SiblingsResponse(msgspec.Struct, frozen=True, tag="siblings-response"):
    """The answer to a client: all concurrent values and their one context, or the code of an error."""

    request_number: int
    error: str | None = None
    values: tuple[Any, ...] = ()
    context: VersionVector = EMPTY_VECTOR


class FetchRequest(msgspec.Struct, frozen=True, tag="fetch-request"):
    """A question for the siblings of `key` at a replica."""

    correlation_id: int
    key: str


class FetchResponse(msgspec.Struct, frozen=True, tag="fetch-response"):
    """The siblings that `replica` has."""

    correlation_id: int
    replica: str
    siblings: tuple[VersionedValue, ...]


class ReplicateRequest(msgspec.Struct, frozen=True, tag="replicate-request"):
    """The siblings of `key` to be kept, except those that the replica has a descendant of."""

    correlation_id: int
    key: str
    siblings: tuple[VersionedValue, ...]


class ReplicateResponse(msgspec.Struct, frozen=True, tag="replicate-response"):
    """The siblings, or values that replaced them, are durable at the replica."""

    correlation_id: int


MESSAGES: tuple[type[msgspec.Struct], ...] = (
    LocateRequest,
    LocateResponse,
    GetSiblings,
    PutValue,
    SiblingsResponse,
    FetchRequest,
    FetchResponse,
    ReplicateRequest,
    ReplicateResponse,
)
"""Every message that crosses the network."""


class SiblingsStored(msgspec.Struct, frozen=True):
    """Trace: the siblings of `key` at a replica from now on."""

    key: str
    siblings: tuple[VersionedValue, ...]


class CountersRecovered(msgspec.Struct, frozen=True):
    """Trace: a replica starts with the counters of its log: the updates it has numbered, for each key."""

    counters: dict[str, int]


class WriteTaken(msgspec.Struct, frozen=True):
    """Trace: a replica is the first to take this update of a client."""

    key: str
    client: str
    update: int


class WriteRefused(msgspec.Struct, frozen=True):
    """Trace: a replica refused this update of a client as obsolete."""

    key: str
    client: str
    update: int


class SiblingsReceived(msgspec.Struct, frozen=True):
    """Trace: another node sent these siblings of `key`, so they are durable at that node."""

    key: str
    siblings: tuple[VersionedValue, ...]
