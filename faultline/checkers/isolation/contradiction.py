"""The reason why no order of some transactions is possible: the cycles behind a conflict, with a name, in words.

A conflict that propagation found is one cycle of necessary dependencies, or two, when either order of two writes closes
one. Names are the field's own (Berenson et al., "A Critique of ANSI SQL Isolation Levels", 1995; Adya 1999):

| name                        | shape                                                                               |
|-----------------------------|-------------------------------------------------------------------------------------|
| `lost-update`               | two transactions read the same version of a key, and both overwrote it               |
| `circular-information-flow` | no read-write dependency (G1c)                                                       |
| `read-skew`                 | exactly one read-write dependency (G-single)                                         |
| `long-fork`                 | several, of which no two follow one another (G-nonadjacent)                          |
| `write-skew`                | two that follow one another (G2-item); only serializability forbids it               |
| `serialization-cycle`       | any other with read-write dependencies that follow one another (G2-item)             |
| `conflicting-write-order`   | two cycles of different shapes, for either order of two writes                       |
| `no-possible-order`         | the contradiction shows only after choosing the order of further writes              |
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

from faultline.checkers.common.words import told
from faultline.checkers.isolation.committed import Committed
from faultline.checkers.isolation.explain import transaction_name
from faultline.checkers.isolation.polygraph import Dependency, Level, Polygraph, Precedence, arcs_of, polygraph_of
from faultline.checkers.isolation.saturation import Conflict

__all__ = ["Contradiction", "contradiction_of"]


class Contradiction:
    """A named reason why `committed`, the few transactions of a core, have no order."""

    def __init__(self, committed: Committed, level: Level, cycles: Sequence[Sequence[Dependency]]) -> None:
        self.committed, self.level, self.cycles = committed, level, cycles

    @property
    def anomaly(self) -> str:
        """The name of the anomaly."""
        if _has_lost_update(self.committed):
            return "lost-update"
        names = {_shape(cycle) for cycle in self.cycles}
        if len(names) == 1:
            return names.pop()
        return "conflicting-write-order" if names else "no-possible-order"

    @property
    def sentence(self) -> str:
        """The contradiction in words."""
        names = [transaction_name(self.committed, number) for number in self.committed.numbers()]
        of_whom = f"{', '.join(names[:-1])} and {names[-1]}"
        if not self.cycles:
            return f"No order of {of_whom} explains their reads, whichever of their writes came first."
        told_cycles = ["; ".join(map(self._told, cycle)) for cycle in self.cycles]
        if len(told_cycles) == 1:
            return f"No order of {of_whom} explains their reads: {told_cycles[0]}."
        return f"No order of {of_whom} explains their reads: either {told_cycles[0]}; or {told_cycles[1]}."

    @property
    def detail(self) -> dict[str, Any]:
        """The cycles as plain data."""
        rows = self.committed.transactions
        return {
            "cycles": [
                [
                    {
                        "kind": kind,
                        "from": rows[source].row,
                        "to": rows[target].row,
                        "key": None if key is None else told(key),
                    }
                    for kind, source, target, key in cycle
                ]
                for cycle in self.cycles
            ]
        }

    def _told(self, dependency: Dependency) -> str:
        kind, source, target, key = dependency
        first, second = transaction_name(self.committed, source), transaction_name(self.committed, target)
        if kind == "wr":
            return f"{second} read {told(key)} from {first}"
        if kind == "so":
            return f"{first} came before {second} in their session"
        if kind == "rt":
            return f"{first} had completed before {second} was invoked"
        if kind == "ww":
            return f"{second} overwrote {told(key)} of {first}"
        return f"{first} read {told(key)} without the write of {second}"


def contradiction_of(
    committed: Committed, level: Level, precedence: Precedence, conflict: Conflict | None
) -> Contradiction:
    """Return the contradiction behind `conflict`, or one without cycles when there is none."""
    if conflict is None:
        return Contradiction(committed, level, ())
    ways = [way for way in (conflict.one_way, conflict.other_way) if way]
    polygraph = polygraph_of(committed, precedence)
    cycles = [cycle for way in ways if (cycle := _shortest_cycle(level, polygraph, conflict.settled, way))]
    return Contradiction(committed, level, [_without_barriers(cycle, polygraph.size) for cycle in cycles])


def _has_lost_update(committed: Committed) -> bool:
    updates = [
        {read for read in committed.transactions[number].reads if read.key in committed.transactions[number].writes}
        for number in committed.numbers()
    ]
    return any(first & second for first, second in combinations(updates, 2))


def _shape(cycle: Sequence[Dependency]) -> str:
    is_rw = [dependency.kind == "rw" for dependency in cycle]
    adjacent = sum(this and before for this, before in zip(is_rw, (*is_rw[1:], is_rw[0]), strict=True))
    if not any(is_rw):
        return "circular-information-flow"
    if sum(is_rw) == 1:
        return "read-skew"
    if not adjacent:
        return "long-fork"
    return "write-skew" if sum(is_rw) == 2 else "serialization-cycle"


def _shortest_cycle(
    level: Level, polygraph: Polygraph, settled: Sequence[Dependency], way: Sequence[Dependency]
) -> list[Dependency]:
    """Return a shortest cycle through one of the dependencies of `way`, and otherwise through any."""
    after: dict[int, list[tuple[int, Dependency]]] = {}
    for source, target, dependency in _labelled(level, polygraph, (*settled, *way)):
        after.setdefault(source, []).append((target, dependency))
    found = [
        [dependency, *path]
        for source, target, dependency in _labelled(level, polygraph, way)
        if (path := _path(after, target, source)) is not None
    ]
    return min(found, key=len, default=[])


def _labelled(
    level: Level, polygraph: Polygraph, dependencies: Sequence[Dependency]
) -> Iterator[tuple[int, int, Dependency]]:
    for dependency in dependencies:
        for source, target in arcs_of(level, polygraph, (dependency,)):
            yield source, target, dependency


def _without_barriers(cycle: Sequence[Dependency], size: int) -> list[Dependency]:
    """Return `cycle` with one real-time dependency in place of the way over barriers, nodes from `size` on."""
    first = next(place for place, dependency in enumerate(cycle) if dependency.source < size)
    shorter: list[Dependency] = []
    for dependency in (*cycle[first:], *cycle[:first]):
        if dependency.source < size:
            shorter.append(dependency)
        else:
            shorter[-1] = shorter[-1]._replace(target=dependency.target)
    return shorter


def _path(after: dict[int, list[tuple[int, Dependency]]], start: int, goal: int) -> list[Dependency] | None:
    arrived: dict[int, tuple[int, Dependency] | None] = {start: None}
    queue = deque((start,))
    while queue and goal not in arrived:
        node = queue.popleft()
        for target, dependency in after.get(node, ()):
            if target not in arrived:
                arrived[target] = (node, dependency)
                queue.append(target)
    if goal not in arrived:
        return None
    path = []
    step = arrived[goal]
    while step is not None:
        path.append(step[1])
        step = arrived[step[0]]
    return path[::-1]
