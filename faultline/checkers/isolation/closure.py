"""Reachability in a graph that grows arc by arc and must stay without cycles.

For each node the set of nodes that it reaches, and of those that reach it, are kept as bits of one integer: an arc is
added by or-ing integers, and whether an arc would close a cycle is one bit. A copy is cheap, because integers are
shared until they change; backtracking needs many copies.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["Reachability"]


class Reachability:
    """The transitive closure of an acyclic graph on nodes 0 … size - 1; `work` counts the sets that were changed."""

    __slots__ = ("after", "before", "work")

    def __init__(self, size: int) -> None:
        self.after = [0] * size
        self.before = [0] * size
        self.work = 0

    def copy(self) -> Reachability:
        """Return an independent copy."""
        twin = Reachability(0)
        twin.after, twin.before, twin.work = self.after.copy(), self.before.copy(), self.work
        return twin

    def has(self, source: int, target: int) -> bool:
        """Return whether `source` reaches `target`."""
        return bool(self.after[source] >> target & 1)

    def closes_cycle(self, source: int, target: int) -> bool:
        """Return whether an arc from `source` to `target` would close a cycle."""
        return source == target or bool(self.after[target] >> source & 1)

    def add(self, source: int, target: int) -> bool:
        """Add an arc; return False, and change no set, when it would close a cycle."""
        if self.has(source, target):
            return True
        if self.closes_cycle(source, target):
            return False
        above = self.before[source] | 1 << source
        below = self.after[target] | 1 << target
        self.work += above.bit_count() + below.bit_count()
        for node in _bits(above):
            self.after[node] |= below
        for node in _bits(below):
            self.before[node] |= above
        return True


def _bits(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
