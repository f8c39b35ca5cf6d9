"""Token ring: the variant of fixed partitions in which the number of partitions grows with the nodes.

The hashes form a circle. Each node has one or several random *tokens* on it. A hash belongs to the first token that is
not below it, and after the last token the circle begins again:

    single token       athens 10 ─ byzantium 20 ─ cyrene 30        hash 25 ▶ cyrene, hash 31 ▶ athens (wraps)
    delphi joins, 40   cyrene 30 ─ delphi 40 ─ athens 10           delphi takes (30, 40] from athens, and nothing else

With one token a new node takes data from a single other node. With many (Cassandra has 256 per node) it takes a little
from most nodes.

A joining node first gets the data, and only then is it in the ring. Until then the old owners answer. When the join is
interrupted, they still have all data. Nodes join one at a time, because two could take the same range from its owner.

`RingAssignment` gives partitions of equal size to nodes by such a ring, for `partitioned-kv` with
`assignment=token-ring`. The circle is cut into arcs of the same length, one for each partition. An arc belongs to the
node that owns its first point. So the table, the generations and the moves are those of fixed partitions, and the ring
only chooses the owners: DeCandia and others call this strategy 2. A node that joins gets the arcs that its tokens take
from others, and no arc moves between the others. Its tokens count as soon as it has an arc, but it owns an arc only
after the data has arrived. Until then the table names the old owner, also when the join is interrupted. Only one node
gets arcs at a time.

*Limit.* The share of a node is random, above all with one token, and nothing evens it out. A node whose tokens take no
arc's first point gets no partition.

Sources: Patterns of Distributed Systems ch. 19, "Partitions proportional to number of nodes"; Karger and others, 1997;
DeCandia and others, "Dynamo" (2007) 6.2; Lakshman and Malik, "Cassandra" (2010). The printed second example gives
delphi's token 50 the range (40, 50]; with its own token 40 beside it, it takes (30, 50] from byzantium.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import (
    NotEnoughClusterNodes,
    PartitionMove,
    partition_hash,
)

__all__ = [
    "CIRCLE",
    "TOKENS_PER_NODE",
    "JoinInProgress",
    "NoTokens",
    "RingAssignment",
    "TokenRange",
    "TokenRing",
    "TokenTaken",
    "first_point",
    "tokens_of",
]

CIRCLE = 1 << 127
"""As many places as `partition_hash` has values; that of the greatest comes after all tokens, and wraps."""

TOKENS_PER_NODE = 256
"""The number of tokens of a node in Cassandra."""


class NoTokens(LookupError):
    """The ring has no nodes, so no hash has an owner."""


class TokenTaken(ValueError):
    """A token belongs to a node already."""


class JoinInProgress(RuntimeError):
    """Another node is joining; only one joins at a time."""


class TokenRange(msgspec.Struct, frozen=True):
    """The hashes above `above` up to `through`, around the end of the circle if need be; `owner` has them."""

    above: int
    through: int
    owner: str

    def contains(self, hashed: int) -> bool:
        """Return whether `hashed` lies in the range."""
        if self.above < self.through:
            return self.above < hashed <= self.through
        return hashed > self.above or hashed <= self.through


def tokens_of(node: str, time_us: int, count: int) -> list[int]:
    """Return `count` tokens for `node`, which begins at that time: random, and yet the same on every machine."""
    return [partition_hash(f"{node}:{time_us}:{number}") for number in range(count)]


class TokenRing:
    """The owners of all parts of the circle."""

    def __init__(self) -> None:
        self._nodes: dict[int, str] = {}
        self._sorted: list[int] = []
        self._joining: tuple[str, tuple[int, ...]] | None = None

    def owner_of(self, hashed: int) -> str:
        """Return the node with the first token that is not below `hashed`. Raises `NoTokens`."""
        if not self._sorted:
            raise NoTokens("the ring has no nodes")
        return self._nodes[self._sorted[self._place(hashed)]]

    def ranges(self) -> list[TokenRange]:
        """Return the whole circle, by ascending tokens; the first of them wraps."""
        return [
            TokenRange(self._sorted[number - 1], token, self._nodes[token]) for number, token in enumerate(self._sorted)
        ]

    def tokens(self) -> Mapping[int, str]:
        """Return the nodes by token, ascending."""
        return {token: self._nodes[token] for token in self._sorted}

    def add(self, node: str, tokens: Iterable[int]) -> None:
        """Put `node` into the ring. Raises `TokenTaken`, and then changes nothing."""
        wanted = tuple(tokens)
        if len(set(wanted)) < len(wanted) or any(token in self._nodes for token in wanted):
            raise TokenTaken(f"{node} wants a token that is taken; let it choose others")
        self._nodes.update(dict.fromkeys(wanted, node))
        self._sorted = sorted(self._nodes)

    def begin_join(self, node: str, tokens: Iterable[int]) -> list[TokenRange]:
        """Return the ranges whose data `node` must get before it may be in the ring, with their present owners.

        Raises `TokenTaken`, and `JoinInProgress` when another node is getting its data.
        """
        if self._joining is not None:
            raise JoinInProgress(f"{self._joining[0]} is joining")
        wanted = tuple(tokens)
        after = TokenRing()
        for token, owner in self._nodes.items():
            after.add(owner, [token])
        after.add(node, wanted)
        self._joining = (node, wanted)
        return self._taken_over(after, node)

    def _taken_over(self, after: TokenRing, node: str) -> list[TokenRange]:
        """Return the ranges of the new ring that `node` gets, each with its present owner; adjacent ones are joined."""
        if not self._sorted:
            return []
        taken: list[TokenRange] = []
        for part in after.ranges():
            if part.owner != node:
                continue
            if taken and taken[-1].through == part.above:
                taken[-1] = TokenRange(taken[-1].above, part.through, taken[-1].owner)
            else:
                taken.append(TokenRange(part.above, part.through, self.owner_of(part.through)))
        return taken

    def complete_join(self) -> None:
        """Count the tokens from now on: the data has arrived. Raises `RuntimeError` when no node is joining."""
        if self._joining is None:
            raise RuntimeError("no node is joining")
        joining, self._joining = self._joining, None
        self.add(*joining)

    def abandon_join(self) -> None:
        """Forget the node that was joining: all data stays with its owners."""
        self._joining = None

    # A method of its own, so that a planted bug can override it.

    def _place(self, hashed: int) -> int:
        return bisect_left(self._sorted, hashed) % len(self._sorted)


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
