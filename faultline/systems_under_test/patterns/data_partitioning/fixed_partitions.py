"""Fixed Partitions: hash keys to a fixed number of partitions, and move partitions, never single keys, between nodes.

*Problem.* Data that does not fit on one node is spread by the hash of its key. But `hash mod nodes` gives nearly every
key another node whenever a node joins, and nearly all data would have to move.

*Idea.* There are many more partitions than nodes, and their number never changes: a key's partition is always `hash mod
partitions`. A small table says which node hosts each partition. A coordinator, the leader of a consistent core, keeps
it in a replicated log. A new node gets some whole partitions, and no other data moves.

    key ─ hash mod 9 ─▶ partition 5 ─ table ─▶ byzantium, generation 3

Each entry of the table has a *generation*, which every change of owner raises. Clients keep a copy of the table and
name the generation in each request. A node that does not serve the partition under that generation refuses. A stale
table therefore costs a round trip, and never gives an answer from the wrong node. Control messages carry the generation
too: a late or repeated `HostPartition` or `MovePartition` changes nothing. A move takes these steps

    coordinator ─ request ─▶ source (takes no more writes) ─ whole partition ─▶ target ─ ack ─▶ source (drops its copy)
    source ─ complete ─▶ coordinator (commits the new owner) ─ host ─▶ target (serves from now on)

so two nodes never serve a partition at the same time. `partition_host` has the nodes' part, `cluster_directory` the
state of the coordinator, and `retried_messages` the messages that it repeats. `token_ring` is the variant in which the
number of partitions grows with the nodes. It also assigns partitions of equal size to nodes by such a ring.

*Invariants.* FXP-I1 a key's partition is the same at all times and places. FXP-I2 the table has one owner per
partition, and one node at a time serves it. FXP-I3 acknowledged writes survive moves. FXP-I4 when the cluster is
quiet, each node hosts what the table says. FXP-I5 loads differ by one at most. FXP-I6 a partition holds only its own
keys.

*Tolerates.* Members that join, die and come back. Lost, late and repeated messages. A coordinator that dies at any step
of an assignment or a move: the next leader of the core goes on from the log.

*Does not tolerate.* A node that stays away while its partitions have no replicas. It remains their owner, they are
unavailable until it returns, and they are never created empty on another node. A single hot partition: a move only
moves the load. Range queries: keys that are neighbours have unrelated hashes (see key-range partitions).

*Workloads.* `register` and `read-write` on `partitioned-kv`, while members join and partitions move.

*Checkers.* Linearizability per key; the invariants.

*Planted bugs.* `salted-hash`, `mod-live-nodes`, `host-again-empties`, `writes-while-migrating`,
`late-move-overwrites`, `table-before-data`, `moves-of-the-leader-only`, `surplus-dropped`, `absent-instead-of-refused`,
`partitions-from-one`, `move-before-flush`; of the token ring `no-wrap-around`, `tokens-by-cluster-size`,
`several-join-at-once`.

Sources: Patterns of Distributed Systems ch. 19; the partitions of Kafka, Akka (ten per node), Hazelcast (271) and
Ignite (1024, by rendezvous hashing: Thaler and Ravishankar 1998).
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import md5
from typing import Any

import msgspec

__all__ = [
    "FIRST_GENERATION",
    "Answer",
    "NotEnoughClusterNodes",
    "PartitionContent",
    "PartitionMove",
    "Written",
    "assign_by_rendezvous",
    "assign_round_robin",
    "partition_hash",
    "partition_of",
    "plan_rebalancing",
]

FIRST_GENERATION = 1
"""The generation of every partition under its first owner."""


class NotEnoughClusterNodes(Exception):
    """Fewer members live than the first assignment needs."""


class PartitionMove(msgspec.Struct, frozen=True, array_like=True):
    """A move of one partition from one member to another."""

    partition: int
    source: str
    target: str


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """The answer to the last write of a client: the number of the request, an error code or none, a value."""

    request_number: int
    error: str | None = None
    value: Any = None


class PartitionContent(msgspec.Struct, frozen=True, array_like=True):
    """All that moves with a partition: its values in the order of their first writing, and the answers by client."""

    values: dict[str, Any]
    answers: dict[str, Answer]


class Written(msgspec.Struct, frozen=True, tag="written", array_like=True):
    """A write: the new value of `key` (none is written when the client got an error), and the answer to the client."""

    partition: int
    key: str
    value: Any
    client: str
    answer: Answer


def partition_hash(key: str) -> int:
    """Return the hash of `key`, the same in every process.

    It is the MD5 digest as a signed big-endian integer, without its sign. Python's own `hash` differs from process to
    process.
    """
    return abs(int.from_bytes(md5(key.encode(), usedforsecurity=False).digest(), "big", signed=True))


def partition_of(key: str, partitions: int) -> int:
    """Return the partition of `key`, from 0 on; it does not depend on how many nodes there are."""
    return partition_hash(key) % partitions


def assign_round_robin(partitions: int, members: Sequence[str], minimum: int) -> list[str]:
    """Return an owner for each partition, in turn. Raises `NotEnoughClusterNodes` with fewer than `minimum` members."""
    _require(members, minimum)
    return [members[partition % len(members)] for partition in range(partitions)]


def assign_by_rendezvous(partitions: int, members: Sequence[str], minimum: int) -> list[str]:
    """Return an owner for each partition: the member with the highest hash of member and partition together.

    Any process can compute it without a table; loads vary by chance. Raises `NotEnoughClusterNodes` with fewer than
    `minimum` members.
    """
    _require(members, minimum)
    return [max(members, key=lambda member: partition_hash(f"{member}:{partition}")) for partition in range(partitions)]


def _require(members: Sequence[str], minimum: int) -> None:
    if len(members) < max(1, minimum):
        raise NotEnoughClusterNodes(
            f"{len(members)} members live, and partitions are not assigned to fewer than {max(1, minimum)}."
        )


def plan_rebalancing(owners: Sequence[str], live: Sequence[str]) -> list[PartitionMove]:
    """Return the fewest moves after which the loads of the `live` members differ by one at most.

    `owners` has the owner of each partition. Partitions of members that do not live stay where they are, since only
    their owners could send them.
    """
    held: dict[str, list[int]] = {member: [] for member in live}
    for partition, owner in enumerate(owners):
        if owner in held:
            held[owner].append(partition)
    moves: list[PartitionMove] = []
    while held:
        # Of several that are equally loaded the first in the given order, so that every replica would plan the same.
        source = max(live, key=lambda member: len(held[member]))
        target = min(live, key=lambda member: len(held[member]))
        if len(held[source]) - len(held[target]) <= 1:
            break
        partition = held[source].pop()
        held[target].append(partition)
        moves.append(PartitionMove(partition, source, target))
    return moves
