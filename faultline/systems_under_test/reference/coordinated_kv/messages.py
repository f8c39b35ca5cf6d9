"""The messages of data nodes and clients of `coordinated-kv`, and the events that data nodes report of themselves.

With the core they speak its own protocol (`shared.client_messages`, `leases_and_watches.messages`), as any of
its clients does.
"""

from __future__ import annotations

from typing import Any

import msgspec

from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import PartitionContent, Written
from faultline.systems_under_test.reference.coordinated_kv.table import ClusterTable
from faultline.systems_under_test.reference.shared.key_commands import Command

__all__ = [
    "MESSAGES",
    "AlterInSync",
    "ClusterTableRead",
    "ConfirmReads",
    "ControllerActed",
    "DataRefused",
    "DataRequest",
    "DataResponse",
    "InstallReplica",
    "LeadershipBegan",
    "LeadershipResigned",
    "MembershipBegan",
    "ReadClusterTable",
    "ReadsConfirmed",
    "ReplicaChanged",
    "ReplicaCounted",
    "ReplicaRefused",
    "ReplicaStored",
    "ReplicasRecovered",
    "ReplicateWrite",
    "RequestServed",
    "TableSeen",
    "TableTaken",
]


class ReadClusterTable(msgspec.Struct, frozen=True, tag="read-cluster-table"):
    """A client asks a data node for its copy of the table."""


class ClusterTableRead(msgspec.Struct, frozen=True, tag="cluster-table-read"):
    """The copy of a data node, which may be old."""

    table: ClusterTable


class DataRequest(msgspec.Struct, frozen=True, tag="data-request"):
    """One request of a client to the leader of a partition, as far as it knows; a retry carries the same number."""

    request_number: int
    partition: int
    generation: int
    command: Command


class DataResponse(msgspec.Struct, frozen=True, tag="data-response"):
    """The answer: a value, or the code of an error."""

    request_number: int
    error: str | None = None
    value: Any = None


class DataRefused(msgspec.Struct, frozen=True, tag="data-refused"):
    """This node does not lead the partition, or not yet; its table names this leader, or none."""

    request_number: int
    partition: int
    leader: str
    generation: int


class InstallReplica(msgspec.Struct, frozen=True, tag="install-replica"):
    """A leader's whole partition, after `number` writes; it begins a generation, and closes gaps."""

    partition: int
    generation: int
    number: int
    content: PartitionContent


class ReplicateWrite(msgspec.Struct, frozen=True, tag="replicate-write"):
    """One write of a leader, with its number."""

    generation: int
    number: int
    written: Written


class ReplicaStored(msgspec.Struct, frozen=True, tag="replica-stored"):
    """A follower has all writes up to `number` on disk."""

    partition: int
    generation: int
    number: int


class ReplicaRefused(msgspec.Struct, frozen=True, tag="replica-refused"):
    """A follower knows of a later generation; the leader that hears this leads no longer."""

    partition: int
    generation: int


class ConfirmReads(msgspec.Struct, frozen=True, tag="confirm-reads"):
    """A leader asks whether there is a later generation (`read_mode=confirmed`)."""

    partition: int
    generation: int
    question: int


class ReadsConfirmed(msgspec.Struct, frozen=True, tag="reads-confirmed"):
    """A follower knows no later generation."""

    partition: int
    generation: int
    question: int


class AlterInSync(msgspec.Struct, frozen=True, tag="alter-in-sync"):
    """A leader asks the controller to store this set in sync; void once the entry has another revision."""

    partition: int
    generation: int
    revision: int
    in_sync: tuple[str, ...]


class LeadershipResigned(msgspec.Struct, frozen=True, tag="leadership-resigned"):
    """A leader serves no longer, in favour of its heir."""

    partition: int
    generation: int


MESSAGES: tuple[type[msgspec.Struct], ...] = (
    ReadClusterTable,
    ClusterTableRead,
    DataRequest,
    DataResponse,
    DataRefused,
    InstallReplica,
    ReplicateWrite,
    ReplicaStored,
    ReplicaRefused,
    ConfirmReads,
    ReadsConfirmed,
    AlterInSync,
    LeadershipResigned,
)
"""Every message among data nodes and clients."""


class MembershipBegan(msgspec.Struct, frozen=True, tag="ckv-membership-began"):
    """The node has a lease as a member."""

    incarnation: int


class TableSeen(msgspec.Struct, frozen=True, tag="ckv-table-seen"):
    """The node's watch tells that the core holds this version of the table, stored under this token."""

    version: int
    token: int


class TableTaken(msgspec.Struct, frozen=True, tag="ckv-table-taken"):
    """The node goes by this table from now on."""

    table: ClusterTable


class ControllerActed(msgspec.Struct, frozen=True, tag="ckv-controller-acted"):
    """A controller has stored this table in the core."""

    table: ClusterTable


class LeadershipBegan(msgspec.Struct, frozen=True, tag="ckv-leadership-began"):
    """The node leads `partition` and has so many writes of it; it serves no client yet."""

    partition: int
    generation: int
    number: int


class RequestServed(msgspec.Struct, frozen=True, tag="ckv-request-served"):
    """A leader answered a client out of the first `number` writes: by its lease, or by what all in sync confirmed."""

    partition: int
    generation: int
    number: int
    under_lease: bool = True


class ReplicaChanged(msgspec.Struct, frozen=True, tag="ckv-replica-changed"):
    """The node's copy is now of this generation, and has so many writes."""

    partition: int
    generation: int
    number: int


class ReplicaCounted(msgspec.Struct, frozen=True, tag="ckv-replica-counted"):
    """A leader has heard that `follower` has so many writes of this generation on disk."""

    follower: str
    partition: int
    generation: int
    number: int


class ReplicasRecovered(msgspec.Struct, frozen=True, tag="ckv-replicas-recovered"):
    """The node has started with these copies: partition, generation, number of writes."""

    replicas: tuple[tuple[int, int, int], ...]
