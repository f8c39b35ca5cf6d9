"""The components to look into, and for which shapes, told for all of them at once by passes over arrays.

Where hundreds of anomalies are spread over a history, walking through each component for each shape takes nearly all of
the time. Most of these walks can be spared:

- A cycle of dependencies alone (`ww`, `wr` and the orders that clients see) is rare where anomalies are stale reads.
  One pass of `suspect_regions` over those edges shows the components in which there can be one.
- An anomaly between two transactions needs an `rw` edge one way and any edge back.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from faultline.checkers.transactions.columns import Booleans, TransactionColumns
from faultline.checkers.transactions.edges import DependencyEdges, EdgeKind
from faultline.checkers.transactions.order import suspect_regions
from faultline.checkers.transactions.shapes import CycleShape

__all__ = ["Suspects"]

_ANTI = int(EdgeKind.RW | EdgeKind.PREDICATE_RW)


class Suspects:
    """The strongly connected components of a graph, with the `edges` that stay within one of them.

    `has_pair`, by the number of a component: whether two of its transactions can miss and precede each other directly.
    It may be true without such a pair, and is never false with one.
    """

    def __init__(
        self, columns: TransactionColumns, edges: DependencyEdges, components: Sequence[Sequence[int]], realtime: bool
    ) -> None:
        sizes = np.fromiter(map(len, components), np.int64, len(components))
        nodes = np.fromiter((node for component in components for node in component), np.int64, int(sizes.sum()))
        self._of_node = np.full(edges.nodes, -1, dtype=np.int64)
        self._of_node[nodes] = np.repeat(np.arange(len(components)), sizes)
        self._count = len(components)
        place = self._of_node[edges.source]
        self.edges = edges.only((place >= 0) & (place == self._of_node[edges.target]))
        self.has_pair = self._pairs()
        self._has_dependency_cycle = self._dependency_cycles(columns, realtime)
        self._kinds = int(np.bitwise_or.reduce(self.edges.kind))

    def possible(self, component: int, shapes: Sequence[CycleShape]) -> list[CycleShape]:
        """Return those of `shapes` of which there can be a cycle in the component of that number."""
        has_dependency_cycle = self._has_dependency_cycle[component]
        return [
            shape
            for shape in shapes
            if shape.anchor & self._kinds and (has_dependency_cycle or not shape.is_of_dependencies)
        ]

    def _pairs(self) -> Booleans:
        edges = self.edges
        missed = edges.kind == int(EdgeKind.RW)
        back = edges.target * edges.nodes + edges.source
        pairs = np.isin(edges.source[missed] * edges.nodes + edges.target[missed], back)
        found = np.zeros(self._count, dtype=np.bool_)
        found[self._of_node[edges.source[missed][pairs]]] = True
        return found

    def _dependency_cycles(self, columns: TransactionColumns, realtime: bool) -> Booleans:
        dependencies = self.edges.only((self.edges.kind & _ANTI) == 0)
        regions = suspect_regions(columns, dependencies, realtime)
        found = np.zeros(self._count + 1, dtype=np.bool_)
        found[self._of_node[regions.of_node >= 0]] = True  # a node outside all components has the number -1
        return found[:-1]
