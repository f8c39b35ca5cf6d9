"""The slot search: looking for a linearization in configurations that do not grow with the history.

Porcupine remembers, for every configuration, which of all n operations were linearized. Here everything before some
return is linearized and nothing after the next ones, so that a configuration is small: the *rank* of the first
completed operation, in order of return, that is not linearized; which of the *slots* open at its return are (an
operation takes a free slot at its call and gives it back at its return); the state; and which pending operations were
used. It is the same frontier that Lee & Mathur's `fptlin` works on, and comparisons are exact. The operations that must
happen before the next return are chosen just in time (Lowe, "Testing for linearizability", 2017), by these rules. Each
is *sound*: when there is a linearization, there is one that keeps the rule.

R1  An operation that changes nothing and is legal now is linearized at once (it can only get in the way later).
R2  Of equal open operations only the one that returns first is tried.
R3  A configuration is hopeless if the same one was visited with fewer pending operations used up. Equal pending
    operations are a *group*, used in order of call, so that what was used is a count for each group.
R4  A pending operation is used only when it makes an open operation, or another pending one, legal that was not: in
    front of one that was legal anyway it could come after it or stay away. A failed compare-and-set is among those that
    can be made legal: it needs *any* other value, so a write that no operation reads is not therefore useless.
R5  Values that no operation will look for any more are one *dead* value. Observers are counted while the search goes.
R6  When the operation that returns next demands what nothing open or pending can supply, turn back.
R7  A value is not left while an operation must still find it and none is left that brings it back.
R8  A value must be put often enough. A compare-and-set leaves the value that it demands, so each needs an operation of
    its own that puts it, if the state is not that value: one not linearized yet and called before the compare-and-set
    returns. So when more open compare-and-sets demand a value by some return than there are operations of that kind
    called before it, one more for the state, turn back. An operation that only observes needs one such.

Choices are tried in order of return, but those that put the value that the operation returning next demands come first.

With appends a text is alive while a get to come has it at its beginning; R4 becomes: a pending operation whose text
would be dead stays away. The budget is counted in steps, one for each configuration looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from faultline.checkers.linearizability.decision import Decision, Legality
from faultline.checkers.linearizability.engine.columns import APPEND
from faultline.checkers.linearizability.engine.problem import (
    DEAD,
    INITIAL,
    NEVER,
    Problem,
    called_producers,
    last_gets,
    slots_of,
)
from faultline.checkers.linearizability.operations import AVOID, OBSERVE, SWAP, WRITE
from faultline.checkers.porcupine.budget import Budget

__all__ = ["refuted_beginning", "search_slots"]

Group = tuple[int, int, int]
"""Kind, demand and produce (DEAD when no operation ever looks for it) of equal pending operations."""

Used = tuple[tuple[Group, int], ...]
"""The number of pending operations that were used, by group."""


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
        self.bit, self.windows = slots_of(problem)
        self.observers: dict[int, int] = {}
        self.seers: dict[int, int] = {}
        self.producers: dict[int, int] = {}
        self._count_all()
        self.all_producers = self.producers.copy()
        # Where no compare-and-set returned, R8 gains less than it costs.
        self.has_swaps = not problem.has_appends and any(problem.kind[i] == SWAP for i in problem.by_return)
        self.called_producers = called_producers(problem) if self.has_swaps else {}
        self.last_get = last_gets(problem) if problem.has_appends else {}
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
        self.best: tuple[int, list[int]] = (-1, [])

    def _count_all(self) -> None:
        """Count for each value the operations that look for it, that must find it, and that put it."""
        problem = self.problem
        for i, kind in enumerate(problem.kind):
            # A pending compare-and-set is never counted out: unused, it may look for its value to the very end.
            if kind == SWAP and problem.is_pending(i):
                self.observers[problem.demand[i]] = self.observers.get(problem.demand[i], 0) + 1
            self._count(i, 1)

    def _count(self, i: int, by: int) -> None:
        """Count an operation in (`by` is 1) when it is to be linearized, or out (-1) when it was."""
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
        """Return whether an operation may still look for `value` (R5)."""
        if self.problem.has_appends:
            return self.last_get.get(value, -1) >= self.rank
        return self.observers.get(value, 0) > 0

    def run(self, budget: Budget) -> Decision:
        """Search until the problem is decided or the budget is spent."""
        problem, by_return, steps, forced = self.problem, self.problem.by_return, 0, False
        while True:
            # Completed operations that were linearized ahead of their return give their slots back one by one: only
            # so is the same frontier always the same configuration.
            while self.rank < len(by_return) and self.ahead & self.bit[by_return[self.rank]]:
                self.ahead ^= self.bit[by_return[self.rank]]
                self.rank += 1
            if self.rank == len(by_return):
                return Decision(Legality.LEGAL, "slots", self.path, self.rank, steps)
            if budget.is_spent(steps):
                self._remember_furthest()
                return self._without_order(Legality.UNKNOWN, steps)
            steps += 1
            self._observe_at_once()
            if self.ahead & self.bit[by_return[self.rank]]:
                continue
            if not self.is_alive(self.state):
                self.state = DEAD
            choices: list[int] = []
            # A configuration that was reached without a choice is neither looked up nor remembered: walking on is
            # cheaper, and the configuration in which there was a choice is remembered.
            if forced or not self._is_visited():
                if not (self.has_swaps and self._is_short()):
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
                return self._without_order(Legality.ILLEGAL, steps)

    def _without_order(self, legality: Legality, steps: int) -> Decision:
        """Return a decision that has no linearization to show, only the longest order that was found."""
        furthest, order = self.best
        return Decision(legality, "slots", order, furthest, steps)

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
        """Go back to the last configuration with a choice left, and take it; return False when there is none."""
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
        """Return the shortest beginning behind which choices were tried in full and in vain, and these choices."""
        for frame in self.frames:
            # Of the choices taken, the search is still behind the last one: that one is not refuted yet.
            if len(frame.taken) > 1:
                return self.path[: frame.length], frame.taken[:-1]
        return [], []

    def _remember_furthest(self) -> None:
        if self.rank > self.best[0]:
            self.best = (self.rank, self.path[:])

    def _is_visited(self) -> bool:
        """Return whether this configuration was visited with no more pending operations used (R3); remember it."""
        used = {group: count for group, count in self.taken.items() if count}
        known = self.visited.setdefault((self.rank, self.ahead, self.state), [])
        if any(all(used.get(group, 0) >= count for group, count in before.items()) for before in known):
            return True
        known.append(used)
        return False

    def _is_short(self) -> bool:
        """Return whether open operations must find a value more often by some return than it can be put (R8)."""
        problem, owed = self.problem, dict[int, int]()
        # A window is in order of return: the compare-and-sets so far must all be linearized by the return of this one.
        for i in self.windows[self.rank]:
            kind, value = problem.kind[i], problem.demand[i]
            if kind not in (OBSERVE, SWAP) or self.ahead & self.bit[i]:
                continue
            if kind == SWAP:
                owed[value] = owed.get(value, 0) + 1
            supply = self.called_producers[i] - self.all_producers.get(value, 0) + self.producers.get(value, 0)
            if supply + (self.state == value) < (owed[value] if kind == SWAP else 1):
                return True
        return False

    def _observe_at_once(self) -> None:
        """Linearize every open operation that changes nothing and is legal now (R1)."""
        problem, state = self.problem, self.state
        for i in self.windows[self.rank]:
            kind = problem.kind[i]
            if kind <= AVOID and (problem.demand[i] == state) == (kind == OBSERVE) and not self.ahead & self.bit[i]:
                self._linearize(i)

    def _choices(self, return_at: int) -> list[int]:
        """Return the operations that may be linearized next; the last one is to be tried first.

        None when the operation that returns next, at `return_at`, cannot become legal in time.
        """
        problem, next_one = self.problem, self.problem.by_return[self.rank]
        open_now = [i for i in self.windows[self.rank] if not self.ahead & self.bit[i]]
        changing: list[int] = []
        waiting: list[int] = []
        for i in open_now:
            # Observers that are legal here were linearized at once, so those still open wait for another state.
            kind = problem.kind[i]
            is_legal = kind in (WRITE, APPEND) or (kind == SWAP and problem.demand[i] == self.state)
            (changing if is_legal else waiting).append(i)
        choices = self._one_of_each(changing)
        has_pending = self.first_pending < return_at
        # A window is in order of return: if the operation that returns next waits, it is the first that does.
        if waiting and waiting[0] == next_one:
            if not self._can_be_supplied(next_one, open_now, has_pending):
                return []
            if not problem.has_appends and problem.kind[next_one] != AVOID:
                # The value it demands must be put before its return anyway; put now, it ends the wait soonest.
                sought = problem.demand[next_one]
                choices.sort(key=lambda i: problem.produce[i] != sought)
        # Pending operations go last: one that is used here is gone for all that follows.
        if has_pending and self._may_leave(0):
            choices += self._useful_pending(waiting, return_at)
        choices.reverse()
        return choices

    def _one_of_each(self, changing: Iterable[int]) -> list[int]:
        """Return the operations of `changing` that may leave the state (R7), of equal ones the first (R2)."""
        problem = self.problem
        may_overwrite, may_swap = self._may_leave(0), self._may_leave(1)
        first: dict[Group, int] = {}
        for i in changing:
            kind, produce = problem.kind[i], problem.produce[i]
            if kind == APPEND:
                equal = (kind, problem.demand[i], produce)
            else:
                equal = (kind, DEAD, produce if self.is_alive(produce) else DEAD)
            if may_swap if kind == SWAP else may_overwrite:
                first.setdefault(equal, i)
        return list(first.values())

    def _may_leave(self, accounted: int) -> bool:
        """Return whether the state may be left (R7) by an operation that is itself `accounted` of those that must find
        it: a compare-and-set is one of them, a write is none."""
        state = self.state
        if state == DEAD or self.problem.has_appends:
            return True
        return self.seers.get(state, 0) <= accounted or self.producers.get(state, 0) > 0

    def _can_be_supplied(self, next_one: int, open_now: Iterable[int], has_pending: bool) -> bool:
        """Return whether an open or a pending operation may make `next_one`, illegal now, legal (R6)."""
        problem, demand = self.problem, self.problem.demand[next_one]
        if problem.has_appends:
            return True
        supply = {problem.produce[i] for i in open_now if problem.kind[i] in (WRITE, SWAP)}
        if problem.kind[next_one] == AVOID:
            return has_pending or bool(supply - {demand})
        return demand in supply or (has_pending and demand in self.suppliers)

    def _useful_pending(self, waiting: list[int], return_at: int) -> Iterator[int]:
        """Return the pending operations called before `return_at` that help (R4), one for each group."""
        if self.problem.has_appends:
            return self._live_pending(return_at)
        return self._wanted_pending(waiting, return_at)

    def _next_of(self, group: Group, return_at: int) -> int | None:
        """Return the member of `group` to be used next, if it is called before `return_at`."""
        # The member that was called first may be used at every moment at which another one may: no choice is lost.
        members, taken = self.members[group], self.taken.get(group, 0)
        if taken < len(members) and self.problem.call_at[members[taken]] < return_at:
            return members[taken]
        return None

    def _live_pending(self, return_at: int) -> Iterator[int]:
        """Yield the pending operations that lead to another text that a get may still see."""
        for group in self.members:
            i = self._next_of(group, return_at)
            if i is None:
                continue
            after = self.problem.edges[i].get(self.state, DEAD) if group[0] == APPEND else group[2]
            if after != self.state and self.is_alive(after):
                yield i

    def _wanted_pending(self, waiting: list[int], return_at: int) -> Iterator[int]:
        """Yield the pending operations that lead to a value that one of `waiting` demands."""
        problem, state = self.problem, self.state
        chosen: dict[Group, int] = {}
        wanted = [problem.demand[i] for i in waiting if problem.kind[i] != AVOID]
        seen = set(wanted)
        # Backwards from each value in demand: a write supplies it from any state, a compare-and-set from its own value
        # only, which is then in demand too. Those that are legal in this state begin a way to a demand.
        while wanted:
            for group in self.suppliers.get(wanted.pop(), ()):
                i = self._next_of(group, return_at)
                if i is None:
                    continue
                if self._is_legal_now(group):
                    chosen[group] = i
                elif group[1] not in seen:
                    seen.add(group[1])
                    wanted.append(group[1])
        if any(problem.kind[i] == AVOID for i in waiting):
            # A failed compare-and-set must get away from the state, and any other value will do.
            for group in filter(self._is_legal_now, self.members):
                i = self._next_of(group, return_at)
                if i is not None:
                    chosen[group] = i
        # To put the value that is there already helps no operation.
        return (i for group, i in chosen.items() if group[2] != state)

    def _is_legal_now(self, group: Group) -> bool:
        """Return whether pending operations of `group` are legal in this state."""
        return group[0] == WRITE or group[1] == self.state


def search_slots(problem: Problem, budget: Budget) -> Decision:
    """Search a linearization of `problem` within `budget`; positions are those in the problem."""
    return _Search(problem).run(budget)


def refuted_beginning(problem: Problem, budget: Budget) -> tuple[list[int], list[int]]:
    """Return a beginning of an order and the operations that need not come next, once the search gave up at `budget`.

    Both are empty when it comes to an end, or has not tried anything in full. R1 to R8 hold: an order that goes on so
    may be possible, but then there is another one as well.
    """
    search = _Search(problem)
    beginning, excluded = search.refuted() if search.run(budget).is_unknown else ([], [])
    return [problem.operation[i] for i in beginning], [problem.operation[i] for i in excluded]
