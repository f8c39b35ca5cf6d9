"""A graph that must stay without cycles: a topological order, and the nodes that reach a node as bits of an integer.

The set of nodes that reach a node is the union of those of its predecessors, so one pass in topological order finds all
of them by or-ing integers: an arc costs one operation on n / 64 words. Bits are numbered in that order, so that an
integer is as long as the place of its node, and the sets of n nodes take n² / 16 bytes.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

import numpy as np

from faultline.checkers.isolation.polygraph import Arc

__all__ = ["Graph", "bits_at", "reaching"]

_FEW = 12
"""The number of columns up to which picking bits one by one is quicker than unpacking them."""

_CELLS_AT_ONCE = 1 << 24


class Graph:
    """Arcs between nodes 0 … count - 1."""

    __slots__ = ("after", "arcs")

    def __init__(self, count: int) -> None:
        self.after: list[list[int]] = [[] for _ in range(count)]
        self.arcs = 0

    def add(self, arcs: Iterable[Arc]) -> None:
        """Add `arcs`, each as often as it is given."""
        for source, target in arcs:
            self.after[source].append(target)
            self.arcs += 1

    def order(self, priority: Sequence[int] | None = None) -> list[int]:
        """Return the nodes in a topological order, the least `priority` first where there is a choice.

        Nodes on a cycle or behind one are missing.
        """
        after = self.after
        waits = [0] * len(after)
        for targets in after:
            for target in targets:
                waits[target] += 1
        if priority is not None:
            return self._order_by(waits, priority)
        order = [node for node, count in enumerate(waits) if not count]
        for node in order:
            for target in after[node]:
                waits[target] -= 1
                if not waits[target]:
                    order.append(target)
        return order

    def _order_by(self, waits: list[int], priority: Sequence[int]) -> list[int]:
        heap = [(priority[node], node) for node, count in enumerate(waits) if not count]
        heapq.heapify(heap)
        order = []
        while heap:
            node = heapq.heappop(heap)[1]
            order.append(node)
            for target in self.after[node]:
                waits[target] -= 1
                if not waits[target]:
                    heapq.heappush(heap, (priority[target], target))
        return order


def reaching(graph: Graph, order: Sequence[int], untracked: range) -> tuple[list[int], list[int]]:
    """Return for each node the set of nodes that reach it, itself not included, as bits; and the bit of each node.

    `order` is a topological order of all nodes. `untracked` nodes pass on what reaches them, but have no bit (-1), and
    their own sets are given up, which are the largest.
    """
    before = [0] * len(order)
    column = [-1] * len(order)
    tracked = 0
    for node in order:
        reached = before[node]
        if node in untracked:
            before[node] = 0
        else:
            column[node] = tracked
            reached |= 1 << tracked
            tracked += 1
        for target in graph.after[node]:
            before[target] |= reached
    return before, column


def bits_at(rows: Sequence[int], columns: Sequence[int]) -> list[int]:
    """Return, for each of `rows`, its bits at `columns` as an integer: bit k is the row's bit number columns[k]."""
    if len(columns) <= _FEW:
        return [sum((row >> column & 1) << place for place, column in enumerate(columns)) for row in rows]
    wanted = np.array(columns, dtype=np.int64)
    size, shift = (max(columns) >> 3) + 1, (wanted & 7).astype(np.uint8)
    picked: list[int] = []
    step = max(1, _CELLS_AT_ONCE // max(len(columns), size))
    mask = (1 << 8 * size) - 1
    for first in range(0, len(rows), step):
        text = b"".join((row & mask).to_bytes(size, "little") for row in rows[first : first + step])
        cells = np.frombuffer(text, dtype=np.uint8).reshape(-1, size)
        chosen = np.packbits(cells[:, wanted >> 3] >> shift & 1, axis=1, bitorder="little")
        picked += [int.from_bytes(row.tobytes(), "little") for row in chosen]
    return picked
