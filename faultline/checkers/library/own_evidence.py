"""The few operations that show why a part is not linearizable under a model of one's own.

Nothing is known of the model, so an operation is never left out: it may be the one that makes another possible. But it
may become pending, that is, happen at any time after its call, or never. What must still be ordered when every other
operation is pending, and cannot be, is the core (as in `linearizability.minimise`, whose other relaxations need to know
what operations do). Operations that the hook `readonly` names can help no other, and are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from faultline.checkers.library.operations import AnyOperation
from faultline.checkers.linearizability.generic_search import Hooks, search_generic
from faultline.checkers.linearizability.generic_tables import TooManyComparisons
from faultline.checkers.linearizability.minimise import ShrinkBudget, minimise
from faultline.checkers.porcupine.budget import Budget, OutOfTime
from faultline.checkers.porcupine.model import PENDING, AnyModel

__all__ = ["CORE_MAX", "OPERATIONS_MAX", "STEPS_MAX", "core_of"]

OPERATIONS_MAX = 400
"""The largest part that is made smaller: each check of it runs the model."""

STEPS_MAX = 20_000
"""The steps of search that it may cost: some tenths of a second at the worst."""

CORE_MAX = 10
"""The largest core that shows more than the operations around the first one that cannot be placed."""

_Item = tuple[int, AnyOperation]


def core_of(
    model: AnyModel[Any, Any, Any], prefix: Sequence[_Item], budget: Budget, hooks: Hooks[Any, Any, Any]
) -> tuple[int, ...]:
    """Return the numbers of the few operations in `prefix`, which is not linearizable, that cannot be ordered.

    Empty when that cannot be told within the budget, or when they are not few.
    """
    if len(prefix) > OPERATIONS_MAX or budget.is_over():
        return ()
    shrinking = ShrinkBudget(budget, STEPS_MAX)
    timed: Any = replace(cast(Any, model), step=model.step_within(budget))

    def is_illegal(items: Sequence[_Item]) -> bool:
        try:
            found = search_generic(timed, [operation for _, operation in items], shrinking.next(), hooks).decision
        except (OutOfTime, TooManyComparisons):
            return False
        return shrinking.proves_illegal(found)

    def relax(item: _Item, _among: Sequence[_Item]) -> list[_Item | None]:
        number, operation = item
        if hooks.readonly is not None and hooks.readonly(operation.input, operation.output):
            return [None]
        return [] if operation.return_ == PENDING else [(number, replace(operation, return_=PENDING))]

    if not is_illegal(prefix):
        return ()
    relaxed, _ = minimise(prefix, is_illegal, relax)
    core = tuple(number for number, operation in relaxed if operation.return_ != PENDING)
    return core if len(core) <= CORE_MAX else ()
