"""The search for choices of a polygraph without a cycle: propagation, then backtracking, within a budget.

*Propagation*: a choice of which one side would close a cycle is made the other way; that adds dependencies, which may
decide more choices. It goes on until no choice changes, and settles most histories alone, possible ones as well as
impossible ones (the observation of Cobra, OSDI 2020, and PolySI, VLDB 2023, which hand the rest to a solver).

*Backtracking*: of the choices that stay open the one whose later writer completed first is made in the order of
completion, which is nearly always how the store made it; when that ends in a contradiction, the other way.

Deciding serializability is NP-complete, so a budget of steps bounds the search; a step is an examined choice or a
changed set of reachable nodes. When it is spent the answer is *exhausted*, and `settled` is the number of choices that
were decided by necessity. A *conflict* found by propagation alone is kept for the explanation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from faultline.checkers.isolation.closure import Reachability
from faultline.checkers.isolation.polygraph import Arc, Choice, Dependency, Level, Polygraph, arcs_of
from faultline.checkers.porcupine.budget import Budget

__all__ = ["Answer", "Conflict", "SearchResult", "search"]

_CHOICES_BETWEEN_LOOKS = 256
"""The steps between two looks at the clock, when there is a time limit."""

Answer = Literal["possible", "impossible", "exhausted"]


@dataclass(slots=True)
class Conflict:
    """Dependencies that hold by necessity, and the last ones, which close a cycle: one way, and the other if any."""

    settled: list[Dependency]
    one_way: list[Dependency]
    other_way: list[Dependency] = field(default_factory=list)


@dataclass(slots=True)
class SearchResult:
    """The answer, its steps, the number of choices and of those settled by necessity, and a conflict."""

    answer: Answer
    steps: int
    choices: int
    settled: int
    conflict: Conflict | None = None


class _State:
    """A partial order of writes: the reachability, the open choices, and the decisions so far."""

    __slots__ = ("decided", "open", "reach")

    def __init__(self, reach: Reachability, choices: Sequence[Choice], decided: list[Dependency]) -> None:
        self.reach, self.open, self.decided = reach, list(choices), decided

    def copy(self) -> _State:
        return _State(self.reach.copy(), self.open, self.decided.copy())


def search(polygraph: Polygraph, level: Level, size: int, budget: Budget) -> SearchResult:
    """Decide whether `polygraph` on transactions 0 … size - 1 allows `level`, within `budget`."""
    return _Search(polygraph, level, size, budget).run()


class _Search:
    def __init__(self, polygraph: Polygraph, level: Level, size: int, budget: Budget) -> None:
        self.polygraph, self.level, self.size, self.budget = polygraph, level, size, budget
        self.steps = 0
        self._arcs_of_ways: dict[Choice, tuple[list[Arc], list[Arc]]] = {}

    def run(self) -> SearchResult:
        nodes = self.size if self.level == "serializability" else 2 * self.size
        state = _State(Reachability(nodes), self.polygraph.choices, [])
        conflict = self._begin(state) or self._propagate(state)
        settled = len(self.polygraph.choices) - len(state.open)
        if conflict is not None:
            return self._result("impossible", settled, conflict)
        return self._result("exhausted" if self._is_spent() else self._decide(state), settled)

    def _result(self, answer: Answer, settled: int, conflict: Conflict | None = None) -> SearchResult:
        return SearchResult(answer, self.steps, len(self.polygraph.choices), settled, conflict)

    def _begin(self, state: _State) -> Conflict | None:
        for place, dependency in enumerate(self.polygraph.known):
            if not place % _CHOICES_BETWEEN_LOOKS and self.budget.is_over():
                return None
            if not self._add(state, self._arcs((dependency,))):
                return Conflict(state.decided, [dependency])
            state.decided.append(dependency)
        return None

    def _decide(self, state: _State) -> Answer:
        """Decide the open choices depth-first; the stack holds the states to go back to, with the way to try there."""
        pending: list[tuple[_State, Choice]] = []
        while not self._is_spent():
            if not state.open:
                return "possible"
            choice = state.open[0]
            pending.append((state.copy(), choice))
            alive = self._take(state, choice, reverse=False) and self._propagate(state) is None
            while not alive and not self._is_spent():
                if not pending:
                    return "impossible"
                state, choice = pending.pop()
                alive = self._take(state, choice, reverse=True) and self._propagate(state) is None
        return "exhausted"

    def _take(self, state: _State, choice: Choice, *, reverse: bool) -> bool:
        state.open.remove(choice)
        return self._add(state, self._ways(choice)[reverse])

    def _propagate(self, state: _State) -> Conflict | None:
        """Make every choice that has only one way left, until there is none; a conflict when one has no way left."""
        changed = True
        while changed and not self._is_spent():
            changed = False
            still_open = []
            for place, choice in enumerate(state.open):
                if not place % _CHOICES_BETWEEN_LOOKS and self.budget.is_over():
                    return None
                arcs = self._ways(choice)
                standing = [_standing(state.reach, way) for way in arcs]
                self.steps += 1
                if min(standing) >= 0:
                    still_open += [choice] if max(standing) == 0 else []
                    continue
                taken = 0 if standing[0] >= 0 else 1
                ways = [list(self.polygraph.brought_by(choice, reverse=bool(reverse))) for reverse in range(2)]
                if standing[taken] < 0 or not self._add(state, arcs[taken]):
                    return Conflict(state.decided, ways[taken], ways[1 - taken])
                state.decided += ways[taken]
                changed = True
            state.open = still_open
        return None

    def _ways(self, choice: Choice) -> tuple[list[Arc], list[Arc]]:
        """Return the arcs that either way of a choice brings, made once."""
        ways = self._arcs_of_ways.get(choice)
        if ways is None:
            forward, reverse = self.polygraph.brought_by(choice), self.polygraph.brought_by(choice, reverse=True)
            ways = list(self._arcs(forward)), list(self._arcs(reverse))
            self._arcs_of_ways[choice] = ways
        return ways

    def _arcs(self, dependencies: Iterable[Dependency]) -> Iterable[Arc]:
        return arcs_of(self.level, self.size, dependencies)

    def _add(self, state: _State, arcs: Iterable[Arc]) -> bool:
        before = state.reach.work
        done = all(state.reach.add(*arc) for arc in arcs)
        self.steps += state.reach.work - before + 1
        return done

    def _is_spent(self) -> bool:
        return self.budget.is_over() or (self.budget.steps_max is not None and self.steps > self.budget.steps_max)


def _standing(reach: Reachability, way: Sequence[Arc]) -> int:
    """Return -1 when some arc of `way` would close a cycle, 1 when all are implied already, else 0."""
    after = reach.after
    standing = 1
    for source, target in way:
        if after[target] >> source & 1:
            return -1
        if standing and not after[source] >> target & 1:
            standing = 0
    return standing
