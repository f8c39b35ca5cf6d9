"""One part of a history as the generic search takes it: operations, their classes, the model on numbers, and hooks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from faultline.checkers.linearizability.certificates import Configuration
from faultline.checkers.linearizability.decision import Decision
from faultline.checkers.linearizability.generic_tables import Machine, OperationClasses
from faultline.checkers.linearizability.model_rules import Refutation
from faultline.checkers.porcupine.model import Model, NondeterministicModel, Operation

__all__ = ["NO_HOOKS", "CanReach", "Hooks", "Part", "Walked"]

State = TypeVar("State")
Input = TypeVar("Input")
Output = TypeVar("Output")

CanReach = Callable[[State, Operation[Input, Output], Sequence[Operation[Input, Output]]], bool]


@dataclass(frozen=True, slots=True)
class Hooks(Generic[State, Input, Output]):
    """The facts that the author of a model may tell the search; each may be left out.

    `readonly(input, output)`: in every state in which this operation is legal it leaves the state as it is.
    `dead(state)`: the operations of this history cannot tell this state from any other dead one, now or ever.
    `can_reach(state, operation, available)`: False only when no sequence of `available` operations (each at most once)
    leads from `state`, where `operation` is illegal, to one where it is legal. `available` is all that may come before
    `operation` returns, the operation itself among it.
    """

    readonly: Callable[[Input, Output], bool] | None = None
    dead: Callable[[State], bool] | None = None
    can_reach: CanReach[State, Input, Output] | None = None


NO_HOOKS: Hooks[Any, Any, Any] = Hooks()
"""Nothing is known of the model but its step function."""


class Part(Generic[State, Input, Output]):
    """The operations of one part with their classes (`class_of`), and the model as a machine on numbers.

    `told` says of each class whether the hook `readonly` promises that it changes nothing.
    """

    def __init__(
        self,
        model: Model[State, Input, Output] | NondeterministicModel[State, Input, Output],
        operations: Sequence[Operation[Input, Output]],
        hooks: Hooks[State, Input, Output],
    ) -> None:
        self.operations = operations
        classes: OperationClasses[Input, Output] = OperationClasses()
        self.class_of = list(map(classes.number, operations))
        self.machine = Machine(model, classes, hooks.dead)
        self.can_reach = hooks.can_reach
        readonly = hooks.readonly
        self.told = [False] * len(classes.pairs) if readonly is None else [readonly(*pair) for pair in classes.pairs]

    def refutation(
        self, still: Collection[int], configurations: Sequence[Configuration], hopeless: Collection[int] = ()
    ) -> Refutation:
        """Return `configurations`, of which those numbered in `hopeless` are, as a proof that no order is legal."""
        next_state, initial = self.machine.next_state, self.machine.initial
        return Refutation(self.operations, self.class_of, next_state, initial, still, configurations, hopeless)


@dataclass(frozen=True, slots=True)
class Walked:
    """The outcome of a walk: the `decision`, and of an illegal part the proof.

    `is_proved`: the configurations that were visited refute the part (`model_rules`). `refutation` returns them for
    another look.
    """

    decision: Decision
    is_proved: bool
    refutation: Callable[[], Refutation]
