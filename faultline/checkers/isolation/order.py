"""An order that must be found, as edges: possible when they form no cycle, else shown by short cycles.

Acyclicity is Kahn's algorithm, linear. The remaining nodes hold every cycle. Their strongly connected components are
found (Tarjan 1972), and in each a shortest cycle by breadth-first search from a few of its transactions: two or three
transactions that contradict one another explain more than twenty.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

__all__ = ["Edge", "EdgeKind", "Order"]

EdgeKind = Literal["session", "reads", "forced", "initial"]

_STARTS_MAX = 64
"""The number of transactions of one component from which a shortest cycle is sought."""


class Edge(NamedTuple):
    """`source` comes before `target`: in its `session`, because target `reads` its write of `key`, because it is the
    `initial` one, or `forced`: `reader` read `key` from target and saw source, which wrote `key` too."""

    source: int
    target: int
    kind: EdgeKind
    key: Any = None
    reader: int = -1


class Order:
    """Edges between transactions 0 … size - 1."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.successors: list[list[Edge]] = [[] for _ in range(size)]

    def add(self, edges: Iterable[Edge]) -> None:
        """Add all of `edges` to the order."""
        for edge in edges:
            self.successors[edge.source].append(edge)

    def cycles(self, maximum: int = 5) -> list[list[Edge]]:
        """Return a short cycle of each of the first few components that have one; none when the order is possible."""
        remaining = self._remaining()
        if not remaining:
            return []
        components = [component for component in self._components(remaining) if len(component) > 1]
        return [self._short_cycle(component) for component in components[:maximum]]

    def chain(self, source: int, target: int) -> tuple[int, ...]:
        """Return the transactions between `source` and `target` on a shortest path along sessions and reads."""
        arrived = {source: source}
        queue = deque((source,))
        while queue and target not in arrived:
            node = queue.popleft()
            for edge in self.successors[node]:
                if edge.kind in ("session", "reads") and edge.target not in arrived:
                    arrived[edge.target] = node
                    queue.append(edge.target)
        between = []
        node = arrived.get(target, source)
        while node != source:
            between.append(node)
            node = arrived[node]
        return tuple(reversed(between))

    def _remaining(self) -> list[int]:
        """Return the transactions that are left when those without predecessors are removed again and again."""
        waits = [0] * self.size
        for edges in self.successors:
            for edge in edges:
                waits[edge[1]] += 1
        ready = [node for node in range(self.size) if not waits[node]]
        while ready:
            for edge in self.successors[ready.pop()]:
                waits[edge[1]] -= 1
                if not waits[edge[1]]:
                    ready.append(edge[1])
        return [node for node in range(self.size) if waits[node]]

    def _components(self, nodes: Sequence[int]) -> list[list[int]]:
        """Return the strongly connected components among `nodes`, without recursion."""
        inside = set(nodes)
        index: dict[int, int] = {}
        low: dict[int, int] = {}
        stack: list[int] = []
        on_stack: set[int] = set()
        components = []
        for root in nodes:
            if root in index:
                continue
            work = [(root, iter(self.successors[root]))]
            index[root] = low[root] = len(index)
            stack.append(root)
            on_stack.add(root)
            while work:
                node, edges = work[-1]
                for edge in edges:
                    if edge.target not in inside:
                        continue
                    if edge.target not in index:
                        index[edge.target] = low[edge.target] = len(index)
                        stack.append(edge.target)
                        on_stack.add(edge.target)
                        work.append((edge.target, iter(self.successors[edge.target])))
                        break
                    if edge.target in on_stack:
                        low[node] = min(low[node], index[edge.target])
                else:
                    work.pop()
                    if work:
                        low[work[-1][0]] = min(low[work[-1][0]], low[node])
                    if low[node] == index[node]:
                        place = _last_index(stack, node)
                        components.append(stack[place:])
                        on_stack.difference_update(stack[place:])
                        del stack[place:]
        return components

    def _short_cycle(self, component: Sequence[int]) -> list[Edge]:
        inside = set(component)
        cycles = (self._cycle_through(start, inside) for start in component[:_STARTS_MAX])
        return min(cycles, key=lambda cycle: (len(cycle), sum(edge.kind == "forced" for edge in cycle)))

    def _cycle_through(self, start: int, inside: set[int]) -> list[Edge]:
        """Return a shortest cycle through `start`; its component guarantees that there is one."""
        arrived: dict[int, Edge] = {}
        queue = deque((start,))
        while start not in arrived:
            for edge in self.successors[queue.popleft()]:
                if edge.target in inside and edge.target not in arrived:
                    arrived[edge.target] = edge
                    queue.append(edge.target)
        cycle = [arrived[start]]
        while cycle[-1].source != start:
            cycle.append(arrived[cycle[-1].source])
        return cycle[::-1]


def _last_index(stack: Sequence[int], node: int) -> int:
    return next(place for place in range(len(stack) - 1, -1, -1) if stack[place] == node)
