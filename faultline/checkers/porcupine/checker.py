"""Porcupine's entry points: check a history of operations or events, with a budget, with an explanation.

The history is split by the model into parts that are searched one after the other; it is linearizable when every part
is (P-compositionality: Horn & Kroening, "Faster linearizability checking via P-compositionality", 2015). `steps_max` is
the number of steps each part may take, `timeout_s` the seconds all of them may take together, where 0 is no limit, as
in Porcupine; when either runs out in some part and no other part is illegal, the result is UNKNOWN. A step that has
begun is not broken off, unless the model has a `step_context`.

Each function takes a `Model` or a `NondeterministicModel`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from faultline.checkers.porcupine.entries import operations_of_events
from faultline.checkers.porcupine.information import LinearizationInfo
from faultline.checkers.porcupine.model import AnyModel, CheckResult, Event, NondeterministicModel, Operation
from faultline.checkers.porcupine.search import UNLIMITED, Budget, PartResult, check_single

__all__ = [
    "check_events",
    "check_events_timeout",
    "check_events_verbose",
    "check_operations",
    "check_operations_timeout",
    "check_operations_verbose",
]

State = TypeVar("State")
Input = TypeVar("Input")
Output = TypeVar("Output")


def check_operations(model: AnyModel[State, Input, Output], history: Sequence[Operation[Input, Output]]) -> bool:
    """Return whether `history` is linearizable, however long it takes to know."""
    return _check(model, model.partition(history), UNLIMITED, False)[0] is CheckResult.OK


def check_operations_timeout(
    model: AnyModel[State, Input, Output],
    history: Sequence[Operation[Input, Output]],
    timeout_s: float | None = None,
    *,
    steps_max: int | None = None,
) -> CheckResult:
    """Return whether `history` is linearizable, or UNKNOWN when the budget ends first. None and 0 mean no limit."""
    return _check(model, model.partition(history), Budget.of(steps_max, timeout_s or None), False)[0]


def check_operations_verbose(
    model: AnyModel[State, Input, Output],
    history: Sequence[Operation[Input, Output]],
    timeout_s: float | None = None,
    *,
    steps_max: int | None = None,
) -> tuple[CheckResult, LinearizationInfo[Input, Output]]:
    """Check as `check_operations_timeout` does, but every part, and collect the longest partial linearizations."""
    return _check(model, model.partition(history), Budget.of(steps_max, timeout_s or None), True)


def check_events(model: AnyModel[State, Input, Output], history: Sequence[Event[Input, Output]]) -> bool:
    """Return whether the event history is linearizable, however long it takes to know."""
    return _check(model, _parts(model, history), UNLIMITED, False)[0] is CheckResult.OK


def check_events_timeout(
    model: AnyModel[State, Input, Output],
    history: Sequence[Event[Input, Output]],
    timeout_s: float | None = None,
    *,
    steps_max: int | None = None,
) -> CheckResult:
    """Return whether the event history is linearizable, or UNKNOWN when the budget ends first."""
    return _check(model, _parts(model, history), Budget.of(steps_max, timeout_s or None), False)[0]


def check_events_verbose(
    model: AnyModel[State, Input, Output],
    history: Sequence[Event[Input, Output]],
    timeout_s: float | None = None,
    *,
    steps_max: int | None = None,
) -> tuple[CheckResult, LinearizationInfo[Input, Output]]:
    """Check as `check_events_timeout` does, and collect the longest partial linearizations."""
    return _check(model, _parts(model, history), Budget.of(steps_max, timeout_s or None), True)


def _parts(
    model: AnyModel[State, Input, Output], history: Sequence[Event[Input, Output]]
) -> list[Sequence[Operation[Input, Output]]]:
    return [operations_of_events(part) for part in model.partition_event(history)]


def _check(
    model: AnyModel[State, Input, Output],
    parts: Sequence[Sequence[Operation[Input, Output]]],
    budget: Budget,
    verbose: bool,
) -> tuple[CheckResult, LinearizationInfo[Input, Output]]:
    checked: list[PartResult] = []
    plain: Any = model.to_model() if isinstance(model, NondeterministicModel) else model
    for part in parts:
        checked.append(check_single(plain, part, budget, verbose))
        if checked[-1].result is CheckResult.ILLEGAL and not verbose:
            break
    results = {part_result.result for part_result in checked}
    linearizations = [part_result.linearizations for part_result in checked]
    return _merge(results), LinearizationInfo(parts[: len(checked)], linearizations)


def _merge(results: set[CheckResult]) -> CheckResult:
    if CheckResult.ILLEGAL in results:
        return CheckResult.ILLEGAL
    return CheckResult.UNKNOWN if CheckResult.UNKNOWN in results else CheckResult.OK
