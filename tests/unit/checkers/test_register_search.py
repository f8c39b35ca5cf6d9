"""The fast search, in the places where shortcuts that looked obvious were wrong."""

from __future__ import annotations

import pytest

from faultline.checkers.linearizability.decision import Legality
from faultline.checkers.linearizability.models import referee_operations, register_model
from faultline.checkers.linearizability.operations import (
    AVOID,
    INFINITY,
    OBSERVE,
    SWAP,
    WRITE,
    RegisterOperation,
    canonical,
)
from faultline.checkers.linearizability.replay import is_linearization
from faultline.checkers.linearizability.search import illegal_prefix, search
from faultline.checkers.porcupine import Budget, check_operations

OK, ILLEGAL = Legality.LEGAL, Legality.ILLEGAL


def operations(*fields):
    """Register operations from (kind, demand, produce, call, return), rows numbered."""
    return [RegisterOperation(*values, row) for row, values in enumerate(fields)]


CASES = {
    "a failed cas can only be explained by a pending write that no operation reads": (
        [(WRITE, None, 1, 0, 1), (WRITE, None, 2, 2, INFINITY), (AVOID, 1, None, 3, 4)],
        OK,
    ),
    "without that write the failed cas is impossible": ([(WRITE, None, 1, 0, 1), (AVOID, 1, None, 3, 4)], ILLEGAL),
    "a pending write explains a failed cas and is overwritten again": (
        [
            (WRITE, None, 1, 0, 1),
            (WRITE, None, 2, 2, INFINITY),
            (AVOID, 1, None, 3, 4),
            (WRITE, None, 1, 5, 6),
            (OBSERVE, 1, None, 7, 8),
        ],
        OK,
    ),
    "one pending write cannot explain two failures around another write": (
        [
            (WRITE, None, 1, 0, 1),
            (WRITE, None, 2, 2, INFINITY),
            (AVOID, 1, None, 3, 4),
            (WRITE, None, 1, 5, 6),
            (AVOID, 1, None, 7, 8),
        ],
        ILLEGAL,
    ),
    "a pending cas helps through another pending cas": (
        [
            (WRITE, None, 1, 0, 1),
            (SWAP, 1, 2, 2, INFINITY),
            (SWAP, 2, 3, 3, INFINITY),
            (OBSERVE, 3, None, 4, 5),
        ],
        OK,
    ),
    "a pending cas need not happen": ([(SWAP, None, 1, 0, INFINITY), (OBSERVE, None, None, 1, 2)], OK),
    "a pending operation cannot happen before its call": (
        [(OBSERVE, 1, None, 0, 1), (WRITE, None, 1, 2, INFINITY)],
        ILLEGAL,
    ),
    "two writes in either order, told apart by a read long after": (
        [(WRITE, None, 1, 0, 3), (WRITE, None, 2, 1, 2), (WRITE, None, 3, 4, 9), (OBSERVE, 1, None, 5, 8)],
        OK,
    ),
    "nothing at all": ([], OK),
    "only pending operations": ([(WRITE, None, 1, 0, INFINITY)], OK),
}


@pytest.mark.parametrize("name", CASES)
def test_the_search_and_the_port_judge_alike(name):
    fields, expected = CASES[name]
    history = operations(*fields)
    found = search(history)
    assert found.legality is expected
    assert check_operations(register_model(), referee_operations(history)) is (expected is OK)
    if expected is OK:
        assert is_linearization(register_model(), referee_operations(history), found.order)


def test_furthest_names_the_first_return_that_cannot_be_explained():
    history = operations(
        (WRITE, None, 1, 0, 1), (OBSERVE, 1, None, 2, 3), (OBSERVE, 9, None, 4, 5), (OBSERVE, 1, None, 6, 7)
    )
    found = search(history)
    assert (found.legality, found.furthest, found.order) == (ILLEGAL, 2, [0, 1])
    assert [operation.row for operation in illegal_prefix(history, found.furthest)] == [0, 1, 2]


def test_a_spent_budget_is_unknown_and_says_how_far_it_came():
    history = operations(*((WRITE, None, value % 2, 2 * value, 2 * value + 1) for value in range(50)))
    found = search(history, None, Budget(20))
    assert (found.legality, found.furthest, found.steps) == (Legality.UNKNOWN, 20, 20)


@pytest.mark.parametrize(
    "order",
    [[1, 0], [0], [0, 0, 1], [0, 2]],
    ids=["against real time", "one is missing", "one twice", "illegal where it stands"],
)
def test_a_false_witness_is_not_believed(order):
    history = operations((WRITE, None, 1, 0, 1), (OBSERVE, 1, None, 2, 3), (OBSERVE, 5, None, 4, INFINITY))
    assert is_linearization(register_model(), referee_operations(history), [0, 1])
    assert not is_linearization(register_model(), referee_operations(history), order)


def test_json_values_that_python_confuses_stay_apart():
    assert len({canonical(value) for value in (1, True, "1", 1.5, [1], {"a": 1}, None, False, 0)}) == 9
    assert canonical({"a": 1, "b": 2}) == canonical({"b": 2, "a": 1})
