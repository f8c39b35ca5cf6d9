"""Porcupine's calls with a faster engine behind them, for any model.

`check_operations(model, history)` and its relatives take what those of `faultline.checkers.porcupine` take, answer the
same, and let `engine` choose: `auto` searches with interned states and memoised transitions (`generic_search`), `port`
is the port itself. A nondeterministic model needs no `to_model` here. `hooks` may tell what the search cannot know.

No answer is taken on trust. A linearization is replayed on the model itself; an illegal history is cut at the first
return that cannot be placed, and the port has to refuse that prefix too, within a budget; `is_confirmed` says whether
it got that far. When the engine must give way to the port, `reason` says why. Should the two ever disagree, that is a
HarnessError; should a hook have promised too much, the port decides and `reason` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

from faultline.checkers.linearizability.generic_search import NO_HOOKS, GenericResult, Hooks, search_generic
from faultline.checkers.linearizability.generic_tables import COMPARED_MAX, TooManyComparisons
from faultline.checkers.porcupine.model import PENDING, CheckResult, Model, NondeterministicModel, Operation
from faultline.checkers.porcupine.search import Budget, check_single
from faultline.harness.errors import HarnessError

__all__ = [
    "Engine",
    "PartReport",
    "Report",
    "check_operations",
    "check_operations_report",
    "check_operations_timeout",
    "check_part",
    "illegal_prefix",
    "is_linearization",
]

State = TypeVar("State")
Input = TypeVar("Input")
Output = TypeVar("Output")

AnyModel = Model[State, Input, Output] | NondeterministicModel[State, Input, Output]

Engine = Literal["auto", "port"]

CONFIRMATION_STEPS_MAX = 20_000
"""What the port may spend on confirming that a prefix is illegal: some tens of milliseconds."""


@dataclass(frozen=True, slots=True)
class PartReport:
    """What was found about one part: `order` holds positions of its linearization, or of the longest partial one.

    `furthest` counts the completed operations, in order of return, that can be placed before one cannot; when ILLEGAL,
    it is so by the return of the completed operation number `refuted`. `engine` is who decided, `reason` why it was not
    the faster one; `is_confirmed` whether somebody else checked the answer.
    """

    result: CheckResult
    order: tuple[int, ...]
    furthest: int
    steps: int
    engine: Literal["generic", "port"]
    reason: str = ""
    is_confirmed: bool = False
    refuted: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """The result for a whole history with the reports on its parts, as far as they were looked at."""

    result: CheckResult
    parts: tuple[PartReport, ...]


def check_operations(
    model: AnyModel[State, Input, Output],
    history: Sequence[Operation[Input, Output]],
    *,
    hooks: Hooks[State, Input, Output] = NO_HOOKS,
    engine: Engine = "auto",
) -> bool:
    """Whether `history` is linearizable, however long it takes to know."""
    return check_operations_report(model, history, hooks=hooks, engine=engine).result is CheckResult.OK


def check_operations_timeout(
    model: AnyModel[State, Input, Output],
    history: Sequence[Operation[Input, Output]],
    timeout_s: float | None = None,
    *,
    steps_max: int | None = None,
    hooks: Hooks[State, Input, Output] = NO_HOOKS,
    engine: Engine = "auto",
) -> CheckResult:
    """Whether `history` is linearizable, or UNKNOWN when the budget ends first. None means no limit."""
    report = check_operations_report(model, history, timeout_s, steps_max=steps_max, hooks=hooks, engine=engine)
    return report.result


def check_operations_report(
    model: AnyModel[State, Input, Output],
    history: Sequence[Operation[Input, Output]],
    timeout_s: float | None = None,
    *,
    steps_max: int | None = None,
    hooks: Hooks[State, Input, Output] = NO_HOOKS,
    engine: Engine = "auto",
) -> Report:
    """The same with witness, engine and cost, part by part. Stops at the first illegal part."""
    budget = Budget.of(steps_max, timeout_s)
    parts: list[PartReport] = []
    for part in model.partition(history):
        parts.append(check_part(model, part, budget, hooks, engine))
        if parts[-1].result is CheckResult.ILLEGAL:
            break
    results = {part.result for part in parts}
    worst = [result for result in (CheckResult.ILLEGAL, CheckResult.UNKNOWN) if result in results]
    return Report(worst[0] if worst else CheckResult.OK, tuple(parts))


def check_part(
    model: AnyModel[State, Input, Output],
    operations: Sequence[Operation[Input, Output]],
    budget: Budget,
    hooks: Hooks[State, Input, Output] = NO_HOOKS,
    engine: Engine = "auto",
) -> PartReport:
    """Check operations that all belong to one part."""
    plain = cast("Model[Any, Input, Output]", model.to_model() if isinstance(model, NondeterministicModel) else model)
    if engine == "port":
        return _by_port(plain, operations, budget, "the port was asked for")
    try:
        found = search_generic(model, operations, budget, hooks)
    except TooManyComparisons:
        reason = f"the states have no hash, and there are more than {COMPARED_MAX} to compare one by one"
        return _by_port(plain, operations, budget, reason)
    if found.result is CheckResult.OK:
        return _replayed(plain, operations, budget, hooks, found)
    if found.result is CheckResult.ILLEGAL:
        return _refused(plain, operations, budget, hooks, found)
    return _report(found, is_confirmed=False)


def _report(found: GenericResult, is_confirmed: bool) -> PartReport:
    return PartReport(
        found.result, found.order, found.furthest, found.steps, "generic", "", is_confirmed, found.refuted
    )


def _by_port(
    model: Model[State, Input, Output], operations: Sequence[Operation[Input, Output]], budget: Budget, reason: str
) -> PartReport:
    found = check_single(model, operations, budget, verbose=True)
    order = found.linearizations[0] if found.linearizations else ()
    last = sum(operation.return_ != PENDING for operation in operations) - 1
    placed = _placed_in_order(operations, order)
    return PartReport(found.result, order, placed, found.steps, "port", reason, refuted=last)


def _replayed(
    model: Model[State, Input, Output],
    operations: Sequence[Operation[Input, Output]],
    budget: Budget,
    hooks: Hooks[State, Input, Output],
    found: GenericResult,
) -> PartReport:
    if is_linearization(model, operations, found.order):
        return _report(found, is_confirmed=True)
    if hooks is NO_HOOKS:
        raise _disagreement("the linearization that was found does not hold when it is replayed", operations)
    return _by_port(model, operations, budget, "a hook promised too much: what was found does not hold when replayed")


def _refused(
    model: Model[State, Input, Output],
    operations: Sequence[Operation[Input, Output]],
    budget: Budget,
    hooks: Hooks[State, Input, Output],
    found: GenericResult,
) -> PartReport:
    prefix = illegal_prefix(operations, found.refuted)
    confirmed = check_single(model, prefix, Budget(CONFIRMATION_STEPS_MAX, budget.deadline_s)).result
    if confirmed is not CheckResult.OK:
        return _report(found, is_confirmed=confirmed is CheckResult.ILLEGAL)
    if hooks is NO_HOOKS:
        raise _disagreement("the port accepts what the search refused", prefix)
    return _by_port(model, operations, budget, "a hook promised too much: the port accepts what the search refused")


def _disagreement(what: str, operations: Sequence[Operation[Input, Output]]) -> HarnessError:
    return HarnessError(
        f"Two searches of the same operations disagree: {what}.",
        "See that the model's step function is pure: it must not change a state, and answer the same each time. "
        f"If it is, report this as a bug of Faultline, with the operations: {list(operations)[:50]!r}.",
    )


def illegal_prefix(operations: Sequence[Operation[Input, Output]], rank: int) -> list[Operation[Input, Output]]:
    """The history up to the return number `rank`; what was open then is pending, what came later is left out."""
    cut = sorted(operation.return_ for operation in operations)[rank]
    return [
        operation
        if operation.return_ <= cut
        else Operation(operation.client_id, operation.input, operation.call, operation.output, PENDING)
        for operation in operations
        if operation.call <= cut
    ]


def is_linearization(
    model: Model[State, Input, Output], operations: Sequence[Operation[Input, Output]], order: Sequence[int]
) -> bool:
    """Whether `order`, positions in `operations`, is legal step by step, keeps real time, and leaves nothing out."""
    state, latest_call = model.init(), float("-inf")
    for position in order:
        operation = operations[position]
        latest_call = max(latest_call, operation.call)
        legal, state = model.step(state, operation.input, operation.output)
        if not legal or operation.return_ < latest_call:
            return False
    must = {position for position, operation in enumerate(operations) if operation.return_ != PENDING}
    placed = set(order)
    return len(placed) == len(order) and must <= placed


def _placed_in_order(operations: Sequence[Operation[Input, Output]], order: Sequence[int]) -> int:
    """How many completed operations, in order of return, `order` places before it leaves one out."""
    placed = set(order)
    completed = [position for position, operation in enumerate(operations) if operation.return_ != PENDING]
    completed.sort(key=lambda position: operations[position].return_)
    return next((rank for rank, position in enumerate(completed) if position not in placed), len(completed))
