"""Partitions of equal size, assigned by a token ring: tokens say who owns what, whole partitions move.

The circle of the hashes (see `token_ring`) is cut into as many arcs of the same length as there are partitions, and an
arc belongs to the node that owns its first point. So a table, generations and moves are those of fixed partitions, and
only the question who should have which partition is answered by the ring: DeCandia and others call it strategy 2.

A node that joins gets the arcs that its tokens take from others, and nothing moves between these. Its tokens count as
soon as it has an arc, but an arc counts as its own only when the data is there: until then the table names the old
owner, also for ever, when the join is broken off. One node gets arcs at a time.

*Limit.* A node's share is a matter of chance, with one token above all; nothing evens it out. A node whose tokens take
no arc's first point gets nothing.

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
    """Where on the circle the arc of `partition` begins."""
    return partition * (CIRCLE // partitions)


class RingAssignment:
    """Who should own which of `partitions`, when each member has so many tokens."""

    ring_type: type[TokenRing] = TokenRing

    def __init__(self, partitions: int, tokens_per_node: int) -> None:
        self._partitions = partitions
        self._tokens_per_node = tokens_per_node
        self._tokens: dict[str, list[int]] = {}
        self._owners: dict[tuple[str, ...], list[str]] = {}

    def assign(self, members: Sequence[str], minimum: int) -> list[str]:
        """The first assignment. Raises `NotEnoughClusterNodes` with fewer than `minimum` members."""
        if len(members) < max(1, minimum):
            raise NotEnoughClusterNodes(f"{len(members)} members live, and the ring is not begun with fewer.")
        return list(self.owners(members))

    def owners(self, members: Iterable[str]) -> list[str]:
        """The owner of each partition when exactly `members` are in the ring."""
        names = tuple(sorted(members))
        if names not in self._owners:
            ring = self.ring_type()
            for member in names:
                ring.add(member, self.tokens(member, len(names)))
            places = range(self._partitions)
            self._owners[names] = [ring.owner_of(first_point(place, self._partitions)) for place in places]
        return self._owners[names]

    def plan(self, owners: Sequence[str], live: Sequence[str]) -> list[PartitionMove]:
        """What the next live member has still to get from other live ones: those of the ring first, then newcomers."""
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
        """The tokens of `member`, the same however many others there are."""
        if member not in self._tokens:
            self._tokens[member] = tokens_of(member, 0, self._tokens_per_node)
        return self._tokens[member]
