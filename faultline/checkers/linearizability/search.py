"""A fast search for a linearization of one register.

Porcupine remembers, for every configuration, which of all n operations were linearized. Here a configuration is where
the history has advanced to: the *rank* `r` of the first completed operation, in order of return, that is not yet
linearized; which of the operations open at its return already are (`ahead`, bit i for rank r + i); the state; and which
pending operations were used. That is small whatever n is, and the same frontier that Lee & Mathur's `fptlin` works on.
Whatever must happen before the return of rank r is chosen just in time (Lowe 2017), by these sound rules:

- an operation that changes nothing and is legal now is linearized at once (it can only get in the way later);
- of equal open writes only the one that returns first is tried;
- a pending operation is used only when it makes an open or pending operation legal that was not: used in front of an
  operation that was legal anyway it could come after it or stay away. A failed compare-and-set is among those it can
  make legal: it needs *any* other value, so a write that nobody reads is not therefore useless;
- when the operation that must come before the next return demands a value that nothing open can supply, turn back;
- a configuration is hopeless if the same one was hopeless with fewer pending operations used up;
- states that nobody will look at any more count as one.

The search answers a linearization, to be replayed by `witness`, or how far it got, to be confirmed by the port of
Porcupine. The budget is counted in steps, one for each configuration looked at.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from faultline.checkers.linearizability.operations import (
    AVOID,
    INFINITY,
    OBSERVE,
    SWAP,
    WRITE,
    RegisterOperation,
)
from faultline.checkers.porcupine import UNLIMITED, Budget, CheckResult

__all__ = ["SearchResult", "search"]

_DEAD = object()
_DeadEnds = dict[tuple[int, int, Hashable], list[int]]


class SearchResult(NamedTuple):
    """`order`: the linearization found, or the longest one; `furthest`: completed operations that can be placed, in
    order of return, before one cannot (all of them when OK); `state`: the state after `order`."""

    result: CheckResult
    order: list[RegisterOperation]
    furthest: int
    state: Hashable
    steps: int


class _Frame(NamedTuple):
    """A branching configuration with the choices not yet taken, last one first."""

    rank: int
    ahead: int
    state: Hashable
    used: int
    length: int
    choices: list[int]


class _Problem:
    """One register's operations, prepared: completed ones by rank, who is open when each returns, pending ones."""

    def __init__(self, operations: Sequence[RegisterOperation]) -> None:
        completed = [operation for operation in operations if operation.return_ != INFINITY]
        self.completed = sorted(completed, key=_by_return)
        self.pending = [operation for operation in operations if operation.return_ == INFINITY]
        self.windows = _windows(self.completed)
        self._last_observer: dict[Hashable, int] | None = None

    def operation(self, choice: int) -> RegisterOperation:
        """Choices are ranks from 0 up and pending operations from -1 down."""
        return self.completed[choice] if choice >= 0 else self.pending[~choice]

    def is_watched(self, state: Hashable, rank: int) -> bool:
        """Whether an operation of `rank` or later, or a pending one, may still depend on the state being `state`."""
        if self._last_observer is None:
            observers = [(operation.demand, number) for number, operation in enumerate(self.completed)]
            observers += [(operation.demand, len(self.completed)) for operation in self.pending if operation[0] == SWAP]
            self._last_observer = dict(observers)
        return self._last_observer.get(state, -1) >= rank


def _rank_of(partial: tuple[int, list[int], Hashable]) -> int:
    return partial[0]


def _by_return(operation: RegisterOperation) -> int:
    return operation[4]


def _by_call(operation: RegisterOperation) -> int:
    return operation[3]


def _windows(completed: list[RegisterOperation]) -> list[list[int]]:
    """For each rank the later ranks, ascending, whose operations are called before it returns."""
    windows: list[list[int]] = []
    calls = sorted(range(len(completed)), key=[operation[3] for operation in completed].__getitem__)
    open_ranks: list[int] = []
    position, size = 0, len(calls)
    for rank, operation in enumerate(completed):
        return_ = operation[4]
        while position < size and completed[calls[position]][3] < return_:
            open_ranks.append(calls[position])
            position += 1
        open_ranks.remove(rank)
        windows.append(sorted(open_ranks) if len(open_ranks) > 1 else open_ranks[:])
    return windows


def search(
    operations: Sequence[RegisterOperation], initial: Hashable = None, budget: Budget = UNLIMITED
) -> SearchResult:
    """Look for a linearization of `operations` (one register) that starts from `initial`."""
    problem = _Problem(operations)
    completed, windows, pending = problem.completed, problem.windows, problem.pending
    first_pending = min(map(_by_call, pending), default=INFINITY)
    size, rank, ahead, used, steps = len(completed), 0, 0, 0, 0
    state, path = initial, list[int]()
    longest: tuple[int, list[int], Hashable] = (-1, [], initial)
    frames: list[_Frame] = []
    dead_ends: _DeadEnds = {}
    while True:
        while ahead & 1:
            rank += 1
            ahead >>= 1
        if rank == size:
            return SearchResult(CheckResult.OK, [problem.operation(choice) for choice in path], size, state, steps)
        if budget.is_spent(steps):
            longest = max(longest, (rank, path, state), key=_rank_of)
            return _stopped(problem, CheckResult.UNKNOWN, longest, steps)
        steps += 1
        kind, demand, produce, _, return_, _ = completed[rank]
        window = windows[rank]
        choice = rank
        if (kind == OBSERVE and demand == state) or (kind == AVOID and demand != state):
            pass
        elif not window and first_pending > return_ and (kind == WRITE or (kind == SWAP and demand == state)):
            state = produce
        else:
            ahead = _observe_at_once(completed, window, rank, ahead, state, path)
            choices: list[int] = []
            if not (dead_ends and _is_dead(problem, dead_ends, rank, ahead, state, used)):
                choices = _choices(problem, rank, ahead, state, used)
            if not choices and rank > longest[0]:
                longest = (rank, path[:], state)
            frames.append(_Frame(rank, ahead, state, used, len(path), choices))
            while not frames[-1].choices:
                _bury(problem, dead_ends, frames.pop())
                if not frames:
                    return _stopped(problem, CheckResult.ILLEGAL, longest, steps)
            rank, ahead, state, used, length, choices = frames[-1]
            del path[length:]
            choice = choices.pop()
            state = problem.operation(choice)[2]
        path.append(choice)
        if choice >= 0:
            ahead |= 1 << (choice - rank)
        else:
            used |= 1 << ~choice


def _stopped(
    problem: _Problem, result: CheckResult, longest: tuple[int, list[int], Hashable], steps: int
) -> SearchResult:
    furthest, path, state = longest
    return SearchResult(result, [problem.operation(choice) for choice in path], furthest, state, steps)


def _observe_at_once(
    completed: list[RegisterOperation], window: list[int], rank: int, ahead: int, state: Hashable, path: list[int]
) -> int:
    """Linearize every open operation that changes nothing and is legal; answers the new `ahead`."""
    for other in window:
        kind, demand, _, _, _, _ = completed[other]
        if (kind == OBSERVE and demand == state) or (kind == AVOID and demand != state):
            bit = 1 << (other - rank)
            if not ahead & bit:
                ahead |= bit
                path.append(other)
    return ahead


def _choices(problem: _Problem, rank: int, ahead: int, state: Hashable, used: int) -> list[int]:
    """What may be linearized next, to be tried from the end: pending operations last, then in order of return."""
    completed, window = problem.completed, problem.windows[rank]
    return_ = completed[rank][4]
    choices: list[int] = []
    demands: list[RegisterOperation] = []
    supply: set[Hashable] = set()
    seen: set[tuple[int, Hashable, Hashable]] = set()
    for choice in (rank, *window):
        if choice != rank and ahead >> (choice - rank) & 1:
            continue
        operation = completed[choice]
        kind, demand, produce, _, _, _ = operation
        if kind >= WRITE:
            supply.add(produce)
        if kind == WRITE or (kind == SWAP and demand == state):
            if (kind, demand, produce) not in seen:
                seen.add((kind, demand, produce))
                choices.append(choice)
        else:
            demands.append(operation)
    if problem.pending:
        supply.update(_use_pending(problem, return_, state, used, demands, choices))
    if demands and demands[0] is completed[rank] and not _can_be_supplied(demands[0], supply):
        return []
    choices.reverse()
    return choices


def _can_be_supplied(operation: RegisterOperation, supply: set[Hashable]) -> bool:
    """Whether an operation that is illegal now may become legal when `supply` is what can still be put before it."""
    if operation[0] == AVOID:
        return bool(supply - {operation[1]})
    return operation[1] in supply


def _use_pending(
    problem: _Problem,
    return_: int,
    state: Hashable,
    used: int,
    demands: list[RegisterOperation],
    choices: list[int],
) -> set[Hashable]:
    """Add to `choices` the pending operations called before `return_` that make one of `demands`, or another pending
    operation, legal; answers all values that pending operations can still produce."""
    available = [
        (number, operation)
        for number, operation in enumerate(problem.pending)
        if operation[3] < return_ and not used >> number & 1
    ]
    wanted = {operation[1] for operation in demands if operation[0] != AVOID}
    wanted.update(operation[1] for _, operation in available if operation[0] == SWAP)
    leave = any(operation[0] == AVOID for operation in demands)
    seen: set[tuple[int, Hashable, Hashable]] = set()
    for number, operation in available:
        kind, demand, produce, _, _, _ = operation
        legal = kind == WRITE or demand == state
        if legal and produce != state and (leave or produce in wanted) and (kind, demand, produce) not in seen:
            seen.add((kind, demand, produce))
            choices.append(~number)
    return {operation[2] for _, operation in available}


def _configuration(problem: _Problem, rank: int, ahead: int, state: Hashable) -> tuple[int, int, Hashable]:
    return (rank, ahead, state if problem.is_watched(state, rank) else _DEAD)


def _is_dead(problem: _Problem, dead_ends: _DeadEnds, rank: int, ahead: int, state: Hashable, used: int) -> bool:
    explored = dead_ends.get(_configuration(problem, rank, ahead, state), ())
    return any(before & used == before for before in explored)


def _bury(problem: _Problem, dead_ends: _DeadEnds, frame: _Frame) -> None:
    key = _configuration(problem, frame.rank, frame.ahead, frame.state)
    explored = dead_ends.setdefault(key, [])
    if not any(before & frame.used == before for before in explored):
        explored.append(frame.used)
