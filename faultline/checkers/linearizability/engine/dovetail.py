"""All keys in plain Python: the classifier, and rounds of search in which no key waits for one that is hard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from faultline.checkers.linearizability.engine.problem import DEAD, INITIAL, Answer, Problem, problem_of
from faultline.checkers.linearizability.engine.replay import is_linearization
from faultline.checkers.linearizability.engine.result import FIRST_STEPS, PATIENCE, KeyResult
from faultline.checkers.linearizability.engine.slots import search_slots
from faultline.checkers.linearizability.engine.zones import Contradiction, check_zones
from faultline.checkers.linearizability.operations import WRITE
from faultline.checkers.porcupine.budget import Budget, CheckResult
from faultline.harness.errors import HarnessError

if TYPE_CHECKING:
    from faultline.checkers.linearizability.engine.columns import Columns

__all__ = ["check_in_python"]


def check_in_python(columns: Columns, budget: Budget, *, with_zones: bool = True) -> list[KeyResult]:
    """Judge every key of `columns`; see `batch.check_columns`."""
    problems = [problem_of(columns, operations) for operations in _by_key(columns)]
    results: dict[int, KeyResult] = {}
    if with_zones:
        for number, problem in enumerate(problems):
            decided = _by_zones(problem)
            if decided is not None:
                results[number] = decided
    waiting, steps_max = [number for number in range(len(problems)) if number not in results], FIRST_STEPS
    spent = dict.fromkeys(waiting, 0)
    while waiting:
        within = Budget(steps_max if budget.steps_max is None else min(steps_max, budget.steps_max), budget.deadline_s)
        for number in waiting:
            answer = search_slots(problems[number], within)
            spent[number] += answer.steps
            results[number] = _by_slots(problems[number], answer, spent[number])
        if within.steps_max == budget.steps_max or budget.is_spent(0):
            break
        waiting = [number for number in waiting if results[number].result is CheckResult.UNKNOWN]
        steps_max *= PATIENCE
    return [results[number] for number in range(len(problems))]


def _by_key(columns: Columns) -> list[list[int]]:
    operations: list[list[int]] = [[] for _ in columns.keys]
    for i, key in enumerate(columns.key):
        operations[key].append(i)
    return operations


def _by_zones(problem: Problem) -> KeyResult | None:
    """The monitor's result, None when it does not apply or does not know."""
    try:
        order = check_zones(problem)
    except Contradiction as contradiction:
        named = tuple(problem.operation[i] for i in contradiction.operations)
        return KeyResult(CheckResult.ILLEGAL, "zones", 0, -1, DEAD, named, ())
    if order is None:
        return None
    return _legal(problem, Answer(True, order, len(problem.by_return), _state_after(problem, order), 0), "zones", 0)


def _state_after(problem: Problem, order: list[int]) -> int:
    return next((problem.produce[i] for i in reversed(order) if problem.kind[i] >= WRITE), INITIAL)


def _by_slots(problem: Problem, answer: Answer, steps: int) -> KeyResult:
    if answer.is_legal:
        return _legal(problem, answer, "slots", steps)
    result = CheckResult.UNKNOWN if answer.is_legal is None else CheckResult.ILLEGAL
    order = [problem.operation[i] for i in answer.order]
    return KeyResult(result, "slots", steps, answer.furthest, answer.state, (), order)


def _legal(problem: Problem, answer: Answer, decided_by: str, steps: int) -> KeyResult:
    if not is_linearization(problem, answer.order):
        raise HarnessError(
            "The linearization found for a key does not hold when it is replayed.",
            "Report this as a bug of Faultline, with the history.",
        )
    order = [problem.operation[i] for i in answer.order]
    return KeyResult(CheckResult.OK, decided_by, steps, answer.furthest, answer.state, (), order)
