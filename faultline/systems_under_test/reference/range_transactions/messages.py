"""The messages of `range-transactions`, and the events that its nodes report about themselves.

A range is addressed by its id and generation, wherever it is: `ToRange` goes to the node that the sender's table names,
and a node that does not hold that generation refuses it. So neither a prepare nor a decision is taken for a range by a
node that has let it go.

Marks that nodes and clients report with `sometimes`, beside those of the patterns:

| mark | reached when |
|---|---|
| range-split-with-open-transaction | a range was split while a transaction had touched it, and was not prepared |
| range-split-with-prepared-transaction | a range was split while a transaction was prepared on it |
| range-moved-with-open-transaction | a host let a range go that a transaction had touched |
| range-moved-with-prepared-transaction | a host took over a range with a prepared transaction |
| stale-range-refused | a host refused a message for a range that it does not hold so any more, or not yet |
| protocol-message-refused | the same, of a message from a coordinator |
| commit-waited | a coordinator waited for its time to pass, while participants held their locks |
| read-restarted | a client read anew, at the time of a version that it could not place |
| read-restarted-over-several-keys | the same, with other keys read before |
| table-refreshed | a client fetched the table again after a refusal |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from faultline.systems_under_test.patterns.data_partitioning.key_range_partitions import Partition
from faultline.systems_under_test.patterns.data_partitioning.range_table import (
    HostPartition,
    MovePartition,
    SplitPartition,
)
from faultline.systems_under_test.patterns.data_partitioning.transaction_client import Verb
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import (
    Acknowledged,
    CommitTransaction,
    Inquiry,
    PrepareTransaction,
    RollBackTransaction,
    TransactionId,
    Vote,
)
from faultline.systems_under_test.patterns.data_partitioning.transaction_records import (
    Ceiling,
    Finished,
    PendingValue,
    Prepared,
    Promised,
    VersionKept,
)
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import HybridTimestamp
from faultline.systems_under_test.reference.ranges.messages import (
    PartitionReady,
    RegisterMember,
    SplitTrigger,
    TableRequest,
    TableResponse,
)
from faultline.systems_under_test.reference.transactions import messages as requests

__all__ = [
    "MESSAGES",
    "READ_AGAIN",
    "REQUESTS",
    "CommitTold",
    "FromRange",
    "InstallRange",
    "RangeCarried",
    "RangeEvent",
    "RangeHeld",
    "RangeRecord",
    "RangeRefused",
    "ReadWithin",
    "ToRange",
]

READ_AGAIN = "read-again"
"""The error of a read that cannot tell if a version came before it; the reply has the time to read at instead."""

RangeRecord = PendingValue | Prepared | Finished | Ceiling | VersionKept
"""The records from which the state of one range comes, in a log, in a snapshot, and on the way to another node."""


class ReadWithin(msgspec.Struct, frozen=True, tag="read-within"):
    """Read `key` as of `time`; versions up to `limit_us` are too close to be placed (0: no such limit)."""

    number: int
    key: str
    time: HybridTimestamp
    limit_us: int


class ToRange(msgspec.Struct, frozen=True, tag="to-range"):
    """A message for the range of this id, in this generation."""

    range_id: int
    generation: int
    message: (
        requests.GetInTransaction
        | requests.PutInTransaction
        | ReadWithin
        | PrepareTransaction
        | CommitTransaction
        | RollBackTransaction
    )


class FromRange(msgspec.Struct, frozen=True, tag="from-range"):
    """The answer or question of a range, under the name by which coordinators know it."""

    name: str
    message: Vote | Acknowledged | Inquiry


class RangeRefused(msgspec.Struct, frozen=True, tag="range-refused"):
    """The refusal of a coordinator's message: the range is not here in this generation."""

    range_id: int
    generation: int


class InstallRange(msgspec.Struct, frozen=True, tag="install-range"):
    """A range with all that is durable of it: versions, promises, and how transactions ended.

    The message of the host that let it go, and the entry in the log of the one that takes it over.
    """

    partition: Partition
    records: list[RangeRecord]


REQUESTS: Mapping[str, type[msgspec.Struct]] = {**requests.REQUESTS, Verb.READ_AT: ReadWithin}
"""The message for each verb of a client."""

MESSAGES: tuple[type[msgspec.Struct], ...] = (
    requests.Begin,
    requests.AddKey,
    requests.AskCommit,
    requests.AskRollback,
    requests.ReadTime,
    requests.Reply,
    ToRange,
    FromRange,
    RangeRefused,
    InstallRange,
    HostPartition,
    SplitPartition,
    MovePartition,
    PartitionReady,
    RegisterMember,
    SplitTrigger,
    TableRequest,
    TableResponse,
)
"""Every message that crosses the network."""


class RangeEvent(msgspec.Struct, frozen=True):
    """Trace: the participant of a range reported `event`, of the type `kind`."""

    name: str
    kind: str
    event: Any


class RangeHeld(msgspec.Struct, frozen=True):
    """Trace: the node serves this range from now on."""

    partition: Partition


class RangeCarried(msgspec.Struct, frozen=True):
    """Trace: this range continues the one named `origin`, with these promises."""

    origin: str
    partition: Partition
    promises: list[Promised]


class CommitTold(msgspec.Struct, frozen=True):
    """Trace: a coordinator tells a client of a commit at `time`, which must be before `earliest_us`."""

    id: TransactionId
    time: HybridTimestamp
    earliest_us: int
