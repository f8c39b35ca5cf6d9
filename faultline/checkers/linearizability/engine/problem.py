"""One key's operations, ready for the monitor and the search in plain Python: dense values, one order of events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import NamedTuple

from faultline.checkers.linearizability.engine.columns import APPEND, Columns
from faultline.checkers.linearizability.operations import AVOID

__all__ = ["DEAD", "INITIAL", "NEVER", "Answer", "Problem", "problem_of"]

INITIAL = 0
"""The number of the value at the beginning."""

DEAD = -1
"""The number of every value that nobody will look at any more."""

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
        """Whether the operation never returned."""
        return self.return_at[operation] == NEVER


class Answer(NamedTuple):
    """What the search of a problem came to; see `batch.KeyResult`. `result` is None when it was given up."""

    is_legal: bool | None
    order: list[int]
    furthest: int
    state: int
    steps: int


def problem_of(columns: Columns, operations: Sequence[int]) -> Problem:
    """The problem of one key, whose operations in `columns` are `operations`."""
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
    """Places in the one order of events; at equal times calls come first, so that such operations are concurrent."""
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
