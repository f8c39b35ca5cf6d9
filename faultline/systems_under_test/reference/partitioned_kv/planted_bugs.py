"""The planted bugs of `partitioned-kv`: each a record, and a change to one of its parts.

They break it for good: never use them outside the harness.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from zlib import crc32

from faultline.harness.system import PlantedBug
from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.data_partitioning.cluster_directory import (
    ClusterDirectory,
    Migration,
    PartitionEntry,
    PartitionTable,
    PendingMigration,
)
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import PartitionMove, partition_hash
from faultline.systems_under_test.patterns.data_partitioning.partition_host import (
    MIGRATING,
    SERVING,
    HostedPartition,
    PartitionContent,
    PartitionHost,
)
from faultline.systems_under_test.patterns.data_partitioning.ring_assignment import RingAssignment
from faultline.systems_under_test.patterns.data_partitioning.token_ring import TokenRing, tokens_of
from faultline.systems_under_test.reference.partitioned_kv.client import PartitionedClient
from faultline.systems_under_test.reference.partitioned_kv.coordinator import Coordinator
from faultline.systems_under_test.reference.partitioned_kv.messages import PartitionRequest, PartitionResponse
from faultline.systems_under_test.reference.partitioned_kv.node import NodeParts, PartitionedNode
from faultline.systems_under_test.reference.shared.key_commands import GetValue
from faultline.systems_under_test.reference.shared.planted_bugs import (
    LazyFlush,
    class_with_bugs,
    layered,
    together,
    with_bugs,
)

__all__ = ["PLANTED_BUGS", "client_class", "mutated_parts", "node_class"]

_PATTERN = "fixed-partitions"

_RECORDS = (
    PlantedBug(
        name="salted-hash",
        pattern=_PATTERN,
        id="FXP-M1",
        summary="keys are hashed with a salt that differs from process to process, as Python's hash() does",
        shows_as="each client finds another partition for a key: what one wrote is not there for the next",
        campaign="partition-moves",
        caught_by=("linearizability", "FXP-I1", "FXP-I6"),
    ),
    PlantedBug(
        name="mod-live-nodes",
        pattern=_PATTERN,
        id="FXP-M2",
        summary="the hash is taken modulo the number of live members",
        shows_as="keys vanish when a member joins, and come back when it dies",
        campaign="partition-moves",
        caught_by=("linearizability", "FXP-I1", "FXP-I6"),
    ),
    PlantedBug(
        name="host-again-empties",
        pattern=_PATTERN,
        id="FXP-M3",
        summary="a repeated HostPartition puts a new, empty partition in the place of the one that is there",
        shows_as="acknowledged writes are gone",
        campaign="partition-moves",
        caught_by=("linearizability",),
    ),
    PlantedBug(
        name="writes-while-migrating",
        pattern=_PATTERN,
        id="FXP-M4",
        summary="a partition takes writes while its data is on the way to the next owner",
        shows_as="what was acknowledged meanwhile is missing at the new owner",
        campaign="partition-moves",
        caught_by=("linearizability",),
    ),
    PlantedBug(
        name="late-move-overwrites",
        pattern=_PATTERN,
        id="FXP-M5",
        summary="a MovePartition that comes late or twice replaces what the new owner has written since",
        shows_as="old values come back",
        campaign="partition-moves",
        caught_by=("linearizability", "FXP-R27"),
    ),
    PlantedBug(
        name="table-before-data",
        pattern=_PATTERN,
        id="FXP-M6",
        summary="the table names the new owner as soon as a move is decided, and that one begins with nothing",
        shows_as="reads find nothing where there was something",
        campaign="partition-moves",
        caught_by=("linearizability", "FXP-I2", "FXP-I4"),
    ),
    PlantedBug(
        name="moves-of-the-leader-only",
        pattern=_PATTERN,
        id="FXP-M7",
        summary="only the leader that proposed a move drives it; the next one does not know of it",
        shows_as="after a change of leader the partition stays read-only for ever",
        campaign="partition-leaders",
        caught_by=("FXP-I4",),
    ),
    PlantedBug(
        name="surplus-dropped",
        pattern=_PATTERN,
        id="FXP-M8",
        summary="partitions that are above the average and fit nowhere are left out of the new table",
        shows_as="the last partitions have no owner any more",
        campaign="partition-moves",
        caught_by=("linearizability", "FXP-I2"),
    ),
    PlantedBug(
        name="absent-instead-of-refused",
        pattern=_PATTERN,
        id="FXP-M9",
        summary="a node that does not host a partition answers that the key is not there",
        shows_as="a client with an old table reads nothing where there was something",
        campaign="partition-moves",
        caught_by=("linearizability",),
    ),
    PlantedBug(
        name="partitions-from-one",
        pattern=_PATTERN,
        id="FXP-M10",
        summary="partitions are numbered from 1 when they are assigned, and from 0 when a key is looked up",
        shows_as="the keys of partition 0 have no place",
        campaign="partition-moves",
        caught_by=("FXP-I2",),
    ),
    PlantedBug(
        name="move-before-flush",
        pattern=_PATTERN,
        id="FXP-R29",
        summary="what a partition's host writes down is flushed up to 200 ms later",
        shows_as="a killed node forgets writes, and that it had sent a partition away",
        campaign="partition-durability",
        caught_by=("linearizability", "FXP-I2", "FXP-I4"),
    ),
    PlantedBug(
        name="no-wrap-around",
        pattern=_PATTERN,
        id="FXP-M11",
        summary="after the last token the circle does not begin again: what lies above it goes to the last node",
        shows_as="partitions at the end of the circle are at another node than the ring says",
        campaign="single-token-ring",
        caught_by=("FXP-R32",),
    ),
    PlantedBug(
        name="tokens-by-cluster-size",
        pattern=_PATTERN,
        id="FXP-R34",
        summary="the tokens of a node are drawn anew when the number of nodes changes",
        shows_as="when a node joins, partitions move between those who were there before",
        campaign="token-ring",
        caught_by=("FXP-R32",),
    ),
    PlantedBug(
        name="several-join-at-once",
        pattern=_PATTERN,
        id="FXP-R35",
        summary="all nodes that want to join the ring get their partitions at the same time",
        shows_as="partitions are on their way to two nodes",
        campaign="token-ring",
        caught_by=("FXP-R35",),
    ),
)

PLANTED_BUGS: dict[str, PlantedBug] = {record.name: record for record in _RECORDS}
"""Every planted bug by name."""


class _SaltedHash(PartitionedClient):
    def _partition_of(self, key: str) -> int:
        salt = crc32(self._ports.node_id.encode())
        return (partition_hash(key) ^ salt) % len(self._table.entries)


class _ModLiveNodes(PartitionedClient):
    def _partition_of(self, key: str) -> int:
        return partition_hash(key) % max(1, len(self._table.live))


class _HostAgainEmpties(PartitionHost):
    def host(self, partition: int, generation: int, *, fresh: bool) -> bool:
        hosted = self.partitions.get(partition)
        if hosted is not None and hosted.generation == generation and hosted.state == SERVING:
            self.partitions[partition] = HostedPartition(generation, SERVING, PartitionContent({}, {}))
            return True
        return super().host(partition, generation, fresh=fresh)


class _WritesWhileMigrating(PartitionHost):
    def writable(self, partition: int, generation: int) -> HostedPartition:
        return self.readable(partition, generation)


class _LateMoveOverwrites(PartitionHost):
    def install(self, migration: Migration, content: PartitionContent) -> bool:
        hosted = self.partitions.get(migration.partition)
        if hosted is not None and hosted.generation >= migration.generation and hosted.state != MIGRATING:
            hosted.values, hosted.answers = dict(content.values), dict(content.answers)
            return True
        return super().install(migration, content)


class _TableBeforeData(ClusterDirectory):
    def _begin(self, migration: Migration) -> bool:
        begins = super()._begin(migration)
        if begins:
            self.entries[migration.partition] = PartitionEntry(migration.target, migration.generation)
        return begins


class _BeginsWithNothing(PartitionHost):
    def host(self, partition: int, generation: int, *, fresh: bool) -> bool:
        if self.known_generation(partition) < generation:
            self._begin_empty(partition, generation)
            return True
        return super().host(partition, generation, fresh=fresh)


class _MovesOfTheLeaderOnly(Coordinator):
    def became_leader(self) -> None:
        self._known_before = dict(self.directory.pending)
        super().became_leader()

    def _moves_to_drive(self) -> dict[int, PendingMigration]:
        before = self._known_before
        return {number: move for number, move in super()._moves_to_drive().items() if before.get(number) != move}


class _SurplusDropped(ClusterDirectory):
    def table(self) -> PartitionTable:
        table = super().table()
        live = max(1, len(table.live))
        kept = len(table.entries) - len(table.entries) % live
        return PartitionTable(table.version, table.entries[:kept], table.live)


class _PartitionsFromOne(ClusterDirectory):
    def table(self) -> PartitionTable:
        table = super().table()
        return PartitionTable(table.version, table.entries[1:], table.live)


class _AbsentInsteadOfRefused(PartitionedNode):
    def _refuse(self, source: NodeId, request: PartitionRequest) -> None:
        if type(request.command) is GetValue:
            self.ports.network.send(source, PartitionResponse(request.request_number))
        else:
            super()._refuse(source, request)


class _MoveBeforeFlush(LazyFlush, PartitionHost):
    pass


class _EndsAtTheLastToken(TokenRing):
    def _place(self, hashed: int) -> int:
        return min(bisect_left(self._sorted, hashed), len(self._sorted) - 1)


class _NoWrapAround(RingAssignment):
    ring_type = _EndsAtTheLastToken


class _TokensByClusterSize(RingAssignment):
    def tokens(self, member: str, members: int) -> list[int]:
        return tokens_of(member, members, self._tokens_per_node)


class _SeveralJoinAtOnce(RingAssignment):
    def plan(self, owners: Sequence[str], live: Sequence[str]) -> list[PartitionMove]:
        right = self.owners({*owners, *live})
        moves = (PartitionMove(number, owner, right[number]) for number, owner in enumerate(owners))
        return [move for move in moves if move.source != move.target and {move.source, move.target} <= set(live)]


def _coordinator_part(part: str, change: type) -> Callable[[NodeParts], NodeParts]:
    def changed(parts: NodeParts) -> NodeParts:
        return replace(parts, coordinator_parts=layered(part, change)(parts.coordinator_parts))

    return changed


_CHANGES: dict[str, Callable[[NodeParts], NodeParts]] = {
    "host-again-empties": layered("host", _HostAgainEmpties),
    "writes-while-migrating": layered("host", _WritesWhileMigrating),
    "late-move-overwrites": layered("host", _LateMoveOverwrites),
    "table-before-data": together(
        layered("host", _BeginsWithNothing), _coordinator_part("directory", _TableBeforeData)
    ),
    "moves-of-the-leader-only": layered("coordinator", _MovesOfTheLeaderOnly),
    "surplus-dropped": _coordinator_part("directory", _SurplusDropped),
    "partitions-from-one": _coordinator_part("directory", _PartitionsFromOne),
    "no-wrap-around": _coordinator_part("ring", _NoWrapAround),
    "tokens-by-cluster-size": _coordinator_part("ring", _TokensByClusterSize),
    "several-join-at-once": _coordinator_part("ring", _SeveralJoinAtOnce),
    "move-before-flush": layered("host", _MoveBeforeFlush),
}

_CLIENTS: dict[str, type[PartitionedClient]] = {"salted-hash": _SaltedHash, "mod-live-nodes": _ModLiveNodes}

_NODES: dict[str, type[PartitionedNode]] = {"absent-instead-of-refused": _AbsentInsteadOfRefused}


def client_class(names: Iterable[str]) -> type[PartitionedClient]:
    """The client with those of the planted bugs `names` that sit in it."""
    return class_with_bugs(names, PartitionedClient, _CLIENTS)


def node_class(names: Iterable[str]) -> type[PartitionedNode]:
    """The node with those of the planted bugs `names` that sit in it."""
    return class_with_bugs(names, PartitionedNode, _NODES)


def mutated_parts(names: Iterable[str]) -> NodeParts:
    """The parts of a node with the planted bugs `names`, the correct ones with none. Raises UsageError."""
    return with_bugs("partitioned-kv", names, NodeParts(), _CHANGES, elsewhere=(*_CLIENTS, *_NODES))
