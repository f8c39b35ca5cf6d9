"""The messages of `partitioned-kv`, beside those of the core that keeps the directory, and what its nodes report."""

from __future__ import annotations

from typing import Any

import msgspec

from faultline.systems_under_test.patterns.data_partitioning.cluster_directory import Migration, PartitionTable
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import PartitionContent
from faultline.systems_under_test.reference.shared.key_commands import (
    CompareAndSet,
    GetValue,
    SetValue,
)

__all__ = [
    "CONTROL_MESSAGES",
    "MESSAGES",
    "CancelPartitionMigration",
    "CoordinatorRedirect",
    "HostPartition",
    "HostPartitionAck",
    "HostStarted",
    "KeyStored",
    "MigrationCancelledByHost",
    "MigrationCompleteMessage",
    "MovePartition",
    "NodeHeartbeat",
    "PartitionMovementComplete",
    "PartitionRefused",
    "PartitionRequest",
    "PartitionResponse",
    "PartitionTaken",
    "PartitionsAssigned",
    "PartitionsHosted",
    "PartitionsMoving",
    "ReadTable",
    "RegisterClusterNodeRequest",
    "RegisterClusterNodeResponse",
    "RequestPartitionMigration",
    "RingMoves",
    "RingSettled",
    "TableApplied",
    "TablePublished",
    "TableResponse",
    "WriteAccepted",
]


class RegisterClusterNodeRequest(msgspec.Struct, frozen=True, tag="register-cluster-node-request"):
    """A node wants to be a member."""


class RegisterClusterNodeResponse(msgspec.Struct, frozen=True, tag="register-cluster-node-response"):
    """It is one: the registration is committed."""


class CoordinatorRedirect(msgspec.Struct, frozen=True, tag="coordinator-redirect"):
    """This node does not lead the core; as far as it knows, `leader` does."""

    leader: str | None


class NodeHeartbeat(msgspec.Struct, frozen=True, tag="node-heartbeat"):
    """A member lives, and has the table of that version."""

    table_version: int


class TablePublished(msgspec.Struct, frozen=True, tag="table-published"):
    """The coordinator's answer to a heartbeat, and its news after a change; None when the member's table is current."""

    table: PartitionTable | None


class HostPartition(msgspec.Struct, frozen=True, tag="host-partition"):
    """Serve this partition under this generation; a fresh one has never been served, and is begun empty."""

    partition: int
    generation: int
    fresh: bool


class HostPartitionAck(msgspec.Struct, frozen=True, tag="host-partition-ack"):
    """Host to coordinator: the partition is served."""

    partition: int
    generation: int


class RequestPartitionMigration(msgspec.Struct, frozen=True, tag="request-partition-migration"):
    """Coordinator to source: send the partition to the target."""

    migration: Migration


class CancelPartitionMigration(msgspec.Struct, frozen=True, tag="cancel-partition-migration"):
    """Coordinator to source: keep the partition, if it has not left."""

    migration: Migration


class MigrationCompleteMessage(msgspec.Struct, frozen=True, tag="migration-complete-message"):
    """Source to coordinator: the target has the data, and the copy here is gone."""

    migration: Migration


class MigrationCancelledByHost(msgspec.Struct, frozen=True, tag="migration-cancelled-by-host"):
    """Source to coordinator: the partition stays."""

    migration: Migration


class MovePartition(msgspec.Struct, frozen=True, tag="move-partition"):
    """Source to target: all data of the partition."""

    migration: Migration
    content: PartitionContent


class PartitionMovementComplete(msgspec.Struct, frozen=True, tag="partition-movement-complete"):
    """Target to source: the data is stored."""

    migration: Migration


class ReadTable(msgspec.Struct, frozen=True, tag="read-table"):
    """A client asks any node for the table."""


class TableResponse(msgspec.Struct, frozen=True, tag="table-response"):
    """The table of the node that was asked."""

    table: PartitionTable


class PartitionRequest(msgspec.Struct, frozen=True, tag="partition-request"):
    """A request for `command` in this partition, which by the client's table the receiver serves in this generation."""

    request_number: int
    partition: int
    generation: int
    command: GetValue | SetValue | CompareAndSet


class PartitionResponse(msgspec.Struct, frozen=True, tag="partition-response"):
    """The answer to a request: a value, or the code of an error."""

    request_number: int
    error: str | None = None
    value: Any = None


class PartitionRefused(msgspec.Struct, frozen=True, tag="partition-refused"):
    """A refusal: the partition is not served here under that generation, or takes no writes while it moves."""

    request_number: int
    migrating: bool = False


CONTROL_MESSAGES: tuple[type[msgspec.Struct], ...] = (
    RegisterClusterNodeRequest,
    RegisterClusterNodeResponse,
    CoordinatorRedirect,
    NodeHeartbeat,
    TablePublished,
    HostPartition,
    HostPartitionAck,
    RequestPartitionMigration,
    CancelPartitionMigration,
    MigrationCompleteMessage,
    MigrationCancelledByHost,
    MovePartition,
    PartitionMovementComplete,
)
"""The messages between members and coordinator."""

MESSAGES: tuple[type[msgspec.Struct], ...] = (
    *CONTROL_MESSAGES,
    ReadTable,
    TableResponse,
    PartitionRequest,
    PartitionResponse,
    PartitionRefused,
)
"""Every message type that crosses the network."""


class HostStarted(msgspec.Struct, frozen=True):
    """Trace: a node has read its partitions from its disk: pairs of partition and generation."""

    partitions: tuple[tuple[int, int], ...]


class PartitionsHosted(msgspec.Struct, frozen=True):
    """Trace: this node has this part in a partition from now on; `state` is empty for none."""

    partition: int
    generation: int
    state: str


class PartitionTaken(msgspec.Struct, frozen=True):
    """Trace: this node has taken in the data with which the generation of the partition begins."""

    partition: int
    generation: int


class WriteAccepted(msgspec.Struct, frozen=True):
    """Trace: a write is executed in this partition under this generation."""

    partition: int
    generation: int


class KeyStored(msgspec.Struct, frozen=True):
    """Trace: `key` is kept in this one of `partitions`."""

    key: str
    partition: int
    partitions: int


class TableApplied(msgspec.Struct, frozen=True):
    """Trace: a replica of the directory holds this table, for so many partitions, after that log entry."""

    table: PartitionTable
    partitions: int


class PartitionsAssigned(msgspec.Struct, frozen=True):
    """Trace: these loads are planned, by a first assignment or a rebalancing that makes them even."""

    loads: tuple[int, ...]


class RingMoves(msgspec.Struct, frozen=True):
    """Trace: a replica of a ring's directory holds these owners and moves, each a partition and its target."""

    owners: tuple[str, ...]
    moves: tuple[tuple[int, str], ...]
    tokens_per_node: int


class RingSettled(msgspec.Struct, frozen=True):
    """Trace: all owners live and the coordinator finds that each has the partitions of its tokens."""

    owners: tuple[str, ...]
    tokens_per_node: int


class PartitionsMoving(msgspec.Struct, frozen=True):
    """Trace: a replica of the directory holds so many moves that are not over."""

    pending: int
