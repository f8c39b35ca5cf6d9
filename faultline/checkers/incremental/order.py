"""A graph that stays without a cycle while edges come: a dynamic topological order.

Nodes have ranks, and every edge runs from a lower to a higher one. An edge that runs up costs nothing. One that runs
down from `a` to `b` is a cycle when a path leads from `b` to `a`; otherwise the nodes between the two ranks that `b`
reaches or that reach `a` exchange their ranks, and no others are looked at (Pearce and Kelly, "A dynamic topological
sort algorithm for directed acyclic graphs", Journal of Experimental Algorithmics 11, 2006, section 3).

New nodes get the highest rank. So in a history that is in order nearly all edges run up, and those that run down
concern transactions that overlapped.

A node may be *passed over*: its predecessors are joined to its successors. That keeps all paths between the others.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["GrowingOrder"]


class GrowingOrder:
    """Nodes, which are integers, in an order in which all edges run forward."""

    def __init__(self) -> None:
        self._rank: dict[int, int] = {}
        # Dictionaries rather than sets, so that the order of a walk is that in which the edges came.
        self._after: dict[int, dict[int, None]] = {}
        self._before: dict[int, dict[int, None]] = {}
        self._next_rank = 0

    def __contains__(self, node: int) -> bool:
        """Return whether `node` is in the graph."""
        return node in self._rank

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self._rank)

    def add(self, node: int) -> None:
        """Add `node` behind all others, without edges."""
        self._rank[node] = self._next_rank
        self._after[node], self._before[node] = {}, {}
        self._next_rank += 1

    def join(self, before: int, after: int) -> tuple[int, ...]:
        """Add the edge from `before` to `after`; return the nodes of the cycle that it closes, none without one.

        An edge that closes a cycle is not added. The cycle begins with `after` and ends with `before`.
        """
        if before == after:
            return (before,)
        if after in self._after[before]:
            return ()
        if self._rank[before] > self._rank[after]:
            cycle = self._exchange(before, after)
            if cycle:
                return cycle
        self._after[before][after] = None
        self._before[after][before] = None
        return ()

    def has_edge(self, before: int, after: int) -> bool:
        """Return whether an edge leads from `before` to `after`."""
        return after in self._after[before]

    def remove(self, node: int) -> None:
        """Remove `node` with its edges."""
        del self._rank[node]
        for after in self._after.pop(node):
            del self._before[after][node]
        for before in self._before.pop(node):
            del self._after[before][node]

    def pass_over(self, node: int) -> None:
        """Remove `node`, and join each node before it to each node after it. No edge then runs down."""
        befores, afters = tuple(self._before[node]), tuple(self._after[node])
        self.remove(node)
        for before in befores:
            for after in afters:
                self._after[before][after] = None
                self._before[after][before] = None

    def _exchange(self, before: int, after: int) -> tuple[int, ...]:
        """Put `after` and what it reaches behind `before` and what reaches that; return the cycle if it is one."""
        rank = self._rank
        lowest, highest = rank[after], rank[before]
        reached = self._walk(after, self._after, lowest, highest)
        if before in reached:
            return _path(reached, before)
        reaching = self._walk(before, self._before, lowest, highest)
        # Both groups keep their order among themselves; together they get the ranks that they had.
        moved = [*sorted(reaching, key=rank.__getitem__), *sorted(reached, key=rank.__getitem__)]
        for node, new in zip(moved, sorted(rank[node] for node in moved), strict=True):
            rank[node] = new
        return ()

    def _walk(
        self, start: int, edges: Mapping[int, Mapping[int, None]], lowest: int, highest: int
    ) -> dict[int, int | None]:
        """Return the nodes that `edges` lead to from `start` between the two ranks, each with the one it came from."""
        found: dict[int, int | None] = {start: None}
        waiting = [start]
        while waiting:
            node = waiting.pop()
            for other in edges[node]:
                if other not in found and lowest <= self._rank[other] <= highest:
                    found[other] = node
                    waiting.append(other)
        return found


def _path(reached: Mapping[int, int | None], last: int) -> tuple[int, ...]:
    """Return the nodes of a walk from its start to `last`."""
    path = [last]
    while (earlier := reached[path[-1]]) is not None:
        path.append(earlier)
    return tuple(reversed(path))
