"""The transactions that suffice to show a contradiction which saturation found among many.

A contradiction is a cycle. Each dependency on it is known, or follows from the order of two writes; that order held by
necessity, because the other one would have closed a cycle with dependencies of earlier rounds. Going back through the
rounds leads to known dependencies only. The transactions on the way have no order among themselves either.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from faultline.checkers.isolation.polygraph import Dependency
from faultline.checkers.isolation.saturation import Pair, Saturation
from faultline.checkers.transactions.components import strongly_connected

__all__ = ["suspects_of"]

_PAIRS_MAX = 200
"""The number of orders of two writes that are justified at most; each takes time in proportion to the arcs."""

_STARTS_MAX = 16


def suspects_of(saturation: Saturation) -> list[int]:
    """Return transactions that have no order among themselves, after a conflict of `saturation`.

    Return none when the reasons are too many.
    """
    return _Justification(saturation).suspects()


class _Justification:
    def __init__(self, saturation: Saturation) -> None:
        self.saturation, self.polygraph = saturation, saturation.polygraph
        self.after: list[list[tuple[int, Dependency, int]]] = [[] for _ in saturation.graph.after]
        for number, added in enumerate(saturation.rounds):
            for dependency in added:
                for source, target in saturation.arcs((dependency,)):
                    self.after[source].append((target, dependency, number))
        self.read: dict[tuple[Any, int], int] = {}
        for (key, writer), readers in self.polygraph.readers.items():
            self.read.update(((key, reader), writer) for reader in readers)

    def suspects(self) -> list[int]:
        members: set[int] = set()
        seen: set[Pair] = set()
        waiting = self._cycle()
        while waiting:
            dependency, number = waiting.pop()
            members.update((dependency.source, dependency.target))
            pair = self._pair(dependency) if number else None
            if pair is None or pair in seen:
                continue
            members.update((pair.first, pair.second))
            seen.add(pair)
            if len(seen) > _PAIRS_MAX:
                return []
            if pair.first != self.polygraph.writers[pair.key][0]:
                waiting += self._because(pair, number)
        return sorted(member for member in members if 0 < member < self.polygraph.size)

    def _pair(self, dependency: Dependency) -> Pair:
        """Return the order of two writes from which a dependency of a later round followed."""
        kind, source, target, key = dependency
        return Pair(key, source if kind == "ww" else self.read[key, source], target)

    def _because(self, pair: Pair, number: int) -> list[tuple[Dependency, int]]:
        """Return a path of rounds before `number` that closes a cycle with the other order of `pair`."""
        twin = self.polygraph.nodes if self.saturation.is_doubled else 0
        readers = self.polygraph.readers.get((pair.key, pair.second), ())
        ends = {pair.second, pair.second + twin}
        path = self._path((pair.first,), ends | set(readers if not twin else ()), number)
        if path is None:
            path = self._path((pair.first + twin,), set(readers), number)
        assert path is not None, "a pair was settled without a reason"
        return path

    def _path(self, starts: Iterable[int], ends: set[int], number: int) -> list[tuple[Dependency, int]] | None:
        """Return a shortest path over arcs of rounds before `number`."""
        arrived: dict[int, tuple[int, Dependency, int] | None] = dict.fromkeys(starts)
        queue = deque(arrived)
        while queue:
            node = queue.popleft()
            for target, dependency, its_round in self.after[node]:
                if its_round < number and target not in arrived:
                    arrived[target] = (node, dependency, its_round)
                    if target in ends:
                        return _back(arrived, target)
                    queue.append(target)
        return None

    def _cycle(self) -> list[tuple[Dependency, int]]:
        """Return a short cycle, one of a small component."""
        graph = self.saturation.graph
        left = sorted(set(range(len(graph.after))).difference(graph.order()))
        arcs = np.array([(node, target) for node in left for target in graph.after[node]], dtype=np.int64)
        components = strongly_connected(len(graph.after), arcs[:, 0], arcs[:, 1])
        component = min(map(sorted, components), key=lambda nodes: (len(nodes), nodes[0]))
        last = len(self.saturation.rounds)
        cycles: list[list[tuple[Dependency, int]]] = []
        inside = set(component)
        for start in component[:_STARTS_MAX]:
            for target, dependency, its_round in self.after[start]:
                path = self._path((target,), {start}, last) if target in inside else None
                cycles += [] if path is None else [[(dependency, its_round), *path]]
        return min(cycles, key=len)


def _back(arrived: dict[int, tuple[int, Dependency, int] | None], node: int) -> list[tuple[Dependency, int]]:
    path: list[tuple[Dependency, int]] = []
    step = arrived[node]
    while step is not None:
        before, dependency, number = step
        path.append((dependency, number))
        step = arrived[before]
    return path
