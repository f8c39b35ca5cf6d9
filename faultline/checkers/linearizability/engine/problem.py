"""One key's operations, ready for the monitor and the search in plain Python: dense values, one order of events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

from faultline.checkers.linearizability.engine.columns import APPEND, Columns
from faultline.checkers.linearizability.operations import AVOID, OBSERVE, WRITE

__all__ = ["DEAD", "INITIAL", "NEVER", "Problem", "called_producers", "last_gets", "problem_of", "slots_of"]

INITIAL = 0
"""The number of the value at the beginning."""

DEAD = -1
"""The number of every value that no operation will look for any more."""

NEVER = 1 << 62
"""The position of a return that does not come."""


@dataclass(slots=True)
class Problem:
    """Operations by number from 0. `call_at` and `return_at` are positions in the one order of all calls and returns.

    `edges` says for each APPEND what it makes of which state; `operation` is the number in the columns.
    """

    operation: Sequence[int]
    kind: list[int]
    demand: list[int]
    produce: list[int]
    call_at: list[int]
    return_at: list[int]
    by_call: list[int]
    by_return: list[int]
    edges: list[dict[int, int]]
    has_failed: bool
    has_appends: bool

    def is_pending(self, operation: int) -> bool:
        """Return whether the operation never returned."""
        return self.return_at[operation] == NEVER


def problem_of(columns: Columns, operations: Sequence[int]) -> Problem:
    """Return the problem of one key, whose operations in `columns` are `operations`."""
    kind = [columns.kind[i] for i in operations]
    call = [columns.call[i] for i in operations]
    return_ = [columns.return_[i] for i in operations]
    by_call = sorted(range(len(kind)), key=call.__getitem__)
    completed = list(compress(range(len(kind)), [time >= 0 for time in return_]))
    by_return = sorted(completed, key=return_.__getitem__)
    call_at, return_at = _positions(call, return_, by_call, by_return)
    return Problem(
        operations,
        kind,
        [columns.demand[i] for i in operations],
        [columns.produce[i] for i in operations],
        call_at,
        return_at,
        by_call,
        by_return,
        _edges(columns, operations) if APPEND in kind else [],
        AVOID in kind,
        APPEND in kind,
    )


def _positions(
    call: list[int], return_: list[int], by_call: list[int], by_return: list[int]
) -> tuple[list[int], list[int]]:
    """Return the places of calls and of returns in the one order of events.

    At equal times calls come first, so that such operations are concurrent.
    """
    events = [(call[i], 0, i) for i in by_call] + [(return_[i], 1, i) for i in by_return]
    call_at, return_at = [0] * len(call), [NEVER] * len(call)
    for position, (_, is_return, i) in enumerate(sorted(events, key=_time)):
        (return_at if is_return else call_at)[i] = position
    return call_at, return_at


def _time(event: tuple[int, int, int]) -> tuple[int, int]:
    return event[:2]


def _edges(columns: Columns, operations: Sequence[int]) -> list[dict[int, int]]:
    edges: list[dict[int, int]] = []
    for i in operations:
        span = slice(columns.produce[i], columns.demand[i]) if columns.kind[i] == APPEND else slice(0)
        edges.append(dict(zip(columns.edge_from[span], columns.edge_to[span])))
    return edges


def slots_of(problem: Problem) -> tuple[list[int], list[list[int]]]:
    """Return for each operation the bit of its slot, and for each rank the operations open at that return, in order of
    return."""
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


def last_gets(problem: Problem) -> dict[int, int]:
    """Return for each text the rank of the last get that has it at its beginning."""
    last = {problem.demand[i]: rank for rank, i in enumerate(problem.by_return) if problem.kind[i] == OBSERVE}
    edges = {edge for i, by_state in enumerate(problem.edges) if problem.kind[i] == APPEND for edge in by_state.items()}
    # Longer texts have higher numbers, so that in this order a text is final before it is handed on to its beginning.
    for shorter, longer in sorted(edges, reverse=True):
        if longer in last:
            last[shorter] = max(last.get(shorter, -1), last[longer])
    return last


def called_producers(problem: Problem) -> dict[int, int]:
    """Return for each completed operation how many that put the value which it demands are called before it returns."""
    called: dict[int, int] = {}
    found: dict[int, int] = {}
    position = 0
    for i in problem.by_return:
        while position < len(problem.by_call) and problem.call_at[problem.by_call[position]] < problem.return_at[i]:
            j = problem.by_call[position]
            if problem.kind[j] >= WRITE:
                called[problem.produce[j]] = called.get(problem.produce[j], 0) + 1
            position += 1
        found[i] = called.get(problem.demand[i], 0)
    return found
