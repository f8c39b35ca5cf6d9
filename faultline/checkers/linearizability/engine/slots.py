"""The slot search: looking for a linearization in configurations that do not grow with the history.

Porcupine remembers, for every configuration, which of all n operations were linearized. Here everything before some
return is linearized and nothing after the next ones, so that a configuration is small: the *rank* of the first
completed operation, in order of return, that is not linearized; which of the *slots* open at its return are (an
operation takes a free slot at its call and gives it back at its return); the state; and which pending operations were
used. It is the same frontier that Lee & Mathur's `fptlin` works on, and comparisons are exact. Whatever must happen
before the next return is chosen just in time (Lowe, "Testing for linearizability", 2017), by these sound rules:

R1  An operation that changes nothing and is legal now is linearized at once (it can only get in the way later).
R2  Of equal open operations only the one that returns first is tried.
R3  A configuration is hopeless if the same one was visited with fewer pending operations used up. Equal pending
    operations are a *group*, used in order of call, so that what was used is a count for each group.
R4  A pending operation is used only when it makes an open operation, or another pending one, legal that was not: in
    front of one that was legal anyway it could come after it or stay away. A failed compare-and-set is among those that
    can be made legal: it needs *any* other value, so a write that nobody reads is not therefore useless.
R5  Values that nobody will look for any more are one *dead* value. Observers are counted while the search goes.
R6  When the operation that returns next demands what nothing open or pending can supply, turn back.
R7  A value is not left while somebody must still find it and nobody is left to bring it back.

Choices are tried in order of return, but what puts the value that the operation returning next waits for comes first.

With appends a text is alive while a get to come has it at its beginning; R4 becomes: a pending operation whose text
would be dead stays away. The budget is counted in steps, one for each configuration looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from faultline.checkers.linearizability.engine.columns import APPEND
from faultline.checkers.linearizability.engine.problem import DEAD, INITIAL, NEVER, Answer, Problem
from faultline.checkers.linearizability.operations import AVOID, OBSERVE, SWAP, WRITE
from faultline.checkers.porcupine.budget import Budget

__all__ = ["refuted_beginning", "search_slots"]

Group = tuple[int, int, int]
"""Kind, demand and produce (DEAD when nobody ever looks for it) of equal pending operations."""

Used = tuple[tuple[Group, int], ...]
"""How many pending operations of which groups were used."""


class _Frame(NamedTuple):
    """A configuration with the choices not yet taken, last one first, and those taken, of which the last may go on."""

    rank: int
    ahead: int
    state: int
    length: int
    choices: list[int]
    taken: list[int]


class _Search:
    """One search. `rank`, `ahead` (slots linearized), `state` and `taken` are the configuration it stands in."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.bit, self.windows = _slots(problem)
        self.observers: dict[int, int] = {}
        self.seers: dict[int, int] = {}
        self.producers: dict[int, int] = {}
        self._count_all()
        self.last_get = _last_gets(problem) if problem.has_appends else {}
        self.group_of, self.members = self._groups()
        self.suppliers: dict[int, list[Group]] = {}
        for group in self.members:
            self.suppliers.setdefault(group[2], []).append(group)
        self.first_pending = min((problem.call_at[i] for i in self.group_of), default=NEVER)
        self.rank, self.ahead, self.state = 0, 0, INITIAL
        self.path: list[int] = []
        self.taken: dict[Group, int] = {}
        self.frames: list[_Frame] = []
        self.visited: dict[tuple[int, int, int], list[dict[Group, int]]] = {}
        self.best: tuple[int, list[int], int] = (-1, [], INITIAL)

    # -- preparation --------------------------------------------------------------------------------------------

    def _count_all(self) -> None:
        """Who looks for each value (pending ones always may), who must find it, and who puts it."""
        problem = self.problem
        for i, kind in enumerate(problem.kind):
            if kind == SWAP and problem.is_pending(i):
                self.observers[problem.demand[i]] = self.observers.get(problem.demand[i], 0) + 1
            self._count(i, 1)

    def _count(self, i: int, by: int) -> None:
        """Count an operation in (by 1) when it is to be linearized, or out (by -1) when it was."""
        problem, kind = self.problem, self.problem.kind[i]
        if kind == APPEND:
            return
        if kind >= WRITE:
            produce = problem.produce[i]
            self.producers[produce] = self.producers.get(produce, 0) + by
        if kind == WRITE or problem.return_at[i] == NEVER:
            return
        demand = problem.demand[i]
        self.observers[demand] = self.observers.get(demand, 0) + by
        if kind != AVOID:
            self.seers[demand] = self.seers.get(demand, 0) + by

    def _groups(self) -> tuple[dict[int, Group], dict[Group, list[int]]]:
        problem = self.problem
        group_of: dict[int, Group] = {}
        members: dict[Group, list[int]] = {}
        for i in problem.by_call:
            kind, produce = problem.kind[i], problem.produce[i]
            if not problem.is_pending(i) or kind < WRITE:
                continue
            if kind != APPEND and not self._is_ever_looked_for(produce):
                produce = DEAD
                if problem.has_appends:
                    continue
            group = group_of[i] = (kind, problem.demand[i] if kind != WRITE else DEAD, produce)
            members.setdefault(group, []).append(i)
        return group_of, members

    def _is_ever_looked_for(self, value: int) -> bool:
        return value in (self.last_get if self.problem.has_appends else self.observers)

    def is_alive(self, value: int) -> bool:
        """Whether somebody may still look for `value` (R5)."""
        if self.problem.has_appends:
            return self.last_get.get(value, -1) >= self.rank
        return self.observers.get(value, 0) > 0

    # -- moving -------------------------------------------------------------------------------------------------

    def run(self, budget: Budget) -> Answer:
        """Search until there is an answer or the budget is spent."""
        problem, by_return, steps, forced = self.problem, self.problem.by_return, 0, False
        while True:
            while self.rank < len(by_return) and self.ahead & self.bit[by_return[self.rank]]:
                self.ahead ^= self.bit[by_return[self.rank]]
                self.rank += 1
            if self.rank == len(by_return):
                return Answer(True, self.path, self.rank, self.state, steps)
            if budget.is_spent(steps):
                self._remember_furthest()
                return Answer(None, self.best[1], self.best[0], self.best[2], steps)
            steps += 1
            self._observe_at_once()
            if self.ahead & self.bit[by_return[self.rank]]:
                continue
            if not self.is_alive(self.state):
                self.state = DEAD
            choices: list[int] = []
            if forced or not self._is_visited():
                choices = self._choices(problem.return_at[by_return[self.rank]])
                if not choices:
                    self._remember_furthest()
            forced = len(choices) == 1
            if forced:
                self._linearize(choices[0])
                continue
            if choices:
                self.frames.append(_Frame(self.rank, self.ahead, self.state, len(self.path), choices, []))
            if not self._take_next_choice():
                return Answer(False, self.best[1], self.best[0], self.best[2], steps)

    def _linearize(self, i: int) -> None:
        problem, kind = self.problem, self.problem.kind[i]
        self.path.append(i)
        if problem.return_at[i] == NEVER:
            group = self.group_of[i]
            self.taken[group] = self.taken.get(group, 0) + 1
        else:
            self.ahead |= self.bit[i]
        self._count(i, -1)
        if kind == APPEND:
            self.state = problem.edges[i].get(self.state, DEAD)
        elif kind >= WRITE:
            self.state = problem.produce[i]

    def _return_to(self, frame: _Frame) -> None:
        problem = self.problem
        for i in self.path[frame.length :]:
            if problem.return_at[i] == NEVER:
                self.taken[self.group_of[i]] -= 1
            self._count(i, 1)
        del self.path[frame.length :]
        self.rank, self.ahead, self.state = frame.rank, frame.ahead, frame.state

    def _take_next_choice(self) -> bool:
        """Go back to the last configuration with a choice left, and take it; False when there is none."""
        while self.frames:
            frame = self.frames[-1]
            if frame.choices:
                self._return_to(frame)
                frame.taken.append(frame.choices.pop())
                self._linearize(frame.taken[-1])
                return True
            self.frames.pop()
        return False

    def refuted(self) -> tuple[list[int], list[int]]:
        """The shortest beginning behind which some choices were tried in full, and in vain; and these choices."""
        for frame in self.frames:
            if len(frame.taken) > 1:
                return self.path[: frame.length], frame.taken[:-1]
        return [], []

    def _remember_furthest(self) -> None:
        if self.rank > self.best[0]:
            self.best = (self.rank, self.path[:], self.state)

    def _is_visited(self) -> bool:
        """Whether this configuration was visited, with no more pending operations used (R3); it is from now on."""
        used = {group: count for group, count in self.taken.items() if count}
        known = self.visited.setdefault((self.rank, self.ahead, self.state), [])
        if any(all(used.get(group, 0) >= count for group, count in before.items()) for before in known):
            return True
        known.append(used)
        return False

    # -- choosing -----------------------------------------------------------------------------------------------

    def _observe_at_once(self) -> None:
        """R1."""
        problem, state = self.problem, self.state
        for i in self.windows[self.rank]:
            kind = problem.kind[i]
            if kind <= AVOID and (problem.demand[i] == state) == (kind == OBSERVE) and not self.ahead & self.bit[i]:
                self._linearize(i)

    def _choices(self, return_at: int) -> list[int]:
        """What may be linearized next, to be tried from the end: pending ones last, then in order of return,
        what the next to return waits for first of all."""
        problem, state, next_one = self.problem, self.state, self.problem.by_return[self.rank]
        choices: list[int] = []
        demands: list[int] = []
        supply: set[int] = set()
        seen: set[Group] = set()
        for i in self.windows[self.rank]:
            if self.ahead & self.bit[i]:
                continue
            kind, demand, produce = problem.kind[i], problem.demand[i], problem.produce[i]
            if kind in (WRITE, SWAP):
                supply.add(produce)
            if kind in (WRITE, APPEND) or (kind == SWAP and demand == state):
                if kind != APPEND and not self.is_alive(produce):
                    produce = DEAD
                if not self._may_leave(kind == SWAP):
                    continue
                equal = (kind, demand if kind == APPEND else DEAD, produce)
                if equal not in seen:
                    seen.add(equal)
                    choices.append(i)
            else:
                demands.append(i)
        has_pending = self.first_pending < return_at
        if demands and demands[0] == next_one and not self._can_be_supplied(next_one, supply, has_pending):
            return []
        if demands and demands[0] == next_one and not problem.has_appends and problem.kind[next_one] != AVOID:
            sought = problem.demand[next_one]
            choices.sort(key=lambda i: problem.produce[i] != sought)
        if has_pending and self._may_leave(0):
            choices += self._useful_pending(demands, return_at)
        choices.reverse()
        return choices

    def _may_leave(self, accounted: int) -> bool:
        """R7: whether the state may be left by an operation that is itself so many of those who must find it."""
        state = self.state
        if state == DEAD or self.problem.has_appends:
            return True
        return self.seers.get(state, 0) <= accounted or self.producers.get(state, 0) > 0

    def _can_be_supplied(self, next_one: int, supply: set[int], has_pending: bool) -> bool:
        """R6: whether the next one to return, illegal now, could be made legal by somebody."""
        problem, demand = self.problem, self.problem.demand[next_one]
        if problem.has_appends:
            return True
        if problem.kind[next_one] == AVOID:
            return has_pending or bool(supply - {demand})
        return demand in supply or (has_pending and demand in self.suppliers)

    def _useful_pending(self, demands: list[int], return_at: int) -> Iterator[int]:
        """R4: pending operations called by now that help, one for each group."""
        if self.problem.has_appends:
            return self._live_pending(return_at)
        return self._wanted_pending(demands, return_at)

    def _next_of(self, group: Group, return_at: int) -> int | None:
        """The member of `group` to be used next, if it is called before `return_at`."""
        members, taken = self.members[group], self.taken.get(group, 0)
        if taken < len(members) and self.problem.call_at[members[taken]] < return_at:
            return members[taken]
        return None

    def _live_pending(self, return_at: int) -> Iterator[int]:
        for group in self.members:
            i = self._next_of(group, return_at)
            if i is None:
                continue
            after = self.problem.edges[i].get(self.state, DEAD) if group[0] == APPEND else group[2]
            if after != self.state and self.is_alive(after):
                yield i

    def _wanted_pending(self, demands: list[int], return_at: int) -> Iterator[int]:
        """Those that lead to a value in demand; and, if a failed compare-and-set must get away from the state, all."""
        problem, state = self.problem, self.state
        chosen: dict[Group, int] = {}
        wanted = [problem.demand[i] for i in demands if problem.kind[i] != AVOID]
        seen = set(wanted)
        while wanted:
            for group in self.suppliers.get(wanted.pop(), ()):
                i = self._next_of(group, return_at)
                if i is None:
                    continue
                if group[0] == WRITE or group[1] == state:
                    chosen[group] = i
                elif group[1] not in seen:
                    seen.add(group[1])
                    wanted.append(group[1])
        if any(problem.kind[i] == AVOID for i in demands):
            for group in self.members:
                i = self._next_of(group, return_at)
                if i is not None and (group[0] == WRITE or group[1] == state):
                    chosen[group] = i
        return (i for group, i in chosen.items() if group[2] != state or state == DEAD)


def _slots(problem: Problem) -> tuple[list[int], list[list[int]]]:
    """For each operation the bit of its slot, and for each rank the operations open at that return, in their order."""
    bit = [0] * len(problem.kind)
    windows: list[list[int]] = []
    opening = [i for i in problem.by_call if problem.return_at[i] != NEVER]
    free: list[int] = []
    open_now: list[int] = []
    slots, position = 0, 0
    for i in problem.by_return:
        while position < len(opening) and problem.call_at[opening[position]] < problem.return_at[i]:
            if not free:
                free.append(1 << slots)
                slots += 1
            bit[opening[position]] = free.pop()
            open_now.append(opening[position])
            position += 1
        open_now.sort(key=problem.return_at.__getitem__)
        windows.append(open_now[:])
        free.append(bit[open_now.pop(0)])
    return bit, windows


def _last_gets(problem: Problem) -> dict[int, int]:
    """For each text the rank of the last get that has it at its beginning."""
    last = {problem.demand[i]: rank for rank, i in enumerate(problem.by_return) if problem.kind[i] == OBSERVE}
    edges = {edge for i, by_state in enumerate(problem.edges) if problem.kind[i] == APPEND for edge in by_state.items()}
    for shorter, longer in sorted(edges, reverse=True):
        if longer in last:
            last[shorter] = max(last.get(shorter, -1), last[longer])
    return last


def search_slots(problem: Problem, budget: Budget) -> Answer:
    """Search a linearization of `problem` within `budget`."""
    return _Search(problem).run(budget)


def refuted_beginning(problem: Problem, budget: Budget) -> tuple[list[int], list[int]]:
    """A beginning of an order and the operations that need not come next, known when the search gives up at `budget`.

    Nothing when it comes to an end, or has not tried anything in full. R1 to R7 hold: an order that goes on so may be
    possible, but then there is another one as well.
    """
    search = _Search(problem)
    answer = search.run(budget)
    beginning, excluded = search.refuted() if answer.is_legal is None else ([], [])
    return [problem.operation[i] for i in beginning], [problem.operation[i] for i in excluded]
