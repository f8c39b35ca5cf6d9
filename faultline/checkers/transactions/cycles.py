"""The shortest cycle of each wanted shape in a component, found breadth first and within a budget.

From every transaction that has an edge of the shape's kind, a search runs over pairs of a transaction and a state of
the shape's machine until it comes back. Searches go only as deep as would beat the best cycle so far, so that the rest
is quick once a short one is known.

The search finds closed *walks*; one that visits a transaction twice splits into smaller cycles, each with a name of its
own. It is then reported only if one of the parts has the wanted shape. So a G-nonadjacent or G2 that exists beside a
G-single through the same transactions may go unreported; the G-single, which is worse, never does.

Elle searches a component for a second of wall time (`:cycle-search-timeout`). Here the budget counts visited edges, so
that the answer does not depend on the machine. When it is used up, the shapes not decided are named, and linear-time
facts still hold: which kinds of edges form a cycle at all, and one cycle of the worst kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from faultline.checkers.porcupine.budget import UNLIMITED, Budget
from faultline.checkers.transactions.component import Component, Step
from faultline.checkers.transactions.edges import EdgeKind
from faultline.checkers.transactions.shapes import CycleShape, Machine, classify

__all__ = ["Cycle", "CycleSearch", "find_cycles"]

_SMALL = 24
"""The number of transactions up to which finding sub-components first costs more than it saves."""

LocalStep = tuple[int, int, int, int]

_WORST_FIRST = (
    EdgeKind.WW,
    EdgeKind.WW | EdgeKind.WR,
    EdgeKind.WW | EdgeKind.WR | EdgeKind.RW | EdgeKind.PREDICATE_RW,
    EdgeKind.WW | EdgeKind.WR | EdgeKind.RW | EdgeKind.PREDICATE_RW | EdgeKind.PROCESS,
    EdgeKind.WW | EdgeKind.WR | EdgeKind.RW | EdgeKind.PREDICATE_RW | EdgeKind.PROCESS | EdgeKind.REALTIME,
)


@dataclass(frozen=True, slots=True)
class Cycle:
    """A cycle by the name of its shape; `shortest` when no shorter one of that shape is in its component."""

    name: str
    steps: tuple[Step, ...]
    shortest: bool


@dataclass(frozen=True, slots=True)
class CycleSearch:
    """The result for one component: cycles, shapes that the budget left undecided, and the number of visited edges."""

    cycles: tuple[Cycle, ...]
    undecided: tuple[str, ...]
    cost: int


class _Budget:
    """The number of edges that may still be visited, within the time that `limit` leaves."""

    def __init__(self, steps: int, limit: Budget) -> None:
        self.left = steps
        self.limit = limit

    def is_spent(self) -> bool:
        return self.left <= 0 or self.limit.is_over()


def find_cycles(
    component: Component,
    shapes: Sequence[CycleShape],
    steps: int,
    limit: Budget = UNLIMITED,
    must_find: bool = True,
) -> CycleSearch:
    """Search `component` for `shapes`, visiting about `steps` edges at most, evenly shared among the shapes.

    Only the time of `limit` counts; shapes that it cuts off are undecided, except for facts that take linear time.
    Where the cycles of the component can be of no other shapes, one `must_find` some cycle.
    """
    cycles: list[Cycle] = []
    undecided: list[str] = []
    left, bases = steps, set()
    for number, shape in enumerate(shapes):
        if shape.base in bases:
            continue  # The plain cycle was found; it is a process and a real-time cycle as well.
        budget = _Budget(left // (len(shapes) - number), limit)
        share = budget.left
        found = _Search(component, shape, budget).run()
        left -= share - max(0, budget.left)
        if found is not None:
            cycles.append(Cycle(shape.name, component.named(found), not budget.is_spent()))
            bases.add(shape.base)
        elif budget.is_spent():
            undecided.append(shape.name)
    if undecided or (must_find and not cycles):
        known = {cycle.name for cycle in cycles}
        cycles += [cycle for cycle in _some_cycle(component, steps) if cycle.name not in known]
        undecided = [name for name in undecided if name not in {cycle.name for cycle in cycles}]
    return CycleSearch(tuple(cycles), tuple(undecided), steps - left)


def _some_cycle(component: Component, steps: int) -> list[Cycle]:
    """Return one cycle of the worst kinds of edges that form any, found in linear time."""
    for kinds in _WORST_FIRST:
        for part in component.cyclic_part(kinds):
            # Any walk will do, so the machine accepts every edge: within a component there is a way back.
            for anchor in (EdgeKind.WW, EdgeKind.WR, EdgeKind.RW, EdgeKind.PREDICATE_RW):
                shape = CycleShape("any", anchor, kinds, 2, True, EdgeKind(0))
                search = _Search(
                    component, shape, _Budget(max(steps, 50_000_000), UNLIMITED), starts=part, any_count=True
                )
                steps_found = search.run(first=True)
                if steps_found is not None:
                    named = component.named(steps_found)
                    return [Cycle(classify([step.kind for step in named]), named, False)]
    return []


class _Search:
    """A sequence of breadth-first searches, one from every possible start."""

    def __init__(
        self,
        component: Component,
        shape: CycleShape,
        budget: _Budget,
        starts: set[int] | None = None,
        any_count: bool = False,
    ) -> None:
        self._component = component
        self._shape = shape
        self._budget = budget
        self._starts = starts
        machine = _machine(shape)
        self._first, self._moves = machine.first, machine.moves
        self._accepts = [True] * len(machine.accepts) if any_count else machine.accepts
        self._any = any_count

    def run(self, first: bool = False) -> list[LocalStep] | None:
        """Return the shortest cycle, or the `first` that is found."""
        best: list[LocalStep] | None = None
        if not self._possible():
            return None
        starts = self._possible_starts()
        # Most edges run forward in time, as they should. Of any cycle, one that runs far back is the likely culprit.
        for start in sorted(starts, key=self._furthest_target):
            walk = self._from(start, len(best) if best else self._component.size * 2 + 1)
            cycle = self._simple(walk) if walk else None
            if cycle and (best is None or len(cycle) < len(best)):
                best = cycle
            if (best and (first or len(best) == 2)) or self._budget.is_spent():
                break
        return best

    def _possible(self) -> bool:
        kinds, shape = EdgeKind(self._component.kinds), self._shape
        return bool(kinds & shape.anchor) and (not shape.variant & EdgeKind.PROCESS or bool(kinds & EdgeKind.PROCESS))

    def _possible_starts(self) -> list[int]:
        component, anchor = self._component, int(self._shape.anchor)
        if self._starts is not None:
            inside = self._starts
        elif component.size <= _SMALL:
            inside = set(range(component.size))
        else:
            inside = set().union(*component.cyclic_part(self._shape.allowed))
        return [
            node
            for node in sorted(inside)
            if any(kind & anchor for _, kind, _ in component.out[node])
            or any(kind & anchor for _, kind, _ in component.into_hub[node])
        ]

    def _furthest_target(self, node: int) -> int:
        """Return how much later than `node` the target of an anchor was invoked, in places: the least of them."""
        component, anchor = self._component, int(self._shape.anchor)
        places = [component.place[to] for to, kind, _ in component.out[node] if kind & anchor]
        for hub, kind, _ in component.into_hub[node]:
            places += [component.place[to] for to in component.members[hub] if kind & anchor]
        return min(places, default=component.size) - component.place[node]

    def _from(self, start: int, limit: int) -> list[LocalStep] | None:
        """Return a shortest accepted walk from `start` back to it, of fewer than `limit` steps."""
        size = self._component.size
        parents: dict[int, tuple[int, LocalStep]] = {}
        level, depth = [(start, self._first, -1)], 1
        self._hub_visitor: dict[tuple[int, int], int] = {}
        self._suffix: dict[int, int] = {}
        while level and depth < limit and not self._budget.is_spent():
            following = []
            for node, moves, origin in level:
                for target, state, step in self._edges(node, moves):
                    if target == start and self._accepts[state]:
                        return _walk(parents, origin, step)
                    place = state * size + target
                    if place not in parents and target != start:
                        parents[place] = (origin, step)
                        following.append((target, self._moves[state], place))
            level, depth = following, depth + 1
        return None

    def _edges(self, node: int, moves: dict[int, int]) -> list[tuple[int, int, LocalStep]]:
        component = self._component
        found = [
            (target, state, (node, target, kind, reason))
            for target, kind, reason in component.out[node]
            if (state := moves[kind]) >= 0
        ]
        self._budget.left -= len(component.out[node]) + 1
        for hub, kind, reason in component.into_hub[node]:
            state = moves[kind]
            if state >= 0:
                members = self._through(hub, state, node)
                self._budget.left -= len(members)
                found += [(target, state, (node, target, kind, reason)) for target in members]
        state = moves[int(EdgeKind.REALTIME)]
        if state >= 0:
            found += [(to, state, (node, to, int(EdgeKind.REALTIME), -1)) for to in self._later(node, state)]
        return found

    def _through(self, hub: int, state: int, node: int) -> list[int]:
        """Return the targets of `hub` not yet reached through it: all but `node`, then only the node that came
        first."""
        visitor = self._hub_visitor.get((hub, state))
        if visitor is None:
            self._hub_visitor[hub, state] = node
            return [target for target in self._component.members[hub] if target != node]
        return [visitor] if visitor != node and visitor in self._component.members[hub] else []

    def _later(self, node: int, state: int) -> list[int]:
        component = self._component
        begin, end = component.later[node], self._suffix.get(state, component.size)
        if begin >= end:
            return []
        self._suffix[state] = begin
        self._budget.left -= end - begin
        return component.by_invocation[begin:end]

    def _simple(self, walk: list[LocalStep]) -> list[LocalStep] | None:
        """Return `walk` itself if it visits no transaction twice, else a part of it that has the wanted shape."""
        for part in _simple_parts(walk):
            if self._any or classify([EdgeKind(kind) for _, _, kind, _ in part]) == self._shape.name:
                return part
        return None


@cache
def _machine(shape: CycleShape) -> Machine:
    return Machine(shape)


def _walk(parents: dict[int, tuple[int, LocalStep]], origin: int, last: LocalStep) -> list[LocalStep]:
    steps = [last]
    while origin >= 0:
        origin, step = parents[origin]
        steps.append(step)
    return steps[::-1]


def _simple_parts(walk: list[LocalStep]) -> list[list[LocalStep]]:
    """Return the cycles without repetition into which a closed walk splits."""
    parts: list[list[LocalStep]] = []
    open_steps: list[LocalStep] = []
    for step in walk:
        open_steps.append(step)
        for place, earlier in enumerate(open_steps):
            if earlier[0] == step[1]:
                parts.append(open_steps[place:])
                del open_steps[place:]
                break
    return parts
