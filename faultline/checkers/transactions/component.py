"""One strongly connected component, laid out for walking: neighbours as lists, hubs opened, real time implicit.

Inside a component the real-time edges are not drawn either. Sorted by invocation, the successors of a transaction are a
suffix. A breadth-first search that remembers the beginning of the suffix it has visited sees each transaction once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from faultline.checkers.transactions.columns import TransactionColumns
from faultline.checkers.transactions.components import strongly_connected
from faultline.checkers.transactions.edges import DependencyEdges, EdgeKind

__all__ = ["Component", "EdgeLookup", "Step", "edge_lookup"]


@dataclass(frozen=True, slots=True)
class Step:
    """One edge of a cycle, between two transactions; one that went through a hub is of the kind that led to it."""

    source: int
    target: int
    kind: EdgeKind
    reason: int


class EdgeLookup(NamedTuple):
    """The edges of all components as lists, sorted by source: those of node `n` begin at `bounds[n]`."""

    transactions: int
    bounds: list[int]
    target: list[int]
    kind: list[int]
    reason: list[int]


def edge_lookup(edges: DependencyEdges) -> EdgeLookup:
    """Return the edges by source, made once for all components; each edge must stay within one of these."""
    order = np.argsort(edges.source, kind="stable")
    bounds = np.searchsorted(edges.source[order], np.arange(edges.nodes + 1))
    columns = (column[order].tolist() for column in (edges.target, edges.kind, edges.reason))
    return EdgeLookup(edges.transactions, bounds.tolist(), *columns)


class Component:
    """The transactions of one component, numbered from 0, and the edges among them.

    `out[i]` has a triple (neighbour, kind, reason) for each edge of transaction `i` to another one, `into_hub[i]` the
    same for hubs, `members[hub]` the transactions a hub leads to, as keys. `by_invocation` sorts all by invocation, and
    `place` has the place of each in it; the real-time successors of `i` are those from place `later[i]` on.
    """

    def __init__(self, columns: TransactionColumns, lookup: EdgeLookup, nodes: Sequence[int]) -> None:
        self.transactions = [node for node in nodes if node < lookup.transactions]
        self.size = len(self.transactions)
        local = {node: number for number, node in enumerate(nodes)}
        self.out: list[list[tuple[int, int, int]]] = [[] for _ in range(self.size)]
        self.into_hub: list[list[tuple[int, int, int]]] = [[] for _ in range(self.size)]
        self.members: dict[int, dict[int, None]] = {local[node]: {} for node in nodes[self.size :]}
        self.kinds = 0
        for node in nodes:
            for place in range(lookup.bounds[node], lookup.bounds[node + 1]):
                self._add(local[node], local[lookup.target[place]], lookup.kind[place], lookup.reason[place])
        self._sort_by_time(columns)

    def _add(self, source: int, target: int, kind: int, reason: int) -> None:
        self.kinds |= kind
        if source >= self.size:
            self.members[source][target] = None
        elif target >= self.size:
            self.into_hub[source].append((target, kind, reason))
        else:
            self.out[source].append((target, kind, reason))

    def _sort_by_time(self, columns: TransactionColumns) -> None:
        invoke = columns.invoke[self.transactions].tolist()
        self.by_invocation = sorted(range(self.size), key=invoke.__getitem__)
        invocations = [invoke[number] for number in self.by_invocation]
        self.place = [0] * self.size
        for place, number in enumerate(self.by_invocation):
            self.place[number] = place
        complete = columns.complete[self.transactions].tolist()
        self.later = [bisect_right(invocations, moment) for moment in complete]

    def cyclic_part(self, kinds: EdgeKind) -> list[set[int]]:
        """Return the components with at least two transactions that edges of these kinds form on their own."""
        source, target, count = self._drawn(int(kinds))
        found = strongly_connected(count, np.array(source, dtype=np.int64), np.array(target, dtype=np.int64))
        parts = [{number for number in part if number < self.size} for part in found]
        return sorted((part for part in parts if len(part) > 1), key=min)

    def _drawn(self, kinds: int) -> tuple[list[int], list[int], int]:
        pairs = [(i, to) for i in range(self.size) for to, kind, _ in self.out[i] if not kind & ~kinds]
        pairs += [(i, to) for i in range(self.size) for to, kind, _ in self.into_hub[i] if not kind & ~kinds]
        pairs += [(hub, to) for hub, members in self.members.items() for to in members]
        count = self.size + len(self.members)
        if kinds & int(EdgeKind.REALTIME):
            # Real time is a chain of one extra node for each transaction, in order of invocation. Entering it where the
            # suffix begins reaches all successors with two edges a transaction, in place of one for each ordered pair.
            pairs += [(i, count + self.later[i]) for i in range(self.size) if self.later[i] < self.size]
            pairs += [(count + place, to) for place, to in enumerate(self.by_invocation)]
            pairs += [(count + place, count + place + 1) for place in range(self.size - 1)]
            count += self.size
        return [source for source, _ in pairs], [target for _, target in pairs], count

    def named(self, steps: Iterable[tuple[int, int, int, int]]) -> tuple[Step, ...]:
        """Return steps between local numbers as steps between transactions of the history."""
        names = self.transactions
        return tuple(Step(names[source], names[to], EdgeKind(kind), reason) for source, to, kind, reason in steps)
