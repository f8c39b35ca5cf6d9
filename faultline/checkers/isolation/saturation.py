"""Orders of writes that follow by necessity, without any choice: the order of transactions closed into that of writes.

Take two writers of a key. When one of the two orders would close a cycle, the other one holds; it brings dependencies
of its own, which may settle more pairs. Rounds go on until nothing changes: unit propagation over the polygraph (the
pruning of Cobra, OSDI 2020, PolySI, VLDB 2023, and Viper, EuroSys 2023). It settles nearly every pair of a history that
a store made, and shows most contradictions.

With `reaching` a round costs no look at single pairs. That `j` wrote before `i` follows

- when `j` reaches `i`: the other order would close a cycle with that path;
- when `j` reaches a reader of what `i` wrote, by a path that does not begin with a read-write dependency: in the other
  order that reader would precede `j` by a read-write dependency. In snapshot isolation two of these in a row are
  allowed, hence the condition; in serializability any path counts.

Only pairs without another writer between them bring dependencies; the others follow from them. The first writer of a
key comes before all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from faultline.checkers.isolation.closure import Graph, bits_at, reaching
from faultline.checkers.isolation.polygraph import Arc, Dependency, Level, Polygraph, arcs_of
from faultline.checkers.porcupine.budget import Budget

__all__ = ["Conflict", "Pair", "Saturation", "WriteOrder"]


class Pair(NamedTuple):
    """`first` wrote `key` before `second` did."""

    key: Any
    first: int
    second: int


@dataclass(slots=True)
class Conflict:
    """Dependencies that hold by necessity, and the last ones, which close a cycle: one way, and the other if any."""

    settled: list[Dependency]
    one_way: list[Dependency]
    other_way: list[Dependency]


class WriteOrder:
    """The partial order of the writers of a key: `before[i]` has, as bits, the places of those before `writers[i]`."""

    __slots__ = ("_followed", "before", "key", "writers")

    def __init__(self, key: Any, writers: list[int]) -> None:
        self.key, self.writers = key, writers
        self.before = [0] * len(writers)
        self._followed = 0

    def forced(self, before: Sequence[int]) -> Iterator[Pair]:
        """Yield new pairs, given the places of those that must come before each writer; add them to the order."""
        for place in range(1, len(self.writers)):
            new = (before[place] | 1) & ~self.before[place] & ~(1 << place)
            while new:
                # The latest one first: those before it are then before `place` as well, and bring nothing more.
                other = new.bit_length() - 1
                self._put(other, place)
                yield Pair(self.key, self.writers[other], self.writers[place])
                new &= ~self.before[place]

    def forced_by_the_first(self) -> Iterator[Pair]:
        """Yield the pairs of the first writer, which comes before all others; add them to the order."""
        for place in range(1, len(self.writers)):
            self._put(0, place)
            yield Pair(self.key, self.writers[0], self.writers[place])

    def _put(self, first: int, second: int) -> None:
        added = self.before[first] | 1 << first
        self.before[second] |= added
        self._followed |= added
        if self._followed >> second & 1:
            for place, before in enumerate(self.before):
                if before >> second & 1:
                    self.before[place] |= added


class Saturation:
    """The dependencies of `polygraph` under `level`, in rounds: the known ones, and then those that follow.

    `steps` counts arcs and writers looked at. `one_at_a_time` settles a single pair in each round, so that a conflict
    names the pair that has no order left; it is for small cores.
    """

    def __init__(self, polygraph: Polygraph, level: Level, budget: Budget, *, one_at_a_time: bool = False) -> None:
        self.polygraph, self.level, self.budget = polygraph, level, budget
        self.one_at_a_time = one_at_a_time
        self.is_doubled = level == "snapshot-isolation"
        nodes = polygraph.nodes
        self.graph = Graph(nodes + polygraph.size if self.is_doubled else nodes)
        self.rounds: list[list[Dependency]] = []
        self.orders: list[WriteOrder] = []
        self.steps = 0
        self.is_exhausted = False
        self._add(polygraph.known)

    def run(self) -> Conflict | None:
        """Settle what follows by necessity. Return a conflict when there is one; see `is_exhausted` otherwise."""
        last: Pair | None = None
        while not self._is_spent():
            order = self.graph.order()
            self.steps += self.graph.arcs + len(order)
            if len(order) < len(self.graph.after):
                return self._conflict(last)
            if len(self.rounds) == 1:
                self.orders = self._write_orders(order)
                if self.one_at_a_time:
                    # Known pairs first, so that a conflict is about a pair that could have come either way.
                    known = [pair for write_order in self.orders for pair in write_order.forced_by_the_first()]
                    self._add(dependency for pair in known for dependency in self.polygraph.brought_by(*pair))
                    continue
            pairs = self._forced(order)
            if not pairs:
                return None
            last = pairs[0]
            self._add(dependency for pair in pairs for dependency in self.polygraph.brought_by(*pair))
        self.is_exhausted = True
        return None

    def dependencies(self) -> Iterator[Dependency]:
        """Yield all dependencies so far."""
        for added in self.rounds:
            yield from added

    def arcs(self, dependencies: Iterable[Dependency]) -> Iterator[Arc]:
        """Yield dependencies as arcs of the graph."""
        return arcs_of(self.level, self.polygraph, dependencies)

    def _add(self, dependencies: Iterable[Dependency]) -> None:
        added = list(dependencies)
        self.rounds.append(added)
        self.graph.add(self.arcs(added))

    def _write_orders(self, order: Sequence[int]) -> list[WriteOrder]:
        """Return the writers of each key in topological order, the known first one in front, in no order yet."""
        place = [0] * len(order)
        for number, node in enumerate(order):
            place[node] = number
        return [
            WriteOrder(key, [writers[0], *sorted(writers[1:], key=place.__getitem__)])
            for key, writers in self.polygraph.writers.items()
            if len(writers) > 2 or (len(writers) == 2 and (key, writers[0]) in self.polygraph.readers)
        ]

    def _forced(self, order: Sequence[int]) -> list[Pair]:
        polygraph = self.polygraph
        before, column = reaching(self.graph, order, range(polygraph.size, polygraph.nodes))
        pairs: list[Pair] = []
        for write_order in self.orders:
            self.steps += len(write_order.writers) * (1 + len(write_order.writers) // 64)
            for pair in write_order.forced(self._must_precede(write_order, before, column)):
                pairs.append(pair)
                if self.one_at_a_time:
                    return pairs
        return pairs

    def _must_precede(self, order: WriteOrder, before: Sequence[int], column: Sequence[int]) -> list[int]:
        """Return, for each writer of `order`, the places of those that must come before it, as bits."""
        readers = [self.polygraph.readers.get((order.key, writer), ()) for writer in order.writers]
        columns = [column[writer] for writer in order.writers]
        rows = [before[writer] for writer in order.writers]
        seen = [_union(before, numbers) for numbers in readers]
        if not self.is_doubled:
            return bits_at([row | other for row, other in zip(rows, seen)], columns)
        twin = self.polygraph.nodes
        rows = [row | before[writer + twin] for row, writer in zip(rows, order.writers)]
        through_readers = bits_at(seen, [column[writer + twin] for writer in order.writers])
        return [one | other for one, other in zip(bits_at(rows, columns), through_readers)]

    def _conflict(self, last: Pair | None) -> Conflict:
        if last is None:
            return Conflict([], list(self.dependencies()), [])
        first, brought_by = self.polygraph.writers[last.key][0], self.polygraph.brought_by
        other_way = list(brought_by(last.key, last.second, last.first)) if last.first != first else []
        settled = [dependency for added in self.rounds[:-1] for dependency in added]
        return Conflict(settled, self.rounds[-1], other_way)

    def _is_spent(self) -> bool:
        steps_max = self.budget.steps_max
        return self.budget.is_over() or (steps_max is not None and self.steps > steps_max)


def _union(before: Sequence[int], nodes: Iterable[int]) -> int:
    union = 0
    for node in nodes:
        union |= before[node]
    return union
