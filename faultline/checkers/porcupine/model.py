"""The vocabulary of Porcupine: models, operations, events and results.

A *model* is an executable sequential specification: an initial state and a pure step function that says whether an
operation with this input may answer this output in this state, and what the state is then. A *history* is a list of
operations (with call and return times) or of events (in order). Names and meaning are Porcupine's, in Python case.

One thing is added: a pending operation. Porcupine asks callers to give an operation that never returned a return at the
end of time and an output that fits everything, so that it *must* take effect at last. Here `return_=PENDING` (or a call
event without its return) means that the operation *may* take effect at any moment after its call, or never.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from faultline.checkers.porcupine.budget import CheckResult

__all__ = [
    "PENDING",
    "CheckResult",
    "Event",
    "EventKind",
    "Model",
    "NondeterministicModel",
    "Operation",
    "no_partition",
    "no_partition_event",
]

PENDING = math.inf
"""The return time of an operation that never returned: it may have taken effect any time since its call, or never."""

State = TypeVar("State")
Input = TypeVar("Input")
Output = TypeVar("Output")


@dataclass(frozen=True, slots=True)
class Operation(Generic[Input, Output]):
    """One call with its answer. Times are any integers; at equal times calls come before returns (concurrent)."""

    client_id: int
    input: Input
    call: int
    output: Output
    return_: float


class EventKind(enum.Enum):
    """The two ends of an operation that an event may be."""

    CALL = "call"
    RETURN = "return"


@dataclass(frozen=True, slots=True)
class Event(Generic[Input, Output]):
    """A call (whose `value` is the input) or a return (whose `value` is the output); equal `id` joins the two."""

    client_id: int
    kind: EventKind
    value: Input | Output
    id: int


def no_partition(history: Sequence[Operation[Input, Output]]) -> list[Sequence[Operation[Input, Output]]]:
    """The whole history as a single part."""
    return [history]


def no_partition_event(history: Sequence[Event[Input, Output]]) -> list[Sequence[Event[Input, Output]]]:
    """The whole event history as a single part."""
    return [history]


@dataclass(frozen=True, slots=True)
class Model(Generic[State, Input, Output]):
    """A sequential specification as a record of pure functions.

    `init()` is the initial state; `step(state, input, output)` answers (legal, next state) and must not change `state`.
    `partition` and `partition_event` split a history into parts that may be checked apart (Horn & Kroening's
    P-compositionality; a key-value store splits by key). `equal` compares states (default `==`); states that can be
    hashed are remembered in a set, others need `hash` to be found quickly. The `describe` functions are for readers.
    """

    init: Callable[[], State]
    step: Callable[[State, Input, Output], tuple[bool, State]]
    equal: Callable[[State, State], bool] | None = None
    partition: Callable[[Sequence[Operation[Input, Output]]], Sequence[Sequence[Operation[Input, Output]]]] = (
        no_partition
    )
    partition_event: Callable[[Sequence[Event[Input, Output]]], Sequence[Sequence[Event[Input, Output]]]] = (
        no_partition_event
    )
    describe_operation: Callable[[Input, Output], str] = lambda given, answer: f"{given} -> {answer}"
    describe_state: Callable[[State], str] = str
    hash: Callable[[State], Hashable] | None = None


@dataclass(frozen=True, slots=True)
class NondeterministicModel(Generic[State, Input, Output]):
    """A specification in which an operation may lead to several states; `step` answers all of them (none: illegal)."""

    init: Callable[[], Sequence[State]]
    step: Callable[[State, Input, Output], Sequence[State]]
    equal: Callable[[State, State], bool] | None = None
    partition: Callable[[Sequence[Operation[Input, Output]]], Sequence[Sequence[Operation[Input, Output]]]] = (
        no_partition
    )
    partition_event: Callable[[Sequence[Event[Input, Output]]], Sequence[Sequence[Event[Input, Output]]]] = (
        no_partition_event
    )
    describe_operation: Callable[[Input, Output], str] = lambda given, answer: f"{given} -> {answer}"
    describe_state: Callable[[State], str] = str

    def to_model(self) -> Model[tuple[State, ...], Input, Output]:
        """The deterministic model whose state is the set of states this one may be in (the power-set construction)."""

        def step(states: tuple[State, ...], given: Input, answer: Output) -> tuple[bool, tuple[State, ...]]:
            reached = self._distinct([after for state in states for after in self.step(state, given, answer)])
            return bool(reached), reached

        return Model(
            init=lambda: self._distinct(self.init()),
            step=step,
            equal=self._same_set,
            partition=self.partition,
            partition_event=self.partition_event,
            describe_operation=self.describe_operation,
            describe_state=lambda states: "{" + ", ".join(map(self.describe_state, states)) + "}",
            hash=len,
        )

    def _distinct(self, states: Sequence[State]) -> tuple[State, ...]:
        kept: list[State] = []
        for state in states:
            if not self._among(state, kept):
                kept.append(state)
        return tuple(kept)

    def _among(self, state: State, states: Sequence[State]) -> bool:
        if self.equal is None:
            return state in states
        return any(self.equal(state, other) for other in states)

    def _same_set(self, left: tuple[State, ...], right: tuple[State, ...]) -> bool:
        return len(left) == len(right) and all(self._among(state, right) for state in left)
