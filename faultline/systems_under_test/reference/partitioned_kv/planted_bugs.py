"""The planted bugs of `partitioned-kv`: each a class put in front of the part that it breaks.

They break the system for good: never use them outside the harness.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from zlib import crc32

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.data_partitioning.cluster_directory import (
    ClusterDirectory,
    Migration,
    PartitionEntry,
    PartitionTable,
    PendingMigration,
)
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import (
    PartitionContent,
    PartitionMove,
    partition_hash,
)
from faultline.systems_under_test.patterns.data_partitioning.partition_host import (
    MIGRATING,
    SERVING,
    HostedPartition,
    PartitionHost,
)
from faultline.systems_under_test.patterns.data_partitioning.token_ring import RingAssignment, TokenRing, tokens_of
from faultline.systems_under_test.reference.partitioned_kv.client import PartitionedClient
from faultline.systems_under_test.reference.partitioned_kv.coordinator import Coordinator
from faultline.systems_under_test.reference.partitioned_kv.messages import PartitionRequest, PartitionResponse
from faultline.systems_under_test.reference.partitioned_kv.node import NodeParts, PartitionedNode
from faultline.systems_under_test.reference.shared.key_commands import GetValue
from faultline.systems_under_test.reference.shared.planted_bugs import LazyFlush, PlantedBugs

__all__ = ["BUGS"]

BUGS = PlantedBugs("partitioned-kv", NodeParts, pattern="fixed-partitions", campaign="partition-moves")


@BUGS.plant("salted-hash", "FXP-M1", part="client", caught_by=("linearizability", "FXP-I1", "FXP-I6"))
class _SaltedHash(PartitionedClient):
    """Keys are hashed with a salt that differs from process to process, as Python's hash() does.

    Shows as: each client finds another partition for a key, and misses the writes of the others.
    """

    def _partition_of(self, key: str) -> int:
        salt = crc32(self._ports.node_id.encode())
        return (partition_hash(key) ^ salt) % len(self._table.entries)


@BUGS.plant("mod-live-nodes", "FXP-M2", part="client", caught_by=("linearizability", "FXP-I1", "FXP-I6"))
class _ModLiveNodes(PartitionedClient):
    """The hash is taken modulo the number of live members.

    Shows as: keys vanish when a member joins, and come back when it dies.
    """

    def _partition_of(self, key: str) -> int:
        return partition_hash(key) % max(1, len(self._table.live))


@BUGS.plant("host-again-empties", "FXP-M3", part="host", caught_by=("linearizability",))
class _HostAgainEmpties(PartitionHost):
    """A repeated HostPartition puts a new, empty partition in the place of the old one.

    Shows as: acknowledged writes are gone.
    """

    def host(self, partition: int, generation: int, *, fresh: bool) -> bool:
        hosted = self.partitions.get(partition)
        if hosted is not None and hosted.generation == generation and hosted.state == SERVING:
            self.partitions[partition] = HostedPartition(generation, SERVING, PartitionContent({}, {}))
            return True
        return super().host(partition, generation, fresh=fresh)


@BUGS.plant("writes-while-migrating", "FXP-M4", part="host", caught_by=("linearizability",))
class _WritesWhileMigrating(PartitionHost):
    """A partition takes writes while its data is on the way to the next owner.

    Shows as: the writes acknowledged meanwhile are missing at the new owner.
    """

    def writable(self, partition: int, generation: int) -> HostedPartition:
        return self.readable(partition, generation)


@BUGS.plant("late-move-overwrites", "FXP-M5", part="host", caught_by=("linearizability", "FXP-R27"))
class _LateMoveOverwrites(PartitionHost):
    """A MovePartition that comes late or twice replaces the later writes of the new owner.

    Shows as: old values come back.
    """

    def install(self, migration: Migration, content: PartitionContent) -> bool:
        hosted = self.partitions.get(migration.partition)
        if hosted is not None and hosted.generation >= migration.generation and hosted.state != MIGRATING:
            hosted.values, hosted.answers = dict(content.values), dict(content.answers)
            return True
        return super().install(migration, content)


@BUGS.plant(
    "table-before-data", "FXP-M6", part="coordinator_parts.directory", caught_by=("linearizability", "FXP-I2", "FXP-I4")
)
class _TableBeforeData(ClusterDirectory):
    """The table names the new owner as soon as a move is decided, and that one begins empty.

    Shows as: reads find no value for keys that were written.
    """

    def _begin(self, migration: Migration) -> bool:
        begins = super()._begin(migration)
        if begins:
            self.entries[migration.partition] = PartitionEntry(migration.target, migration.generation)
        return begins


@BUGS.also("table-before-data", part="host")
class _BeginsWithNothing(PartitionHost):
    """The new owner takes the partition for one that was never anywhere."""

    def host(self, partition: int, generation: int, *, fresh: bool) -> bool:
        if self.known_generation(partition) < generation:
            self._begin_empty(partition, generation)
            return True
        return super().host(partition, generation, fresh=fresh)


@BUGS.plant(
    "moves-of-the-leader-only", "FXP-M7", part="coordinator", campaign="partition-leaders", caught_by=("FXP-I4",)
)
class _MovesOfTheLeaderOnly(Coordinator):
    """Only the leader that proposed a move drives it; the next one does not know of it.

    Shows as: after a change of leader the partition stays read-only for ever.
    """

    def start_leading(self, no_op_index: int) -> None:
        self._known_before = dict(self.directory.pending)
        super().start_leading(no_op_index)

    def _moves_to_drive(self) -> dict[int, PendingMigration]:
        before = self._known_before
        return {number: move for number, move in super()._moves_to_drive().items() if before.get(number) != move}


@BUGS.plant("surplus-dropped", "FXP-M8", part="coordinator_parts.directory", caught_by=("linearizability", "FXP-I2"))
class _SurplusDropped(ClusterDirectory):
    """Partitions that are above the average and fit nowhere are left out of the new table.

    Shows as: the last partitions have no owner any more.
    """

    def table(self) -> PartitionTable:
        table = super().table()
        live = max(1, len(table.live))
        kept = len(table.entries) - len(table.entries) % live
        return PartitionTable(table.version, table.entries[:kept], table.live)


@BUGS.plant("absent-instead-of-refused", "FXP-M9", part="node", caught_by=("linearizability",))
class _AbsentInsteadOfRefused(PartitionedNode):
    """A node that does not host a partition answers that the key is not there.

    Shows as: a client with an old table finds no value for keys that were written.
    """

    def _refuse(self, source: NodeId, request: PartitionRequest) -> None:
        if type(request.command) is GetValue:
            self.ports.network.send(source, PartitionResponse(request.request_number))
        else:
            super()._refuse(source, request)


@BUGS.plant("partitions-from-one", "FXP-M10", part="coordinator_parts.directory", caught_by=("FXP-I2",))
class _PartitionsFromOne(ClusterDirectory):
    """Partitions are numbered from 1 when they are assigned, and from 0 when a key is looked up.

    Shows as: the keys of partition 0 have no place.
    """

    def table(self) -> PartitionTable:
        table = super().table()
        return PartitionTable(table.version, table.entries[1:], table.live)


@BUGS.plant(
    "move-before-flush",
    "FXP-R29",
    part="host",
    campaign="partition-durability",
    caught_by=("linearizability", "FXP-I2", "FXP-I4"),
)
class _MoveBeforeFlush(LazyFlush, PartitionHost):
    """A partition's host flushes its log up to 200 ms late.

    Shows as: a killed node forgets writes, and that it had sent a partition away.
    """


class _EndsAtTheLastToken(TokenRing):
    def _place(self, hashed: int) -> int:
        return min(bisect_left(self._sorted, hashed), len(self._sorted) - 1)


@BUGS.plant(
    "no-wrap-around", "FXP-M11", part="coordinator_parts.ring", campaign="single-token-ring", caught_by=("FXP-R32",)
)
class _NoWrapAround(RingAssignment):
    """After the last token the circle does not begin again: partitions above it go to the last node.

    Shows as: partitions at the end of the circle are at another node than the ring says.
    """

    ring_type = _EndsAtTheLastToken


@BUGS.plant(
    "tokens-by-cluster-size", "FXP-R34", part="coordinator_parts.ring", campaign="token-ring", caught_by=("FXP-R32",)
)
class _TokensByClusterSize(RingAssignment):
    """The tokens of a node are drawn anew when the number of nodes changes.

    Shows as: when a node joins, partitions move between the older nodes.
    """

    def tokens(self, member: str, members: int) -> list[int]:
        return tokens_of(member, members, self._tokens_per_node)


@BUGS.plant(
    "several-join-at-once", "FXP-R35", part="coordinator_parts.ring", campaign="token-ring", caught_by=("FXP-R35",)
)
class _SeveralJoinAtOnce(RingAssignment):
    """All nodes that want to join the ring get their partitions at the same time.

    Shows as: partitions are on their way to two nodes.
    """

    def plan(self, owners: Sequence[str], live: Sequence[str]) -> list[PartitionMove]:
        right = self.owners({*owners, *live})
        moves = (PartitionMove(number, owner, right[number]) for number, owner in enumerate(owners))
        return [move for move in moves if move.source != move.target and {move.source, move.target} <= set(live)]
