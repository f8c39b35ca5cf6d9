"""A key whose search was given up: how far it came, the ways it ruled out, and its cost.

Three things hold whatever the rest of the search would have found:

- the longest order is a proof that everything which returned before its end can be explained: nothing is wrong there;
- the operation that returns next is the first that no order found so far has a place for;
- where the search had tried some ways to go on in full, they are *ruled out*: if there is a linearization at all, there
  is one that does not go on so. That is found by repeating the beginning of the search in plain Python, with a small
  budget, because only there the ways tried are kept; a key of more than `OPERATIONS_MAX` operations is spared it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from faultline.checkers.common.words import counted
from faultline.checkers.linearizability.data_type import AnyCall, Clock
from faultline.checkers.linearizability.decision import Decision
from faultline.checkers.linearizability.engine.columns import Columns
from faultline.checkers.linearizability.explain import describe_row, moment
from faultline.checkers.linearizability.operations import INFINITY
from faultline.checkers.porcupine.budget import Budget
from faultline.harness.history import History

__all__ = ["OPERATIONS_MAX", "STEPS_MAX", "ruled_out", "undecided"]

OPERATIONS_MAX = 5_000
"""The largest key whose search is repeated; preparing one in Python costs some microseconds an operation."""

STEPS_MAX = 2_000
"""The budget of the repetition, some hundredths of a second."""

_GIVEN_UP = "was given up"
_REFUSED = "found no order, for which the frontier made no certificate within the budget, and ended"

_NAMED_MAX = 5

Refuted = tuple[Sequence[int], Sequence[int]]
"""A beginning, and the operations that need not be tried behind it."""


def undecided(
    history: History,
    key: str | None,
    calls: Iterable[AnyCall],
    order: Sequence[int],
    decision: Decision,
    *,
    state: object = None,
    refuted: Refuted = ((), ()),
    clock: Clock = "seconds",
) -> dict[str, object]:
    """Return what is known about `key` as plain data, whose operations are rows of the history.

    `order` holds the rows of the longest order found, which leads to `state`; the first returns of `calls`, as many as
    could be placed, are part of it. In the record, `stuck` is the operation that returns next (None when there is
    none); `open` were under way when it returned and are not in `order`. Behind `beginning` the operations in
    `ruled_out` need not be tried.
    """
    calls = sorted(calls, key=lambda call: call.return_)
    returned = [call for call in calls if call.return_ != INFINITY]
    placed = max(decision.furthest, 0)
    stuck = returned[placed] if placed < len(returned) else None
    in_order = set(order)
    beside = [
        call.row
        for call in calls
        if stuck and call is not stuck and call.call < stuck.return_ and call.row not in in_order
    ]
    gave_up = _REFUSED if decision.is_illegal else _GIVEN_UP
    named = "The search" if key is None else f"The search of {key}"
    sentence = f"{named} {gave_up} after {counted(decision.steps, 'step')}: "
    sentence += _proved(history, [call.row for call in returned[:placed]], len(returned), clock)
    sentence += _not_placed(history, stuck.row if stuck else None) + _excluded(history, refuted)
    return {
        "key": key,
        "sentence": sentence,
        "completed": len(returned),
        "placed": placed,
        "steps": decision.steps,
        "order": list(order),
        "state": state,
        "stuck": stuck.row if stuck else None,
        "open": beside,
        "beginning": list(refuted[0]),
        "ruled_out": list(refuted[1]),
    }


def _proved(history: History, placed: Sequence[int], completed: int, clock: Clock) -> str:
    if not placed:
        return f"none of {counted(completed, 'completed operation')} could be placed."
    last = max(placed, key=history.complete_index.__getitem__)
    return (
        f"{len(placed):,} of {counted(completed, 'completed operation')}, all that had ended by "
        f"{moment(history, last, clock)}, can be put in order, so that nothing is wrong up to there."
    )


def _not_placed(history: History, stuck: int | None) -> str:
    return "" if stuck is None else f" It stopped before what ends next, {describe_row(history, stuck)}."


def _excluded(history: History, refuted: Refuted) -> str:
    beginning, excluded = refuted
    if not excluded:
        return ""
    named = [describe_row(history, row) for row in excluded[:_NAMED_MAX]]
    more = len(excluded) - len(named)
    listed = "; ".join([*named, f"{counted(more, 'other operation')}"] if more else named)
    if not beginning:
        return f" Ruled out as the first operation: {listed}."
    return f" Ruled out behind the first {counted(len(beginning), 'operation')} of its order: {listed}."


def ruled_out(columns: Columns, budget: Budget) -> Refuted:
    """Return what the beginning of a search of the one key in `columns` rules out, as numbers of operations there."""
    if len(columns) > OPERATIONS_MAX:
        return (), ()
    from faultline.checkers.linearizability.engine.problem import problem_of
    from faultline.checkers.linearizability.engine.slots import refuted_beginning

    problem = problem_of(columns, range(len(columns)))
    return refuted_beginning(problem, Budget(min(STEPS_MAX, budget.steps_max or STEPS_MAX)))
