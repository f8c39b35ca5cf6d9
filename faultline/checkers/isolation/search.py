"""The search for an order of writes: what follows by necessity, then guesses and what their failures teach.

1. *Saturation* settles the pairs of writers of which one order would close a cycle, without any choice.
2. What stays open falls into *regions* that can share no cycle; each is decided by itself.
3. In a region, the writers of each key are put in the order in which they are expected to have taken effect, as far
   as the known dependencies allow. When no cycle follows, the region is possible. Each cycle that follows becomes a
   clause: not all of the orders of two writers on it can hold. The next order has to satisfy all clauses (`clauses`),
   until one leads to no cycle, or no order is left.

So only pairs on some cycle ever become variables of the clauses: of a history that a store made they are few. Deciding
serializability is NP-complete, so a budget of steps bounds the whole; a step is an arc or a clause looked at. When it
is spent the answer is *exhausted*, and `settled` is the number of pairs that were settled by necessity.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from faultline.checkers.isolation.clauses import Clauses
from faultline.checkers.isolation.closure import Graph
from faultline.checkers.isolation.justification import suspects_of
from faultline.checkers.isolation.polygraph import Dependency, Level, Polygraph, arcs_of
from faultline.checkers.isolation.regions import Region, open_regions
from faultline.checkers.isolation.saturation import Pair, Saturation
from faultline.checkers.isolation.serial_run import SerialRun
from faultline.checkers.porcupine.budget import Budget
from faultline.checkers.transactions.components import strongly_connected

__all__ = ["Answer", "SearchResult", "search"]

Answer = Literal["possible", "impossible", "exhausted"]

_STARTS_MAX = 8
"""The number of nodes of a component from which a short cycle is sought."""

_CYCLES_MAX = 64
"""The number of cycles that one guess adds to the clauses at most."""


@dataclass(slots=True)
class SearchResult:
    """The answer, its steps, the number of pairs of writers and of those settled by necessity.

    For an impossible history, `suspects` are transactions that are likely to have no order among themselves; none when
    they are too many to tell. For a possible one, `order` has the transactions in an order that keeps serializability,
    if that is the level.
    """

    answer: Answer
    steps: int
    choices: int
    settled: int
    suspects: Sequence[int] = ()
    order: Sequence[int] = ()


def search(polygraph: Polygraph, level: Level, expected: Sequence[int], budget: Budget) -> SearchResult:
    """Decide whether `polygraph` allows `level`, within `budget`.

    `expected` has, for each transaction, the moment at which it is thought to have taken effect.
    """
    saturation = Saturation(polygraph, level, budget)
    conflict = saturation.run()
    sizes = [len(writers) - 1 for writers in polygraph.writers.values()]
    choices = sum(size * (size - 1) // 2 for size in sizes)
    settled = sum((before >> 1).bit_count() for order in saturation.orders for before in order.before)
    result = SearchResult("possible", saturation.steps, choices, settled)
    if conflict is not None or saturation.is_exhausted:
        result.answer = "exhausted" if conflict is None else "impossible"
        result.suspects = suspects_of(saturation) if conflict is not None else ()
        return result
    run = SerialRun(polygraph, saturation.dependencies(), expected)
    if run.succeeds():
        result.order = polygraph.transactions_in(run.order)
        return result
    chosen: list[Dependency] = []
    for region in open_regions(saturation):
        decision = _Decision(saturation, region, expected, Budget(_left(budget, result.steps), budget.deadline_s))
        answer = decision.run()
        result.steps += decision.steps
        if answer == "impossible":
            result.answer, result.suspects = answer, [node for node in region.nodes if node < polygraph.size]
            return result
        if answer == "exhausted":
            result.answer = answer
        for key, first, second in decision.chosen:
            chosen += polygraph.brought_by(key, region.nodes[first - 1], region.nodes[second - 1])
    if result.answer == "possible" and level == "serializability":
        graph = Graph(polygraph.nodes)
        graph.add(arcs_of(level, polygraph, [*saturation.dependencies(), *chosen]))
        result.order = polygraph.transactions_in(graph.order())
    return result


def _left(budget: Budget, steps: int) -> int | None:
    return None if budget.steps_max is None else max(0, budget.steps_max - steps)


class _Decision:
    """The decision on one region, whose nodes are numbered anew, from 1."""

    def __init__(self, saturation: Saturation, region: Region, expected: Sequence[int], budget: Budget) -> None:
        self.budget = budget
        self.steps = 0
        self.level = saturation.level
        # Number 0 stays that of the initial transaction, which is in no region.
        local = {node: number for number, node in enumerate(region.nodes, start=1)}
        size = 1 + sum(node < saturation.polygraph.size for node in region.nodes)
        self.polygraph = Polygraph(size, 1 + len(region.nodes))
        for key, group in region.groups:
            for writer in group:
                readers = saturation.polygraph.readers.get((key, writer), ())
                self.polygraph.readers[key, local[writer]] = [local[reader] for reader in readers if reader in local]
        self.groups = [(key, [local[writer] for writer in group]) for key, group in region.groups]
        moments = [-1, *(expected[node] if node < len(expected) else -1 for node in region.nodes)]
        self.priority = moments + moments[:size] if self.level == "snapshot-isolation" else moments
        known = [Dependency(d.kind, local[d.source], local[d.target], d.key) for d in region.known]
        self.known = list(self._arcs(known))
        self.clauses = Clauses()
        self.variables: dict[Pair, int] = {}
        self.pairs: list[Pair] = [Pair(None, -1, -1)]
        self.chosen: list[Pair] = []

    def run(self) -> Answer:
        """Guess, and learn from the cycles that follow, until there is none or no guess is left."""
        while True:
            rest = _left(self.budget, self.steps)
            if self.budget.is_over() or rest == 0:
                return "exhausted"
            before = self.clauses.steps
            is_possible = self.clauses.solve(rest if rest is not None else 1 << 60)
            self.steps += self.clauses.steps - before
            if not is_possible:
                return "exhausted" if is_possible is None else "impossible"
            chosen = [self._pair(literal) for literal in self.clauses.holding()]
            cycles = self._cycles(chosen)
            if cycles is None:
                self.chosen = [*chosen, *self._guessed(chosen)]
                cycles = self._cycles(self.chosen)
            if cycles is None:
                return "possible"
            for pairs in cycles:
                self.clauses.add([-self._literal(pair) for pair in pairs])

    def _arcs(self, dependencies: Iterable[Dependency]) -> Iterable[tuple[int, int]]:
        return arcs_of(self.level, self.polygraph, dependencies)

    def _literal(self, pair: Pair) -> int:
        """Return the literal that says `pair`; its variable is made when it is first asked for, and tried so."""
        turned = Pair(pair.key, pair.second, pair.first)
        if turned in self.variables:
            return -self.variables[turned]
        if pair not in self.variables:
            self.variables[pair] = self.clauses.variable()
            self.pairs.append(pair)
        return self.variables[pair]

    def _pair(self, literal: int) -> Pair:
        key, first, second = self.pairs[abs(literal)]
        return Pair(key, first, second) if literal > 0 else Pair(key, second, first)

    def _graph(self, pairs: Iterable[Pair]) -> Graph:
        graph = Graph(len(self.priority))
        graph.add(self.known)
        for pair in pairs:
            graph.add(self._arcs(self.polygraph.brought_by(*pair)))
        self.steps += graph.arcs + len(graph.after)
        return graph

    def _guessed(self, chosen: Iterable[Pair]) -> list[Pair]:
        """Return the neighbours in an order of each group that respects `chosen` and what is known."""
        order = self._graph(chosen).order(self.priority)
        place = {node: number for number, node in enumerate(order)}
        return [
            Pair(key, first, second)
            for key, group in self.groups
            for first, second in pairwise(sorted(group, key=place.__getitem__))
        ]

    def _cycles(self, pairs: Sequence[Pair]) -> list[list[Pair]] | None:
        """Return the pairs on each of some cycles that follow from `pairs`; None when there is no cycle."""
        graph = self._graph(pairs)
        order = graph.order()
        if len(order) == len(graph.after):
            return None
        because: dict[tuple[int, int], Pair | None] = {}
        for pair in pairs:
            for arc in self._arcs(self.polygraph.brought_by(*pair)):
                because.setdefault(arc, pair)
        because |= dict.fromkeys(self.known)
        left = sorted(set(range(len(graph.after))).difference(order))
        arcs = [(node, target) for node in left for target in graph.after[node]]
        ends = np.array(arcs, dtype=np.int64).reshape(-1, 2)
        components = strongly_connected(len(graph.after), ends[:, 0], ends[:, 1])
        found: dict[frozenset[Pair], list[Pair]] = {}
        for component in components[:_CYCLES_MAX]:
            inside = set(component)
            for start in sorted(component)[:_STARTS_MAX]:
                cycle = _shortest_cycle(graph, start, inside)
                self.steps += len(inside)
                causes = [because[arc] for arc in cycle]
                on_it = list(dict.fromkeys(pair for pair in causes if pair is not None))
                found.setdefault(frozenset(on_it), on_it)
        return list(found.values())


def _shortest_cycle(graph: Graph, start: int, inside: set[int]) -> list[tuple[int, int]]:
    """Return the arcs of a shortest cycle through `start` within a strongly connected component."""
    arrived: dict[int, int] = {}
    queue = deque((start,))
    while start not in arrived:
        node = queue.popleft()
        for target in graph.after[node]:
            if target in inside and target not in arrived:
                arrived[target] = node
                queue.append(target)
    cycle = [(arrived[start], start)]
    while cycle[-1][0] != start:
        cycle.append((arrived[cycle[-1][0]], cycle[-1][0]))
    return cycle
