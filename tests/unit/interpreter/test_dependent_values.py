"""Operations whose values depend on answers: the interpreter fills the answer in when it invokes them."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.harness.generator import scheduled
from faultline.harness.history import History
from faultline.harness.interpreter import Interpreter
from faultline.harness.operation import AnswerOf
from faultline.harness.outcome import Outcome, fail, info, ok
from faultline.harness.plan import Plan, PlannedOperation, answers_needed

READ = PlannedOperation(0, 0, "read", "x")
WRITE = PlannedOperation(1, 100, "write", "y", 7, AnswerOf(0, "read", "x"))


def values(*steps: tuple[PlannedOperation, Outcome]) -> list[Any]:
    """Return the value of each operation, performed one after the other with these outcomes."""
    operations = tuple(operation for operation, _ in steps)
    plan = Plan(
        system="s", workload="w", seed=0, nodes=("athens",), workers=2, operations=operations, heal_us=0, end_us=0
    )
    history = History()
    driver = Interpreter(
        scheduled(operations, workers=2),
        workers=2,
        seed=0,
        history=history,
        node_of=lambda _: "athens",
        remembered=answers_needed(plan),
    )
    for operation, outcome in steps:
        (dispatch,) = driver.poll(operation.at_us)
        driver.complete(dispatch.worker, outcome, operation.at_us + 5)
    return list(history.value)


def at(operation: PlannedOperation, at_us: int, **changes: Any) -> PlannedOperation:
    fields = {"f": operation.f, "key": operation.key, "worker": operation.worker} | changes
    return PlannedOperation(at_us=at_us, **fields)


def test_the_value_is_the_planned_one_with_the_last_answer() -> None:
    assert values((READ, ok(3)), (at(READ, 10), ok(4)), (WRITE, ok())) == [None, None, [7, 4]]


def test_before_the_first_answer_it_is_null() -> None:
    assert values((WRITE, ok())) == [[7, None]]


@pytest.mark.parametrize("outcome", [info("timeout"), fail("refused")])
def test_an_operation_without_an_answer_changes_nothing(outcome: Outcome) -> None:
    assert values((READ, ok(3)), (at(READ, 10), outcome), (WRITE, ok()))[-1] == [7, 3]


def test_a_worker_remembers_when_its_process_retires() -> None:
    steps = [(READ, ok(3)), (at(READ, 10, key="other"), info("timeout")), (WRITE, ok())]
    assert values(*steps)[-1] == [7, 3]


@pytest.mark.parametrize("changes", [{"key": "other"}, {"f": "peek"}, {"worker": 1}])
def test_answers_of_other_keys_functions_and_workers_do_not_count(changes: dict[str, Any]) -> None:
    assert values((READ, ok(3)), (at(READ, 10, **changes), ok(4)), (WRITE, ok()))[-1] == [7, 3]
