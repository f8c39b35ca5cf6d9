"""The messages by which a coordinator of key ranges, its hosts and its clients agree on the table, and its reports."""

from __future__ import annotations

import msgspec

from faultline.systems_under_test.patterns.data_partitioning.key_range_partitions import Partition

__all__ = [
    "ASK_AGAIN",
    "NOT_HERE_YET",
    "STALE_TABLE",
    "PartitionReady",
    "ProposalReceived",
    "RegisterMember",
    "SplitTrigger",
    "TableChanged",
    "TableRequest",
    "TableResponse",
]

STALE_TABLE = "stale-partition-table"
"""The refusal when the partition was split or moved after the client fetched its table."""

NOT_HERE_YET = "partition-not-here-yet"
"""The refusal when the client knows of a change that the host has not made yet."""

ASK_AGAIN = (STALE_TABLE, NOT_HERE_YET)
"""The refusals after which the client fetches the table and asks again."""


class RegisterMember(msgspec.Struct, frozen=True, tag="register-member"):
    """A host's sign of life to the coordinator, at intervals."""


class PartitionReady(msgspec.Struct, frozen=True, tag="partition-ready"):
    """A host holds the partition of this generation, or a later one."""

    partition_id: int
    generation: int


class SplitTrigger(msgspec.Struct, frozen=True, tag="split-trigger"):
    """A host proposes to split its partition of this generation at `split_key`; `reason` is size or load."""

    partition_id: int
    generation: int
    split_key: str
    reason: str


class TableRequest(msgspec.Struct, frozen=True, tag="table-request"):
    """A client asks the coordinator for the table of partitions."""

    request_number: int


class TableResponse(msgspec.Struct, frozen=True, tag="table-response"):
    """The table, empty before it is first made."""

    request_number: int
    partitions: tuple[Partition, ...]


class TableChanged(msgspec.Struct, frozen=True):
    """Trace: applying the entry at `index` of the coordinator's log gave this table."""

    index: int
    partitions: tuple[Partition, ...]


class ProposalReceived(msgspec.Struct, frozen=True):
    """Trace: the coordinator has the proposal to split the partition of this generation."""

    partition_id: int
    generation: int
