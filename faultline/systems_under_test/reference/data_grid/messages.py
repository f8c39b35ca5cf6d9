"""The messages of `data-grid` beside those of its members, and the events that its nodes report.

Marks (`sometimes`), beside those of members:

| mark | reached when |
|---|---|
| table-made | a coordinator had heard all members and handed out the partitions |
| round-refused | a coordinator learned of a later round, and began one above it |
| minimum-size-not-reached | a coordinator of too few members made no table |
| backup-promoted | a partition went on at a backup, as its owner failed |
| partition-moved | a partition went on at another member although its owner lives |
| partition-away | no good copy of a partition was to be found |
| partition-begun-anew | all copies of a partition were lost |
| copy-sent-again | a backup lagged behind, and got the whole content again |
| duplicate-answered | a retried request was answered and not executed again |
| lease-missing | an owner held an answer back, as it had no lease |
| old-lease-awaited | a new owner waited until the lease of a silent one had run out |
| request-refused | a client asked a node that does not own the partition |
| copies-dropped | a group that dissolved dropped its data |
| dropped-writes-compared | an owner compared what a dissolved group had accepted with its own data |
"""

from __future__ import annotations

from typing import Any

import msgspec

from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import PartitionContent, Written
from faultline.systems_under_test.reference.data_grid.table import GridTable, MemberReport
from faultline.systems_under_test.reference.membership.messages import MEMBER_MESSAGES
from faultline.systems_under_test.reference.shared.key_commands import Command

__all__ = [
    "MESSAGES",
    "CollectCopies",
    "CopiesCollected",
    "CopiesDropped",
    "CopyReached",
    "CopyStored",
    "DropCopy",
    "DroppedWrite",
    "DroppedWrites",
    "DroppedWritesCompared",
    "DroppedWritesKnown",
    "GridRefused",
    "GridRequest",
    "GridResponse",
    "GridTableRead",
    "InstallCopy",
    "LeaseAcknowledged",
    "LeaseGranted",
    "LeaseRefused",
    "LeaseRequest",
    "PublishTable",
    "ReadGridTable",
    "ReplicateToBackup",
    "RequestServed",
    "RoundRefused",
    "TableFollowed",
    "TableMade",
    "TableTaken",
    "WriteAccepted",
]


class CollectCopies(msgspec.Struct, frozen=True, tag="collect-copies"):
    """The coordinator begins the table `version`: the receiver stops serving under earlier ones and tells its copies.

    It names the version of the membership, which the receiver must have come to.
    """

    version: int
    membership: int


class CopiesCollected(msgspec.Struct, frozen=True, tag="copies-collected"):
    """The answer to the coordinator."""

    version: int
    report: MemberReport


class RoundRefused(msgspec.Struct, frozen=True, tag="round-refused"):
    """The sender has taken part in a later round, `promised`."""

    version: int
    promised: int


class PublishTable(msgspec.Struct, frozen=True, tag="publish-table"):
    """The table that the coordinator made."""

    table: GridTable


class TableTaken(msgspec.Struct, frozen=True, tag="table-taken"):
    """The sender follows the table `version`."""

    version: int


class LeaseRequest(msgspec.Struct, frozen=True, tag="lease-request"):
    """A question whether the receiver follows the table `version` too, sent at `sent_us` by the sender's clock."""

    version: int
    sent_us: int


class LeaseGranted(msgspec.Struct, frozen=True, tag="lease-granted"):
    """The sender follows that table, and has promised to follow no other that it knows of."""

    version: int
    sent_us: int


class LeaseRefused(msgspec.Struct, frozen=True, tag="lease-refused"):
    """The sender follows the table `version` and has taken part in the round `promised`."""

    version: int
    promised: int


class InstallCopy(msgspec.Struct, frozen=True, tag="install-copy"):
    """The owner's whole content of a partition; `at_risk` has the values before writes that a merge may drop."""

    partition: int
    generation: int
    number: int
    content: PartitionContent
    at_risk: dict[str, Any]


class ReplicateToBackup(msgspec.Struct, frozen=True, tag="replicate-to-backup"):
    """The owner's write `number`."""

    generation: int
    number: int
    written: Written
    is_at_risk: bool


class CopyStored(msgspec.Struct, frozen=True, tag="copy-stored"):
    """The sender's copy has come to `number` in `generation`."""

    partition: int
    generation: int
    number: int


class DropCopy(msgspec.Struct, frozen=True, tag="drop-copy"):
    """All holders of `generation` have the data: an older copy elsewhere is of no use any more."""

    partition: int
    generation: int


class DroppedWrite(msgspec.Struct, frozen=True, array_like=True):
    """A write of a group that dissolved: the value before the group was on its own, and the last one."""

    key: str
    before: Any
    value: Any


class DroppedWrites(msgspec.Struct, frozen=True, tag="dropped-writes"):
    """The writes of one partition that a dissolved group had accepted, for the owner in the group that stays."""

    partition: int
    writes: tuple[DroppedWrite, ...]


class DroppedWritesKnown(msgspec.Struct, frozen=True, tag="dropped-writes-known"):
    """The owner has reported the dropped writes of `partition`."""

    partition: int


class ReadGridTable(msgspec.Struct, frozen=True, tag="read-grid-table"):
    """A client asks for the table."""


class GridTableRead(msgspec.Struct, frozen=True, tag="grid-table-read"):
    """The newest table that the sender follows."""

    table: GridTable


class GridRequest(msgspec.Struct, frozen=True, tag="grid-request"):
    """A client's request for a key of `partition`; a retry carries the same number."""

    request_number: int
    partition: int
    command: Command


class GridResponse(msgspec.Struct, frozen=True, tag="grid-response"):
    """The answer: a value, or the code of an error."""

    request_number: int
    value: Any = None
    error: str | None = None


class GridRefused(msgspec.Struct, frozen=True, tag="grid-refused"):
    """The receiver of the request does not own the partition, or does not serve it yet."""

    request_number: int


MESSAGES: tuple[type[msgspec.Struct], ...] = (
    *MEMBER_MESSAGES,
    CollectCopies,
    CopiesCollected,
    RoundRefused,
    PublishTable,
    TableTaken,
    LeaseRequest,
    LeaseGranted,
    LeaseRefused,
    InstallCopy,
    ReplicateToBackup,
    CopyStored,
    DropCopy,
    DroppedWrites,
    DroppedWritesKnown,
    ReadGridTable,
    GridTableRead,
    GridRequest,
    GridResponse,
    GridRefused,
)
"""Every message that crosses the network."""


class TableMade(msgspec.Struct, frozen=True):
    """Trace: a coordinator made this table."""

    table: GridTable


class TableFollowed(msgspec.Struct, frozen=True):
    """Trace: the node follows this table from now on; `is_at_risk` when its members are no majority of all nodes."""

    table: GridTable
    is_at_risk: bool


class CopyReached(msgspec.Struct, frozen=True):
    """Trace: the node's copy of a partition has come to `number` in `generation`."""

    partition: int
    generation: int
    number: int


class LeaseAcknowledged(msgspec.Struct, frozen=True):
    """Trace: the node told `owner` that it follows the table `version` as well."""

    owner: str
    version: int


class RequestServed(msgspec.Struct, frozen=True):
    """Trace: an owner answered a client out of the first `number` writes of a generation.

    It holds a lease of `lease_us` from `needed` nodes under the table `version`. `backups` hold the same writes.
    `is_promised` is false where both halves of a split may serve.
    """

    partition: int
    generation: int
    number: int
    backups: tuple[str, ...]
    version: int
    needed: int
    lease_us: int
    is_promised: bool


class WriteAccepted(msgspec.Struct, frozen=True):
    """Trace: an owner in a group without a majority acknowledged a write, which a merge may drop."""

    partition: int
    key: str


class CopiesDropped(msgspec.Struct, frozen=True):
    """Trace: the node's group dissolved, and the node drops a partition of which it was the owner.

    `keys` are those of the writes that its group had acknowledged on its own.
    """

    partition: int
    keys: tuple[str, ...]


class DroppedWritesCompared(msgspec.Struct, frozen=True):
    """Trace: an owner reports the writes that a dissolved group had acknowledged.

    The values of `lost` keys are gone. Those of `conflicting` keys were written in both groups, and the dropped group's
    value is gone.
    """

    partition: int
    lost: tuple[str, ...]
    conflicting: tuple[str, ...]
