"""Looking for a linearization of one register.

The engine (`engine.batch`) decides, and `refutation` makes its refusal a certificate. The engine refuses a history for
the first reason that it finds, which may be near its end. A reader, and the search for a small core, want the first
return, in order of returns, that cannot be explained. The frontier ends exactly there. Where the certificate is that of
a relaxation, or there is none, it is found by cutting the history at one return after another, beginning where the
engine found its reason.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from msgspec.structs import replace

from faultline.checkers.linearizability.decision import Decision
from faultline.checkers.linearizability.engine.batch import check_columns
from faultline.checkers.linearizability.engine.registers import columns_of
from faultline.checkers.linearizability.operations import INFINITY, WRITE, RegisterOperation
from faultline.checkers.porcupine.budget import UNLIMITED, Budget

__all__ = ["decide", "illegal_prefix", "search"]


def search(
    operations: Sequence[RegisterOperation],
    initial: Hashable = None,
    budget: Budget = UNLIMITED,
    known: Decision | None = None,
) -> Decision:
    """Look for a linearization of `operations` on one register that holds `initial` at first.

    When there is none, `furthest` is the first return that makes the history illegal, and `order` the longest one of
    what came before that. `known` is what the engine has already said of them.
    """
    columns = columns_of(operations, initial)
    found = check_columns(columns, budget)[0] if known is None else known
    if found.is_legal:
        return found
    from faultline.checkers.linearizability.refutation import certify

    found, furthest = certify(columns, found, budget)
    if not found.is_illegal:
        return found
    if furthest is None:
        furthest = _first_illegal_return(operations, initial, budget, found)
    elif furthest == found.furthest:
        # The search stopped at this return for the first time with the order that it gave.
        return found
    before = illegal_prefix(operations, furthest - 1) if furthest else []
    longest = decide(before, initial, budget)
    place = {operation.row: position for position, operation in enumerate(operations)}
    return replace(found, furthest=furthest, order=[place[before[i].row] for i in longest.order])


def decide(operations: Sequence[RegisterOperation], initial: Hashable = None, budget: Budget = UNLIMITED) -> Decision:
    """Return the bare decision of the engine on `operations`."""
    return check_columns(columns_of(operations, initial), budget)[0]


def _first_illegal_return(
    operations: Sequence[RegisterOperation], initial: Hashable, budget: Budget, found: Decision
) -> int:
    """Return how many returns come before the first that makes the history, which the engine `found` illegal, so.

    When a prefix cannot be decided within the budget it counts as legal, and the answer may be too late a return.
    """
    returns = sorted(operation.return_ for operation in operations if operation.return_ != INFINITY)
    named = [operations[i].return_ for i in found.core if operations[i].return_ != INFINITY]
    last = max(named, default=None)
    # Where the zones named operations, the history is illegal by the return of the last of them, and mostly no earlier:
    # two tries decide that. Otherwise the slot search has come as far as the last legal return, as a rule.
    guess = max(found.furthest, 0) if last is None else returns.index(last)
    tries = [guess] if last is None else [guess - 1, guess]
    legal, illegal = found.furthest - 1 if found.furthest >= 0 else -1, len(returns) - 1
    # A longer prefix than an illegal one is illegal too, since what had not returned by its end may happen later or
    # never: so bisection finds the shortest.
    while illegal - legal > 1 or tries:
        middle = tries.pop() if tries else (legal + illegal) // 2
        if not legal < middle < illegal:
            continue
        if decide(illegal_prefix(operations, middle), initial, budget).is_illegal:
            illegal = middle
        else:
            legal = middle
    return illegal


def illegal_prefix(operations: Sequence[RegisterOperation], furthest: int) -> list[RegisterOperation]:
    """Return the history up to the return of the completed operation number `furthest`, in order of return.

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
