"""The rules of registers and strings for `verify`: what their operations do, and which pending ones can help.

`native/verify.c` is the fast twin of these rules. They go on where those of `verify` end:

R4  *A pending operation is tried only if what it puts is in demand, or an open failed compare-and-set waits for a
    change.* In demand is what an open operation demands, and what an available pending compare-and-set demands whose
    own value is in demand. Take a shortest completion that begins with the pending operation. Something follows it
    before the next return, since that operation is not linearized yet; by R1 it changes the state or was not legal
    before. If it writes whatever the state is, the pending operation could be left out, and the completion were not
    shortest. So it demands the new state. If it is open, that is in demand; if it is pending, its own value is by the
    same argument, as the rest is a shortest completion too. With appends, a pending operation is tried unless its
    text is dead (R5): then only a write leads back to a state that is looked for, and the operation can be left out.
R5  *A value is dead when no operation that returns from this rank on, and no pending compare-and-set, looks for it.*
    All dead values are legal for the same operations, now and later, so they count as one. With appends a text is
    looked for as long as a text that appends make of it is.
R6  *Where the next return demands a value that is not there, one that puts it must be open or pending and available.*
    Otherwise no step leads behind that return. (Not used with appends.)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from faultline.checkers.linearizability.certificates import Relaxed
from faultline.checkers.linearizability.engine.columns import APPEND, PENDING, Columns
from faultline.checkers.linearizability.engine.problem import DEAD, INITIAL, NEVER, Problem, problem_of
from faultline.checkers.linearizability.operations import AVOID, OBSERVE, SWAP, WRITE
from faultline.checkers.linearizability.verify import Available, Place, Rules

__all__ = ["ValueRules", "fault_of_relaxation"]


class ValueRules(Rules):
    """The rules of the one key in `columns` (R1 to R6)."""

    def __init__(self, columns: Columns) -> None:
        self.problem = problem = problem_of(columns, range(len(columns)))
        self.last_look = _last_looks(problem)
        super().__init__(problem, INITIAL, {i for i, kind in enumerate(problem.kind) if kind < WRITE})

    def after(self, i: int, state: int, rank: int) -> int | None:
        """Return the state that `i` leads to from `state`; None when it is illegal there."""
        problem = self.problem
        kind = problem.kind[i]
        if kind == AVOID:
            return None if problem.demand[i] == state else state
        if kind in (OBSERVE, SWAP) and problem.demand[i] != state:
            return None
        if kind == OBSERVE:
            return state
        return self.seen_as(problem.edges[i].get(state, DEAD) if kind == APPEND else problem.produce[i], rank)

    def kind_of(self, i: int, after: int | None = None) -> Hashable:
        """Return what `i` demands, and what it puts as far as that can be told."""
        problem = self.problem
        kind, produce = problem.kind[i], problem.produce[i]
        if kind != APPEND:
            produce = self.seen_as(produce, 0) if after is None else after
        return kind, DEAD if kind == WRITE else problem.demand[i], produce

    def seen_as(self, state: int, rank: int) -> int:
        """Return `state`, or DEAD when no operation looks for it from `rank` on (R5)."""
        return state if self.last_look.get(state, -1) >= rank else DEAD

    def is_supplied(self, place: Place, waiting: Sequence[int], available: Available) -> bool:
        """Return whether what returns next is legal or may become so (R6)."""
        problem, next_one = self.problem, self.by_return[place.rank]
        demand = problem.demand[next_one]
        if problem.has_appends or problem.kind[next_one] not in (OBSERVE, SWAP) or demand == place.state:
            return True
        others = [i for i in waiting if i != next_one and problem.kind[i] >= WRITE]
        return any(problem.produce[i] == demand for i in [*others, *(i for _, i in available)])

    def wanted(self, waiting: Sequence[int], available: Available) -> Callable[[int], bool]:
        """Return the test for values in demand (R4)."""
        problem = self.problem
        if any(problem.kind[i] == AVOID for i in waiting):
            return lambda _after: True
        if problem.has_appends:
            return lambda after: after != DEAD
        wanted = {problem.demand[i] for i in waiting if problem.kind[i] in (OBSERVE, SWAP)}
        swaps = [i for _, i in available if problem.kind[i] == SWAP]
        size = -1
        while size < len(wanted):
            size = len(wanted)
            wanted.update(problem.demand[i] for i in swaps if problem.produce[i] in wanted)
        return wanted.__contains__


def _last_looks(problem: Problem) -> dict[int, int]:
    """Return for each value that is looked for the last rank at which it is (R5)."""
    rank_of = {i: rank for rank, i in enumerate(problem.by_return)}
    last: dict[int, int] = {}
    for i, kind in enumerate(problem.kind):
        rank = rank_of.get(i, NEVER if kind == SWAP else -1)
        if kind in (OBSERVE, AVOID, SWAP) and rank >= 0:
            last[problem.demand[i]] = max(last.get(problem.demand[i], -1), rank)
    edges = {edge for by_state in problem.edges for edge in by_state.items()}
    # Longer texts have higher numbers: in this order a text is final before it is handed on to its beginning.
    for shorter, longer in sorted(edges, reverse=True):
        if longer in last:
            last[shorter] = max(last.get(shorter, -1), last[longer])
    return last


def fault_of_relaxation(columns: Columns, relaxed: Sequence[Relaxed]) -> str:
    """Return why not every linearization of `columns` is one of `relaxed`, in words; nothing when it is.

    An operation may become earlier or later, a compare-and-set may forget what it demands, and what observes may be
    left out. What changes the state may be left out when none of the values that it can put is looked for by an
    operation that is kept: without it, the kept operations up to the next change are the same ones, which demand
    nothing. It may be left out, too, when it was called after all had returned that the relaxation places: an order
    can end before it.
    """
    kept = [each.operation for each in relaxed]
    if any(not 0 <= i < len(columns) for i in kept) or sorted(set(kept)) != kept:
        return "its relaxation does not name operations in their order"
    blind = {each.operation for each in relaxed if each.is_blind}
    if any(columns.kind[i] != SWAP for i in blind):
        return "its relaxation takes the demand from an operation that is no compare-and-set"
    if any(each.is_late and columns.kind[each.operation] < WRITE for each in relaxed):
        return "its relaxation keeps an operation that only observes as a pending one"
    looked_for = {columns.demand[i] for i in kept if columns.kind[i] in (OBSERVE, SWAP) and i not in blind}
    edges = sorted(zip(columns.edge_from, columns.edge_to), reverse=True)
    for shorter, longer in edges:
        if longer in looked_for:
            looked_for.add(shorter)
    watched = any(columns.kind[i] == AVOID for i in kept)
    present = set(kept)
    last_return = max((columns.return_[each.operation] for each in relaxed if not each.is_late), default=PENDING)
    for i, kind in enumerate(columns.kind):
        if i in present or kind < WRITE or columns.call[i] > last_return:
            continue
        span = slice(columns.produce[i], columns.demand[i])
        puts = columns.edge_to[span] if kind == APPEND else (columns.produce[i],)
        if watched or any(value in looked_for for value in puts):
            return f"its relaxation leaves out operation {i}, whose value another one looks for"
    return ""
