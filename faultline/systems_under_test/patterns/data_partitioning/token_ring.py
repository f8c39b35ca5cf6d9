"""Token ring: the variant of fixed partitions in which there are as many partitions as the nodes bring along.

The hashes form a circle. Each node has one or several *tokens* on it, chosen by chance, and a hash belongs to the first
token that is not below it; after the last token the circle begins again:

    single token       athens 10 ─ byzantium 20 ─ cyrene 30        hash 25 ▶ cyrene, hash 31 ▶ athens (wraps)
    delphi joins, 40   cyrene 30 ─ delphi 40 ─ athens 10           delphi takes (30, 40] from athens, and nothing else

With one token a new node relieves a single other. With many (Cassandra has 256 per node) it takes a little from most.

A joining node first gets the data and only then stands in the ring: until then the old owners answer, and when the join
is broken off they still have everything. One node joins at a time: two could take the same range from its owner.

*Limit.* It is the reckoning alone. `partitioned-kv` with `assignment=token-ring` assigns partitions by it (see
`ring_assignment`); what moves, when it moves and who answers meanwhile is the same as for fixed partitions.

Sources: Patterns of Distributed Systems ch. 19, "Partitions proportional to number of nodes"; Karger and others, 1997;
DeCandia and others, "Dynamo" (2007) 6.2; Lakshman and Malik, "Cassandra" (2010). The printed second example gives
delphi's token 50 the range (40, 50]; with its own token 40 beside it, what it takes from byzantium is (30, 50].
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping

import msgspec

from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import partition_hash

__all__ = ["TOKENS_PER_NODE", "JoinInProgress", "NoTokens", "TokenRange", "TokenRing", "TokenTaken", "tokens_of"]

TOKENS_PER_NODE = 256
"""How many tokens a node has in Cassandra."""


class NoTokens(LookupError):
    """Nobody is in the ring, so nothing has an owner."""


class TokenTaken(ValueError):
    """A token belongs to a node already."""


class JoinInProgress(RuntimeError):
    """Another node is joining; one at a time."""


class TokenRange(msgspec.Struct, frozen=True):
    """The hashes above `above` up to `through`, around the end of the circle if need be; they are `owner`'s."""

    above: int
    through: int
    owner: str

    def contains(self, hashed: int) -> bool:
        """Does `hashed` lie in it?"""
        if self.above < self.through:
            return self.above < hashed <= self.through
        return hashed > self.above or hashed <= self.through


def tokens_of(node: str, time_us: int, count: int) -> list[int]:
    """`count` tokens for `node`, which begins at that time: chosen by chance, and yet the same on every machine."""
    return [partition_hash(f"{node}:{time_us}:{number}") for number in range(count)]


class TokenRing:
    """Which node owns which part of the circle."""

    def __init__(self) -> None:
        self._nodes: dict[int, str] = {}
        self._sorted: list[int] = []
        self._joining: tuple[str, tuple[int, ...]] | None = None

    def owner_of(self, hashed: int) -> str:
        """The node with the first token that is not below `hashed`. Raises `NoTokens`."""
        if not self._sorted:
            raise NoTokens("nobody is in the ring")
        return self._nodes[self._sorted[self._place(hashed)]]

    def ranges(self) -> list[TokenRange]:
        """The whole circle, by ascending tokens; the first of them wraps."""
        return [
            TokenRange(self._sorted[number - 1], token, self._nodes[token]) for number, token in enumerate(self._sorted)
        ]

    def tokens(self) -> Mapping[int, str]:
        """The nodes by token, ascending."""
        return {token: self._nodes[token] for token in self._sorted}

    def add(self, node: str, tokens: Iterable[int]) -> None:
        """Put `node` into the ring. Raises `TokenTaken`, and then nothing is changed."""
        wanted = tuple(tokens)
        if len(set(wanted)) < len(wanted) or any(token in self._nodes for token in wanted):
            raise TokenTaken(f"{node} wants a token that is taken; let it choose others")
        self._nodes.update(dict.fromkeys(wanted, node))
        self._sorted = sorted(self._nodes)

    def begin_join(self, node: str, tokens: Iterable[int]) -> list[TokenRange]:
        """The ranges, with their present owners, whose data `node` has to get before it may be in the ring.

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
        """Of the new ring, what `node` gets, runs of its own tokens in one, each with the owner it has now."""
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
        """The data has arrived: the tokens count from now on. Raises `RuntimeError` when nobody is joining."""
        if self._joining is None:
            raise RuntimeError("nobody is joining")
        joining, self._joining = self._joining, None
        self.add(*joining)

    def abandon_join(self) -> None:
        """The one who was joining is gone: everything stays with its owners."""
        self._joining = None

    # A method of its own, so that a planted bug can override it.

    def _place(self, hashed: int) -> int:
        return bisect_left(self._sorted, hashed) % len(self._sorted)
