"""Verifying configurations of registers and strings: one pass, no search.

This module is what a verdict rests on, so it is short and plain, and knows nothing of the engines. `native/verify.c` is
its fast twin. A set of configurations is looked at member by member: all that may come next must lead to members again.

"May come next" is narrowed by rules. Say that a configuration can be *completed in n steps* when n more operations,
linearized in some order that respects real time, bring it behind the last return. Each rule keeps this: of a
configuration that can be completed in n steps, what remains under the rule can be completed in n steps or fewer. Every
step linearizes one operation more, so the n of a set that is closed would fall for ever; hence none of its members can
be completed, and as the beginning is among them, the history has no linearization.

R1  *An open operation that observes, and is legal, is linearized at once.* It leaves the state as it is. Take it from
    its later place in a completion and put it in front: all others stay legal, and its call has passed.
R2  *Of equal open operations the first to return is tried.* Equal ones demand and put the same, so in a completion
    that begins with the other, exchange the two: at the later place the other one is still before its return, because
    the first one was. Pending operations that are equal form a group, used in order of call, for the same reason.
R3  *A configuration is dominated by one with the same rank, state and operations ahead that used no more of any group.*
    What completes the first completes the second: a pending operation may stay unused, and where one of a group was
    called, those called before it were too.
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

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from faultline.checkers.linearizability.certificates import Configurations, Relaxed
from faultline.checkers.linearizability.engine.columns import APPEND, PENDING, Columns
from faultline.checkers.linearizability.engine.problem import DEAD, INITIAL, NEVER, Problem, problem_of
from faultline.checkers.linearizability.operations import AVOID, OBSERVE, SWAP, WRITE

__all__ = ["Groups", "Place", "Rules", "fault_of_relaxation", "fault_of_set"]

Groups = tuple[tuple[int, int], ...]
"""Groups of pending operations with the number of members that were used, in order of group."""


class Place(NamedTuple):
    """A configuration for the rules: `used` counts by group."""

    rank: int
    state: int
    ahead: frozenset[int]
    used: Groups


class Rules:
    """The rules for what may come next on one key (R1 to R6)."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.rank_of = {i: rank for rank, i in enumerate(problem.by_return)}
        self.opening = self._opening()
        self.windows = self._windows()
        self.last_look = self._last_looks()
        self.group_of, self.members = self._groups()

    def _opening(self) -> list[list[int]]:
        """Return for each rank the completed operations called since the return before."""
        problem, position = self.problem, 0
        called = [i for i in problem.by_call if i in self.rank_of]
        opening: list[list[int]] = []
        for next_one in problem.by_return:
            begin = position
            while position < len(called) and problem.call_at[called[position]] < problem.return_at[next_one]:
                position += 1
            opening.append(called[begin:position])
        return opening

    def _windows(self) -> list[list[int]]:
        """Return for each rank the completed operations open at that return, in order of return."""
        windows: list[list[int]] = []
        open_now: list[int] = []
        for rank, opening in enumerate(self.opening):
            open_now = [i for i in open_now if self.rank_of[i] >= rank] + opening
            open_now.sort(key=self.rank_of.__getitem__)
            windows.append(open_now)
        return windows

    def _last_looks(self) -> dict[int, int]:
        """Return for each value that is looked for the last rank at which it is (R5)."""
        problem = self.problem
        last: dict[int, int] = {}
        for i, kind in enumerate(problem.kind):
            rank = self.rank_of.get(i, NEVER if kind == SWAP else -1)
            if kind in (OBSERVE, AVOID, SWAP) and rank >= 0:
                last[problem.demand[i]] = max(last.get(problem.demand[i], -1), rank)
        edges = {edge for by_state in problem.edges for edge in by_state.items()}
        # Longer texts have higher numbers: in this order a text is final before it is handed on to its beginning.
        for shorter, longer in sorted(edges, reverse=True):
            if longer in last:
                last[shorter] = max(last.get(shorter, -1), last[longer])
        return last

    def _groups(self) -> tuple[dict[int, int], list[list[int]]]:
        """Return the group of each pending operation, and the members of each group in order of call (R2)."""
        problem = self.problem
        known: dict[tuple[int, int, int], int] = {}
        group_of: dict[int, int] = {}
        members: list[list[int]] = []
        for i in problem.by_call:
            kind, demand, produce = problem.kind[i], problem.demand[i], problem.produce[i]
            if i in self.rank_of or kind < WRITE:
                continue
            if kind != APPEND and produce not in self.last_look:
                produce = DEAD
            group = known.setdefault((kind, DEAD if kind == WRITE else demand, produce), len(members))
            if group == len(members):
                members.append([])
            members[group].append(i)
            group_of[i] = group
        return group_of, members

    def beginning(self) -> Place | None:
        """Return where every execution begins; None when that is the end as well."""
        return self._settled(0, INITIAL, set(), (), self.windows[0]) if self.windows else None

    def _seen_as(self, state: int, rank: int) -> int:
        return state if self.last_look.get(state, -1) >= rank else DEAD

    def _settled(self, rank: int, state: int, ahead: set[int], used: Groups, fresh: Iterable[int]) -> Place | None:
        """Return the configuration once R1 was applied to the operations in `fresh`; None behind the last return."""
        by_return = self.problem.by_return
        while True:
            state = self._seen_as(state, rank)
            ahead.update(i for i in fresh if self.observes(i, state))
            if by_return[rank] not in ahead:
                return Place(rank, state, frozenset(ahead), used)
            ahead.remove(by_return[rank])
            rank += 1
            if rank == len(by_return):
                return None
            # No other open operation becomes legal by a return, because the state stays.
            fresh = self.opening[rank]

    def observes(self, i: int, state: int) -> bool:
        """Return whether `i` leaves the state as it is and is legal in it."""
        kind, demand = self.problem.kind[i], self.problem.demand[i]
        return (kind == OBSERVE and demand == state) or (kind == AVOID and demand != state)

    def steps(self, place: Place) -> Iterator[Place | None]:
        """Yield where each operation that may come next leads; None is the end."""
        problem, rank, state = self.problem, place.rank, place.state
        waiting = [i for i in self.windows[rank] if i not in place.ahead]
        available = self._available(place)
        if not self._is_supplied(place, waiting, available):
            return
        tried: set[tuple[int, int, int]] = set()
        for i in waiting:
            kind, demand = problem.kind[i], problem.demand[i]
            if kind < WRITE or (kind == SWAP and demand != state):
                continue
            after = self._after(i, state, rank)
            equal = (kind, demand, problem.produce[i] if kind == APPEND else after)
            if equal not in tried:
                tried.add(equal)
                yield self._settled(rank, after, {*place.ahead, i}, place.used, self.windows[rank])
        wanted = self._wanted(waiting, available)
        changes = any(problem.kind[i] == AVOID for i in waiting)
        for group, i in available:
            after = self._after(i, state, rank)
            if after == state or (problem.kind[i] == SWAP and problem.demand[i] != state):
                continue
            if changes or (after != DEAD if problem.has_appends else after in wanted):
                yield self._settled(rank, after, set(place.ahead), _one_more(place.used, group), self.windows[rank])

    def _available(self, place: Place) -> list[tuple[int, int]]:
        """Return the groups with a member that was called by now and is not used, with the first such member."""
        now, used = self.problem.return_at[self.problem.by_return[place.rank]], dict(place.used)
        found: list[tuple[int, int]] = []
        for group, members in enumerate(self.members):
            count = used.get(group, 0)
            if count < len(members) and self.problem.call_at[members[count]] < now:
                found.append((group, members[count]))
        return found

    def _is_supplied(self, place: Place, waiting: Sequence[int], available: Sequence[tuple[int, int]]) -> bool:
        """Return whether what returns next is legal or may become so (R6)."""
        problem, next_one = self.problem, self.problem.by_return[place.rank]
        demand = problem.demand[next_one]
        if problem.has_appends or problem.kind[next_one] not in (OBSERVE, SWAP) or demand == place.state:
            return True
        others = [i for i in waiting if i != next_one and problem.kind[i] >= WRITE]
        return any(problem.produce[i] == demand for i in [*others, *(i for _, i in available)])

    def _wanted(self, waiting: Sequence[int], available: Sequence[tuple[int, int]]) -> set[int]:
        """Return the values in demand (R4)."""
        problem = self.problem
        wanted = {problem.demand[i] for i in waiting if problem.kind[i] in (OBSERVE, SWAP)}
        swaps = [i for _, i in available if problem.kind[i] == SWAP]
        size = -1
        while size < len(wanted):
            size = len(wanted)
            wanted.update(problem.demand[i] for i in swaps if problem.produce[i] in wanted)
        return wanted

    def _after(self, i: int, state: int, rank: int) -> int:
        problem = self.problem
        after = problem.edges[i].get(state, DEAD) if problem.kind[i] == APPEND else problem.produce[i]
        return self._seen_as(after, rank)


def _one_more(used: Groups, group: int) -> Groups:
    counts = dict(used)
    counts[group] = counts.get(group, 0) + 1
    return tuple(sorted(counts.items()))


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


def fault_of_set(columns: Columns, configurations: Configurations) -> str:
    """Return why `configurations` do not refute `columns`, in words; nothing when they do."""
    rules = Rules(problem_of(columns, range(len(columns))))
    known: dict[tuple[int, int, frozenset[int]], list[Groups]] = {}
    places: list[Place] = []
    for k in range(len(configurations)):
        place = _place(rules, configurations, k)
        if place is None:
            return f"member {k} of its set is no configuration of these operations"
        places.append(place)
        known.setdefault(place[:3], []).append(place.used)
    if not _holds(known, rules.beginning()):
        return "its set does not hold the beginning"
    for k, place in enumerate(places):
        if not all(_holds(known, after) for after in rules.steps(place)):
            return f"a step leads from member {k} of its set out of the set"
    return ""


def _place(rules: Rules, configurations: Configurations, k: int) -> Place | None:
    """Return member `k`; None when it is no configuration, or not one to which R1 and R5 were applied."""
    rank, state, ahead, used = configurations[k]
    windows = rules.windows
    if not 0 <= rank < len(windows) or (k and rank < configurations.rank[k - 1]):
        return None
    open_now, placed = set(windows[rank]), frozenset(ahead)
    if state != DEAD and rules.last_look.get(state, -1) < rank:
        return None
    if len(placed) < len(ahead) or not placed <= open_now or windows[rank][0] in placed:
        return None
    if any(i not in rules.group_of for i in used) or len(set(used)) < len(used):
        return None
    if any(i not in placed and rules.observes(i, state) for i in open_now):
        return None
    counts: Groups = ()
    for i in used:
        counts = _one_more(counts, rules.group_of[i])
    return Place(rank, state, placed, counts)


def _holds(known: dict[tuple[int, int, frozenset[int]], list[Groups]], place: Place | None) -> bool:
    """Return whether a member dominates `place` (R3); the end is dominated by none."""
    if place is None:
        return False
    used = dict(place.used)
    return any(all(count <= used.get(group, 0) for group, count in before) for before in known.get(place[:3], ()))
