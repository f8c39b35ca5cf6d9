"""Looking for a linearization of one register, whatever the engine decides it with.

The engine (`engine.batch`) decides; here its answer is put in terms of the operations it was given. The engine refuses
a history for whatever reason it finds first, near its end perhaps. People, and whoever makes it smaller, want the first
return, in order of returns, that cannot be explained; that one is found by cutting the history at one return and
another, beginning where the engine found its reason.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from faultline.checkers.linearizability.engine.batch import check_columns
from faultline.checkers.linearizability.engine.registers import columns_of
from faultline.checkers.linearizability.engine.result import KeyResult
from faultline.checkers.linearizability.operations import INFINITY, WRITE, RegisterOperation
from faultline.checkers.porcupine import UNLIMITED, Budget, CheckResult

__all__ = ["SearchResult", "decide", "illegal_prefix", "search"]


class SearchResult(NamedTuple):
    """`order`: the linearization found, or the longest one; `furthest`: completed operations that can be placed, in
    order of return, before one cannot (all of them when OK); `state`: the state after `order`."""

    result: CheckResult
    order: list[RegisterOperation]
    furthest: int
    state: Hashable
    steps: int


def search(
    operations: Sequence[RegisterOperation], initial: Hashable = None, budget: Budget = UNLIMITED
) -> SearchResult:
    """Look for a linearization of `operations` (one register) that starts from `initial`."""
    found = decide(operations, initial, budget)
    if found.result is not CheckResult.ILLEGAL:
        return _search_result(found, operations, initial, found.furthest)
    furthest = _first_illegal_return(operations, initial, budget, found)
    before = illegal_prefix(operations, furthest - 1) if furthest else []
    longest = _search_result(decide(before, initial, budget), before, initial, furthest)
    return longest._replace(result=CheckResult.ILLEGAL, steps=found.steps)


def decide(operations: Sequence[RegisterOperation], initial: Hashable = None, budget: Budget = UNLIMITED) -> KeyResult:
    """Whether there is a linearization: the engine's bare answer, whose operations are positions."""
    return check_columns(columns_of(operations, initial), budget)[0]


def _search_result(
    found: KeyResult, operations: Sequence[RegisterOperation], initial: Hashable, furthest: int
) -> SearchResult:
    order = [operations[i] for i in found.order]
    state = next((operation.produce for operation in reversed(order) if operation.kind >= WRITE), initial)
    return SearchResult(found.result, order, furthest, state, found.steps)


def _first_illegal_return(
    operations: Sequence[RegisterOperation], initial: Hashable, budget: Budget, found: KeyResult
) -> int:
    """How many returns come before the first that makes the history, which the engine `found` illegal, so.

    When a prefix cannot be decided within the budget it counts as legal, and the answer may be too late a return.
    """
    returns = sorted(operation.return_ for operation in operations if operation.return_ != INFINITY)
    named = [operations[i].return_ for i in found.certificate if i >= 0]
    last = max((return_ for return_ in named if return_ != INFINITY), default=None)
    guess = max(found.furthest, 0) if last is None else returns.index(last)
    tries = [guess] if last is None else [guess - 1, guess]
    legal, illegal = found.furthest - 1 if found.furthest >= 0 else -1, len(returns) - 1
    while illegal - legal > 1 or tries:
        middle = tries.pop() if tries else (legal + illegal) // 2
        if not legal < middle < illegal:
            continue
        if decide(illegal_prefix(operations, middle), initial, budget).result is CheckResult.ILLEGAL:
            illegal = middle
        else:
            legal = middle
    return illegal


def illegal_prefix(operations: Sequence[RegisterOperation], furthest: int) -> list[RegisterOperation]:
    """The history up to the return of the completed operation number `furthest`, in order of return.

    Operations that return later are pending, and those of them that only observe are left out.
    """
    cut = sorted(operation.return_ for operation in operations if operation.return_ != INFINITY)[furthest]
    prefix: list[RegisterOperation] = []
    for operation in operations:
        if operation.return_ <= cut:
            prefix.append(operation)
        elif operation.call < cut and operation.kind >= WRITE:
            prefix.append(operation._replace(return_=INFINITY))
    return prefix
