"""The vocabulary of Porcupine: models, operations, events and results.

A *model* is an executable sequential specification: an initial state and a pure step function that says whether an
operation with this input may answer this output in this state, and what the state is then. A *history* is a list of
operations (with call and return times) or of events (in order). Names and meaning are Porcupine's, in Python case.

One thing is added: a pending operation. Porcupine asks callers to give an operation that never returned a return at the
end of time and an output that fits everything, so that it *must* take effect at last. Here `return_=PENDING` (or a call
event without its return) means that the operation *may* take effect at any moment after its call, or never. Its output
is `UNKNOWN`, which equals everything, so that a model that compares answers takes it for the fitting one.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, NoReturn, TypeVar

from faultline.checkers.porcupine.budget import UNLIMITED, Budget, CheckResult, step_within
from faultline.harness.errors import UsageError

__all__ = [
    "PENDING",
    "UNKNOWN",
    "AnyModel",
    "CheckResult",
    "Event",
    "EventKind",
    "Model",
    "NondeterministicModel",
    "Operation",
    "Unknown",
    "no_partition",
    "no_partition_event",
]

PENDING = math.inf
"""The return time of an operation that never returned: it may have taken effect any time since its call, or never."""

State = TypeVar("State")
Input = TypeVar("Input")
Output = TypeVar("Output")


class Unknown(enum.Enum):
    """The type of UNKNOWN."""

    ANSWER = "unknown"

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        # Not the hash of any likely output, so that no dictionary takes the one for the other.
        return 0x1A7C_55E1_90D3_42BF

    def __str__(self) -> str:
        return "?"


UNKNOWN = Unknown.ANSWER
"""The output of an operation whose answer was not seen. It equals everything, and is identical to itself alone."""

_UNSEEN: Any = UNKNOWN


@dataclass(frozen=True, slots=True)
class Operation(Generic[Input, Output]):
    """One call with its answer; it is pending when no `return_` is given.

    Times are any numbers; at equal times calls come before returns (concurrent). `metadata` is for readers: the model's
    `describe_operation_metadata` puts it into words.
    """

    client_id: int
    input: Input
    call: float
    output: Output = _UNSEEN
    return_: float = PENDING
    metadata: Any = None


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
    metadata: Any = None


def no_partition(history: Sequence[Operation[Input, Output]]) -> list[Sequence[Operation[Input, Output]]]:
    """Return the whole history as a single part."""
    return [history]


def no_partition_event(history: Sequence[Event[Input, Output]]) -> list[Sequence[Event[Input, Output]]]:
    """Return the whole event history as a single part."""
    return [history]


def _no_step(*_: Any) -> NoReturn:
    raise UsageError(
        "A model has neither step nor step_context, so no operation can be checked.",
        "Give one of them: step(state, input, output).",
    )


def _described_metadata(metadata: Any) -> str:
    return "" if metadata is None else str(metadata)


@dataclass(frozen=True, slots=True)
class Model(Generic[State, Input, Output]):
    """A sequential specification as a record of pure functions.

    `init()` is the initial state; `step(state, input, output)` answers (legal, next state) and must not change `state`.
    `partition` and `partition_event` split a history into parts that may be checked apart (Horn & Kroening's
    P-compositionality; a key-value store splits by key). `equal` compares states (default `==`); states that can be
    hashed are remembered in a set, others need `hash` to be found quickly. The `describe` functions are for readers.

    `step_context(context, state, input, output)` stands in place of `step` where a step is slow: `context` is the
    `Budget` of the check, and a step that finds `context.is_over()` may stop. What it answers then is not used.
    """

    init: Callable[[], State]
    step: Callable[[State, Input, Output], tuple[bool, State]] = _no_step
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
    describe_operation_metadata: Callable[[Any], str] = _described_metadata
    step_context: Callable[[Budget, State, Input, Output], tuple[bool, State]] | None = None

    def __post_init__(self) -> None:
        _settle_step(self)

    def step_within(self, budget: Budget) -> Callable[[State, Input, Output], tuple[bool, State]]:
        """Return the step function for a check; it raises OutOfTime instead of answering late."""
        return step_within(self.step, self.step_context, budget)


@dataclass(frozen=True, slots=True)
class NondeterministicModel(Generic[State, Input, Output]):
    """A specification in which an operation may lead to several states; `step` answers all of them (none: illegal).

    Everything else is as for `Model`. Each check takes it as it is.
    """

    init: Callable[[], Sequence[State]]
    step: Callable[[State, Input, Output], Sequence[State]] = _no_step
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
    describe_operation_metadata: Callable[[Any], str] = _described_metadata
    step_context: Callable[[Budget, State, Input, Output], Sequence[State]] | None = None

    def __post_init__(self) -> None:
        _settle_step(self)

    def step_within(self, budget: Budget) -> Callable[[State, Input, Output], Sequence[State]]:
        """Return the step function for a check; it raises OutOfTime instead of answering late."""
        return step_within(self.step, self.step_context, budget)

    def to_model(self) -> Model[tuple[State, ...], Input, Output]:
        """Return the deterministic model whose state is the set of possible states here (power-set construction)."""

        def step(
            context: Budget, states: tuple[State, ...], given: Input, answer: Output
        ) -> tuple[bool, tuple[State, ...]]:
            one = self.step_within(context)
            reached: list[State] = []
            for state in states:
                reached += one(state, given, answer)
            distinct = self._distinct(reached)
            return bool(distinct), distinct

        return Model(
            init=lambda: self._distinct(self.init()),
            step_context=step,
            equal=self._same_set,
            partition=self.partition,
            partition_event=self.partition_event,
            describe_operation=self.describe_operation,
            describe_state=lambda states: "{" + ", ".join(map(self.describe_state, states)) + "}",
            hash=self._set_hash,
            describe_operation_metadata=self.describe_operation_metadata,
        )

    def _set_hash(self, states: tuple[State, ...]) -> Hashable:
        """Return what equal sets of states share, in whatever order these stand."""
        if self.hash is not None:
            return frozenset(map(self.hash, states))
        if self.equal is None:
            try:
                return frozenset(states)
            except TypeError:
                pass
        return len(states)

    def _distinct(self, states: Sequence[State]) -> tuple[State, ...]:
        """Return each state once, in order; only states of one hash are compared, where they have a hash."""
        kept: list[State] = []
        buckets: dict[Hashable, list[State]] = {}
        for state in states:
            bucket = buckets.setdefault(self.hash(state) if self.hash else None, [])
            if not self._among(state, bucket):
                bucket.append(state)
                kept.append(state)
        return tuple(kept)

    def _among(self, state: State, states: Sequence[State]) -> bool:
        if self.equal is None:
            return state in states
        return any(self.equal(state, other) for other in states)

    def _same_set(self, left: tuple[State, ...], right: tuple[State, ...]) -> bool:
        return len(left) == len(right) and all(self._among(state, right) for state in left)


AnyModel = Model[State, Input, Output] | NondeterministicModel[State, Input, Output]
"""Either kind of model."""


def _settle_step(model: Model[Any, Any, Any] | NondeterministicModel[Any, Any, Any]) -> None:
    """Let a model that has only a `step_context` have a `step` too: the same, with all the time it takes."""
    if model.step is _no_step:
        step = _no_step() if model.step_context is None else partial(model.step_context, UNLIMITED)
        object.__setattr__(model, "step", step)
