"""What is known about a key whose search was given up: how far it came, what it ruled out, and what that cost.

Three things hold whatever the rest of the search would have found:

- the longest order is a proof that everything which returned before its end can be explained: nothing is wrong there;
- the operation that returns next is the first that no order found so far has a place for;
- where the search had tried some ways to go on in full, they are *ruled out*: if there is a linearization at all, there
  is one that does not go on so. That is found by repeating the beginning of the search in plain Python, with a small
  budget, because only there the ways tried are kept; a key of more than `OPERATIONS_MAX` operations is spared it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from faultline.checkers.common.words import counted
from faultline.checkers.linearizability.engine.columns import Columns
from faultline.checkers.linearizability.explain import Clock, describe_row, moment
from faultline.checkers.linearizability.keys import Undecided
from faultline.checkers.linearizability.operations import INFINITY
from faultline.checkers.porcupine.search import Budget
from faultline.harness.history import History

__all__ = ["GIVEN_UP", "OPERATIONS_MAX", "REFUSED", "STEPS_MAX", "ruled_out", "undecided"]

OPERATIONS_MAX = 5_000
"""The largest key whose search is repeated; preparing one in Python costs some microseconds an operation."""

STEPS_MAX = 2_000
"""The budget of the repetition, some hundredths of a second."""

GIVEN_UP = "was given up"
REFUSED = "found no order, which the port of Porcupine could not confirm within the budget, and ended"
"""How a search without a verdict came to its end."""

_NAMED_MAX = 5

Refuted = tuple[Sequence[int], Sequence[int]]
"""A beginning, and the operations that need not be tried behind it."""


def undecided(
    history: History,
    key: str | None,
    spans: Iterable[tuple[int, int, int]],
    order: Sequence[int],
    *,
    placed: int,
    steps: int,
    state: Any = None,
    refuted: Refuted = ((), ()),
    gave_up: str = GIVEN_UP,
    clock: Clock = "seconds",
) -> Undecided:
    """What is known about `key`: `spans` are row, call and return of its operations, `order` the rows of the longest
    order, of which the first `placed` returns are part."""
    spans = sorted(spans, key=lambda span: span[2])
    returned = [span for span in spans if span[2] != INFINITY]
    stuck = returned[placed] if 0 <= placed < len(returned) else None
    in_order = set(order)
    beside = [row for row, call, _ in spans if stuck and row != stuck[0] and call < stuck[2] and row not in in_order]
    rows = None if stuck is None else stuck[0]
    named = "The search" if key is None else f"The search of {key}"
    sentence = f"{named} {gave_up} after {counted(steps, 'step')}: "
    sentence += _proved(history, [span[0] for span in returned[:placed]], len(returned), clock)
    sentence += _not_placed(history, rows) + _excluded(history, refuted)
    return Undecided(
        key=key,
        sentence=sentence,
        completed=len(returned),
        placed=placed,
        steps=steps,
        order=tuple(order),
        state=state,
        stuck=rows,
        open=tuple(beside),
        beginning=tuple(refuted[0]),
        ruled_out=tuple(refuted[1]),
    )


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
    """What the beginning of a search of the one key in `columns` rules out, as numbers of operations there."""
    if len(columns) > OPERATIONS_MAX:
        return (), ()
    from faultline.checkers.linearizability.engine.problem import problem_of
    from faultline.checkers.linearizability.engine.slots import refuted_beginning

    problem = problem_of(columns, range(len(columns)))
    return refuted_beginning(problem, Budget(min(STEPS_MAX, budget.steps_max or STEPS_MAX)))
