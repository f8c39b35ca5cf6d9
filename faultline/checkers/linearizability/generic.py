"""Porcupine's calls with a faster engine behind them, for any model.

`check_operations(model, history)` and its relatives take the arguments of those of `faultline.checkers.porcupine`,
answer the same, and let `engine` choose: `auto` searches with interned states and memoised transitions
(`generic_search`), `port` is the port itself. A nondeterministic model needs no `to_model` here. `hooks` may tell facts
that the search cannot know.

No answer is taken on trust. A linearization is replayed on the model itself. An illegal history comes with the
configurations that were visited, and one pass over them shows that they refute it (`model_rules`). Where that rests
on a promise of the hooks `dead` or `can_reach`, a search without them has to refuse the history too, within a budget,
up to the first return that cannot be placed; `is_confirmed` says whether it got that far. When the engine must give way
to the port, `handed_over` says why. Should the two ever disagree, that is a HarnessError; should a hook have promised
too much, the port decides and `handed_over` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as replace_field
from typing import Any, Literal, TypeVar, cast

from msgspec.structs import replace

from faultline.checkers.linearizability.decision import Decision, Legality, worst
from faultline.checkers.linearizability.generic_search import NO_HOOKS, Hooks, Walked, search_generic
from faultline.checkers.linearizability.generic_tables import COMPARED_MAX, TooManyComparisons
from faultline.checkers.linearizability.referee import decide_by_port
from faultline.checkers.linearizability.replay import is_linearization
from faultline.checkers.porcupine.budget import Budget, CheckResult, OutOfTime
from faultline.checkers.porcupine.model import PENDING, AnyModel, Model, NondeterministicModel, Operation
from faultline.harness.errors import HarnessError

__all__ = [
    "Engine",
    "check_operations",
    "check_operations_report",
    "check_operations_timeout",
    "check_part",
    "illegal_prefix",
]

State = TypeVar("State")
Input = TypeVar("Input")
Output = TypeVar("Output")

Engine = Literal["auto", "port"]

CONFIRMATION_STEPS_MAX = 20_000
"""The steps that a search without hooks may spend on confirming a prefix is illegal: some tens of milliseconds."""


def check_operations(
    model: AnyModel[State, Input, Output],
    history: Sequence[Operation[Input, Output]],
    *,
    hooks: Hooks[State, Input, Output] = NO_HOOKS,
    engine: Engine = "auto",
) -> bool:
    """Return whether `history` is linearizable, however long it takes to know."""
    return worst(check_operations_report(model, history, hooks=hooks, engine=engine)) is Legality.LEGAL


def check_operations_timeout(
    model: AnyModel[State, Input, Output],
    history: Sequence[Operation[Input, Output]],
    timeout_s: float | None = None,
    *,
    steps_max: int | None = None,
    hooks: Hooks[State, Input, Output] = NO_HOOKS,
    engine: Engine = "auto",
) -> CheckResult:
    """Return whether `history` is linearizable, UNKNOWN when the budget ends first. None and 0 mean no limit."""
    parts = check_operations_report(model, history, timeout_s, steps_max=steps_max, hooks=hooks, engine=engine)
    return CheckResult(worst(parts))


def check_operations_report(
    model: AnyModel[State, Input, Output],
    history: Sequence[Operation[Input, Output]],
    timeout_s: float | None = None,
    *,
    steps_max: int | None = None,
    hooks: Hooks[State, Input, Output] = NO_HOOKS,
    engine: Engine = "auto",
) -> list[Decision]:
    """Return the decisions on all parts, with witness, engine and cost, as far as the first illegal part."""
    budget = Budget.of(steps_max, timeout_s or None)
    parts: list[Decision] = []
    for part in model.partition(history):
        parts.append(check_part(model, part, budget, hooks, engine))
        if parts[-1].is_illegal:
            break
    return parts


def check_part(
    model: AnyModel[State, Input, Output],
    operations: Sequence[Operation[Input, Output]],
    budget: Budget,
    hooks: Hooks[State, Input, Output] = NO_HOOKS,
    engine: Engine = "auto",
) -> Decision:
    """Check operations that all belong to one part."""
    # Every step looks at the clock, also those of a replay: a model's step may take longer than all the rest.
    timed = model if budget.deadline_s is None else replace_field(cast(Any, model), step=model.step_within(budget))
    plain = cast("Model[Any, Input, Output]", timed.to_model() if isinstance(timed, NondeterministicModel) else timed)
    if engine == "port":
        return decide_by_port(plain, operations, budget, "the port was asked for", verbose=True)
    try:
        return _searched(timed, plain, operations, budget, hooks)
    except OutOfTime:
        return Decision(Legality.UNKNOWN, "generic", reason="the time was over before the next step of the model")


def _searched(
    model: AnyModel[State, Input, Output],
    plain: Model[Any, Input, Output],
    operations: Sequence[Operation[Input, Output]],
    budget: Budget,
    hooks: Hooks[State, Input, Output],
) -> Decision:
    try:
        found = search_generic(model, operations, budget, hooks)
    except TooManyComparisons:
        reason = f"the states have no hash, and there are more than {COMPARED_MAX} to compare one by one"
        return decide_by_port(plain, operations, budget, reason, verbose=True)
    if found.decision.is_unknown:
        return found.decision
    return (_replayed if found.decision.is_legal else _refused)(plain, operations, budget, hooks, found)


def _replayed(
    model: Model[State, Input, Output],
    operations: Sequence[Operation[Input, Output]],
    budget: Budget,
    hooks: Hooks[State, Input, Output],
    found: Walked,
) -> Decision:
    if is_linearization(model, operations, found.decision.order):
        return replace(found.decision, is_confirmed=True)
    if hooks.dead is None:
        raise _disagreement("the linearization that was found does not hold when it is replayed", operations)
    reason = "a hook promised too much: what was found does not hold when replayed"
    return decide_by_port(model, operations, budget, reason, verbose=True)


def _refused(
    model: Model[State, Input, Output],
    operations: Sequence[Operation[Input, Output]],
    budget: Budget,
    hooks: Hooks[State, Input, Output],
    found: Walked,
) -> Decision:
    is_by_steps_alone = hooks.dead is None and hooks.can_reach is None
    if found.is_proved and is_by_steps_alone:
        return replace(found.decision, is_confirmed=True)
    if not found.is_proved:
        reason = "the configurations that were visited do not prove what was found"
        decided = decide_by_port(model, operations, budget, reason, verbose=True)
        if decided.is_legal and is_by_steps_alone:
            raise _disagreement("the port accepts what the search refused", operations)
        return decided
    # The proof rests on what the hooks `dead` and `can_reach` promise, so a search that asks neither has to agree.
    asked: Hooks[State, Input, Output] = Hooks(readonly=hooks.readonly)
    prefix = illegal_prefix(operations, found.decision.refuted)
    try:
        confirming = search_generic(model, prefix, Budget(CONFIRMATION_STEPS_MAX, budget.deadline_s), asked)
    except TooManyComparisons:
        return found.decision
    if not confirming.decision.is_legal:
        return replace(found.decision, is_confirmed=confirming.is_proved)
    reason = "a hook promised too much: a search without hooks accepts what was refused"
    return decide_by_port(model, operations, budget, reason, verbose=True)


def _disagreement(what: str, operations: Sequence[Operation[Input, Output]]) -> HarnessError:
    return HarnessError(
        f"Two searches of the same operations disagree: {what}.",
        "See that the model's step function is pure: it must not change a state, and answer the same each time. "
        f"If it is, report this as a bug of Faultline, with the operations: {list(operations)[:50]!r}.",
    )


def illegal_prefix(operations: Sequence[Operation[Input, Output]], rank: int) -> list[Operation[Input, Output]]:
    """Return the history up to the return number `rank`: open operations are pending, later ones are left out."""
    cut = sorted(operation.return_ for operation in operations)[rank]
    return [
        operation
        if operation.return_ <= cut
        else Operation(operation.client_id, operation.input, operation.call, operation.output, PENDING)
        for operation in operations
        if operation.call <= cut
    ]
