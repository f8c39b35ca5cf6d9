"""All keys in plain Python: the monitor, and rounds of search in which no key waits for one that is hard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from faultline.checkers.linearizability.decision import Decision, Legality
from faultline.checkers.linearizability.engine.monitor import check_zones, repeats_often
from faultline.checkers.linearizability.engine.problem import Problem, problem_of
from faultline.checkers.linearizability.engine.replay import is_linearization
from faultline.checkers.linearizability.engine.slots import search_slots
from faultline.checkers.linearizability.engine.zones import Contradiction
from faultline.checkers.porcupine.budget import Budget
from faultline.harness.errors import HarnessError

if TYPE_CHECKING:
    from faultline.checkers.linearizability.engine.columns import Columns

__all__ = ["PATIENCE", "check_in_python"]

PATIENCE = 8
"""The factor by which the steps of an undecided key grow in the next round; the kernel has the same number."""


def check_in_python(columns: Columns, budget: Budget, first_steps: int, *, with_zones: bool = True) -> list[Decision]:
    """Judge every key of `columns`; the arguments are those of `batch.check_columns`."""
    problems = [problem_of(columns, operations) for operations in _by_key(columns)]
    decisions: dict[int, Decision] = {}
    waiting, steps_before, steps_max = list(range(len(problems))), 0, first_steps
    spent = dict.fromkeys(waiting, 0)
    unmonitored = {number for number in waiting if with_zones and not problems[number].has_appends}
    while waiting:
        within = Budget(steps_max if budget.steps_max is None else min(steps_max, budget.steps_max), budget.deadline_s)
        for number in waiting:
            problem, decided = problems[number], None
            if number in unmonitored and _is_due(problem, steps_before):
                unmonitored.remove(number)
                decided = _by_zones(problem)
            if decided is None:
                decided = _in_columns(problem, search_slots(problem, within))
            spent[number] += decided.steps
            decisions[number] = replace(decided, steps=spent[number])
        if within.steps_max == budget.steps_max or budget.is_spent(0):
            break
        waiting = [number for number in waiting if decisions[number].is_unknown]
        steps_before, steps_max = steps_max, steps_max * PATIENCE
    return [decisions[number] for number in range(len(problems))]


def _is_due(problem: Problem, steps_before: int) -> bool:
    """Return whether the monitor has its turn after a search of `steps_before` steps.

    It has it at once, but where values repeat often only when the search did not decide in a few steps.
    """
    return steps_before >= 2 * len(problem.kind) or not repeats_often(problem)


def _by_key(columns: Columns) -> list[list[int]]:
    operations: list[list[int]] = [[] for _ in columns.keys]
    for i, key in enumerate(columns.key):
        operations[key].append(i)
    return operations


def _by_zones(problem: Problem) -> Decision | None:
    """Return the decision of the monitor; None when it does not apply or does not know."""
    try:
        order = check_zones(problem)
    except Contradiction as contradiction:
        core = tuple(problem.operation[i] for i in contradiction.operations)
        return Decision(Legality.ILLEGAL, "zones", furthest=-1, core=core)
    if order is None:
        return None
    return _in_columns(problem, Decision(Legality.LEGAL, "zones", order, len(problem.by_return)))


def _in_columns(problem: Problem, decision: Decision) -> Decision:
    """Return `decision` with positions in the columns instead of the problem, its linearization replayed."""
    if decision.is_legal and not is_linearization(problem, decision.order):
        raise HarnessError(
            "The linearization found for a key does not hold when it is replayed.",
            "Report this as a bug of Faultline, with the history.",
        )
    return replace(decision, order=[problem.operation[i] for i in decision.order])
