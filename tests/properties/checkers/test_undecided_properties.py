"""The claims of an undecided search are true: its order is one, and the states that it ruled out lead nowhere."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from faultline.checkers.linearizability.checker import LinearizabilityChecker
from faultline.checkers.linearizability.engine.registers import columns_of
from faultline.checkers.linearizability.models import referee_operations, register_model
from faultline.checkers.linearizability.operations import AVOID, INFINITY, OBSERVE, SWAP, WRITE, RegisterOperation
from faultline.checkers.linearizability.undecided import ruled_out
from faultline.checkers.porcupine import UNLIMITED, Budget, CheckResult, check_single
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import ok

SMALL = st.integers(0, 2)


@st.composite
def busy_histories(draw: st.DrawFn) -> list[RegisterOperation]:
    """Operations of which many overlap, on three values that repeat: what the monitor leaves to the search."""
    operations = []
    for row in range(draw(st.integers(4, 9))):
        kind, call = draw(st.sampled_from([OBSERVE, AVOID, WRITE, WRITE, SWAP])), draw(st.integers(0, 12))
        demand = draw(SMALL) if kind != WRITE else None
        produce = draw(SMALL) if kind >= WRITE else None
        operations.append(RegisterOperation(kind, demand, produce, call, call + draw(st.integers(1, 12)), row))
    return operations


def beginning_with(operations: list[RegisterOperation], first: list[int]) -> list[RegisterOperation]:
    """The history in which these operations come first, one after the other."""
    late = 2 * len(first) + 1
    forced = {i: 2 * place for place, i in enumerate(first)}
    return [
        operation._replace(call=forced[i], return_=forced[i] + 1)
        if i in forced
        else operation._replace(call=operation.call + late, return_=operation.return_ + late)
        for i, operation in enumerate(operations)
    ]


@given(busy_histories(), st.integers(1, 12))
def test_no_linearization_goes_on_as_was_ruled_out(operations: list[RegisterOperation], steps_max: int) -> None:
    beginning, excluded = ruled_out(columns_of(operations, 0), Budget(steps_max))
    for operation in excluded:
        forced = beginning_with(operations, [*beginning, operation])
        assert check_single(register_model(0), referee_operations(forced), UNLIMITED).result is CheckResult.ILLEGAL


def test_something_is_ruled_out_of_a_history_that_is_hard_enough() -> None:
    writes = [RegisterOperation(WRITE, None, value % 3, 0, 20 + value, value) for value in range(6)]
    reads = [
        RegisterOperation(OBSERVE, value, None, 30 + 2 * n, 31 + 2 * n, 6 + n) for n, value in enumerate([1, 0, 1])
    ]
    beginning, excluded = ruled_out(columns_of([*writes, *reads], 0), Budget(40))
    assert excluded
    assert not set(beginning) & set(excluded)


@given(st.lists(SMALL, min_size=3, max_size=20), st.integers(1, 8))
def test_everything_before_the_stop_is_in_the_order(values: list[int], steps_max: int) -> None:
    history = History()
    rows = [history.invoke(Operation(n, "write", "k", value), n, n, "athens") for n, value in enumerate(values)]
    for row in rows:
        history.complete(row, ok(), 100 + row)
    result = LinearizabilityChecker(steps_max=steps_max).check(history)
    for known in result.detail["undecided"]:
        assert set(rows[: known["placed"]]) <= set(known["order"])
        assert known["stuck"] == rows[known["placed"]]
        assert known["sentence"] in result.sentence
        assert INFINITY > known["steps"] >= steps_max
