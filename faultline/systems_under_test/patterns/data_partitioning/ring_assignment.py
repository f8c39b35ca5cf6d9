"""Partitions of equal size, assigned by a token ring: tokens choose the owners, and whole partitions move.

The circle of the hashes (`token_ring`) is cut into as many arcs of the same length as there are partitions, and an arc
belongs to the node that owns its first point. So table, generations and moves are those of fixed partitions, and only
the owners are chosen by the ring: DeCandia and others call it strategy 2.

A node that joins gets the arcs that its tokens take from others, and no arc moves between the others. Its tokens count
as soon as it has an arc, but an arc is its own only when the data has arrived. Until then the table names the old
owner, and keeps naming it when the join is broken off. One node gets arcs at a time.

*Limit.* A node's share is a matter of chance, above all with one token, and it is not evened out. A node whose tokens
take no arc's first point gets no partition.

Sources: DeCandia and others, "Dynamo" (2007) 6.2; Patterns of Distributed Systems ch. 19.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import (
    NotEnoughClusterNodes,
    PartitionMove,
)
from faultline.systems_under_test.patterns.data_partitioning.token_ring import TokenRing, tokens_of

__all__ = ["CIRCLE", "RingAssignment", "first_point"]

CIRCLE = 1 << 127
"""As many places as `partition_hash` has values; that of the greatest comes after all tokens, and wraps."""


def first_point(partition: int, partitions: int) -> int:
    """Return the place on the circle at which the arc of `partition` begins."""
    return partition * (CIRCLE // partitions)


class RingAssignment:
    """The owners that each of `partitions` should have, when each member has `tokens_per_node` tokens."""

    ring_type: type[TokenRing] = TokenRing

    def __init__(self, partitions: int, tokens_per_node: int) -> None:
        self._partitions = partitions
        self._tokens_per_node = tokens_per_node
        self._tokens: dict[str, list[int]] = {}
        self._owners: dict[tuple[str, ...], list[str]] = {}

    def assign(self, members: Sequence[str], minimum: int) -> list[str]:
        """Return the first assignment. Raises `NotEnoughClusterNodes` with fewer than `minimum` members."""
        if len(members) < max(1, minimum):
            raise NotEnoughClusterNodes(f"{len(members)} members live, and the ring is not begun with fewer.")
        return list(self.owners(members))

    def owners(self, members: Iterable[str]) -> list[str]:
        """Return the owner of each partition when exactly `members` are in the ring."""
        names = tuple(sorted(members))
        if names not in self._owners:
            ring = self.ring_type()
            for member in names:
                ring.add(member, self.tokens(member, len(names)))
            places = range(self._partitions)
            self._owners[names] = [ring.owner_of(first_point(place, self._partitions)) for place in places]
        return self._owners[names]

    def plan(self, owners: Sequence[str], live: Sequence[str]) -> list[PartitionMove]:
        """Return the moves that the next live member still needs from others: members of the ring first, then
        newcomers.
        """
        in_ring = sorted(set(owners))
        newcomers = [member for member in live if member not in in_ring]
        moves = (self._moves_to(joining, owners, live) for joining in (*in_ring, *newcomers) if joining in live)
        return next((each for each in moves if each), [])

    def _moves_to(self, joining: str, owners: Sequence[str], live: Sequence[str]) -> list[PartitionMove]:
        right = self.owners({*owners, joining})
        return [
            PartitionMove(partition, owner, joining)
            for partition, owner in enumerate(owners)
            if right[partition] == joining != owner and owner in live
        ]

    # A method of its own, so that a planted bug can override it.

    def tokens(self, member: str, _members: int) -> list[int]:
        """Return the tokens of `member`, the same however many others there are."""
        if member not in self._tokens:
            self._tokens[member] = tokens_of(member, 0, self._tokens_per_node)
        return self._tokens[member]
