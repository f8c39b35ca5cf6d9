"""The slot search for any model: a linearization of one part of a history, or the proof that there is none.

`generic_part` holds what is searched, `generic_walk` the search in plain Python and `generic_native` the same in the
native kernel, which asks the model only for steps that it does not know. `model_rules` checks a refutation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeVar

from faultline.checkers.linearizability.engine.native import kernel
from faultline.checkers.linearizability.generic_native import walk_natively
from faultline.checkers.linearizability.generic_part import NO_HOOKS, Hooks, Part, Walked
from faultline.checkers.porcupine.budget import Budget
from faultline.checkers.porcupine.model import Model, NondeterministicModel, Operation
from faultline.harness.errors import HarnessError

__all__ = ["NO_HOOKS", "Hooks", "Walked", "WalkedBy", "search_generic"]

State = TypeVar("State")
Input = TypeVar("Input")
Output = TypeVar("Output")

WalkedBy = Literal["native", "python"]


def search_generic(
    model: Model[State, Input, Output] | NondeterministicModel[State, Input, Output],
    operations: Sequence[Operation[Input, Output]],
    budget: Budget,
    hooks: Hooks[State, Input, Output] = NO_HOOKS,
    engine: WalkedBy | None = None,
) -> Walked:
    """Look for a linearization of `operations`, all of one part. Raises TooManyComparisons for states without hash.

    `engine` names one of the two forms of the search, for tests; both walk the same way.
    """
    part: Part[Any, Any, Any] = Part(model, operations, hooks)
    module, reason = (None, "") if engine == "python" else kernel()
    if engine == "native" and module is None:
        raise HarnessError(f"The native engine is not there: {reason}.", "Leave the choice to Faultline.")
    if module is not None:
        return walk_natively(module, part, budget)
    from faultline.checkers.linearizability.generic_walk import walk_in_python

    return walk_in_python(part, budget)
