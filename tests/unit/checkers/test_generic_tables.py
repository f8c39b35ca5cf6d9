"""States and operations as numbers."""

from __future__ import annotations

import pytest

from faultline.checkers.linearizability.generic_tables import (
    COMPARED_MAX,
    ILLEGAL,
    Interner,
    Machine,
    OperationClasses,
    TooManyComparisons,
)
from faultline.checkers.porcupine import Model, NondeterministicModel, Operation


def operation(given, answer=None):
    return Operation(0, given, 0, answer, 1)


def test_equal_states_share_a_number_and_different_ones_do_not():
    states = Interner()
    assert [states.number(value) for value in ("a", "b", "a")] == [0, 1, 0]
    assert states.values == ["a", "b"]


def test_states_without_a_hash_are_compared():
    states = Interner()
    assert [states.number(value) for value in ([1], [2], [1])] == [0, 1, 0]


def test_a_model_s_own_equality_and_hash_are_used():
    states = Interner(equal=lambda left, right: left % 10 == right % 10, hash_=lambda value: value % 2)
    assert [states.number(value) for value in (1, 11, 2, 12, 3)] == [0, 0, 1, 1, 2]


def test_all_dead_states_are_one():
    states = Interner(dead=lambda value: value < 0)
    assert [states.number(value) for value in (-1, 5, -2)] == [0, 1, 0]


def test_too_many_states_without_a_hash_are_given_up():
    states = Interner(equal=lambda left, right: left == right)
    for value in range(COMPARED_MAX):
        states.number(value)
    with pytest.raises(TooManyComparisons):
        states.number(-1)


def test_equal_calls_are_one_class_but_scalars_of_different_types_are_not():
    classes = OperationClasses()
    numbers = [classes.number(operation(*pair)) for pair in ((1,), (True,), (1.0,), (1,), ((1, 2),), ((True, 2),))]
    assert numbers == [0, 1, 2, 0, 3, 4]


def test_calls_without_a_hash_are_a_class_of_their_own_each():
    classes = OperationClasses()
    assert [classes.number(operation([1])) for _ in range(2)] == [0, 1]


def test_a_machine_asks_the_model_once_for_each_state_and_class():
    asked = []

    def step(state, given, answer):
        asked.append((state, given))
        return given <= 3, state + given

    classes = OperationClasses()
    one, four = (classes.number(operation(given)) for given in (1, 4))
    machine = Machine(Model(init=lambda: 0, step=step), classes)
    after = machine.next_state(machine.initial, one)
    assert machine.rows[machine.initial] == {one: after}
    assert machine.value(after) == 1
    assert machine.next_state(machine.initial, four) == ILLEGAL
    assert asked == [(0, 1), (0, 4)]


def test_a_nondeterministic_model_is_a_machine_over_sets_of_states():
    model = NondeterministicModel(init=lambda: [0], step=lambda state, given, answer: [state, given] if given else [])
    classes = OperationClasses()
    put, nothing = (classes.number(operation(given)) for given in (5, 0))
    machine = Machine(model, classes)
    both = machine.next_state(machine.initial, put)
    assert len(machine.value(both)) == 2
    assert machine.next_state(both, put) == both
    assert machine.next_state(both, nothing) == ILLEGAL


def test_a_set_of_states_is_dead_when_all_of_them_are():
    model = NondeterministicModel(init=lambda: [1], step=lambda state, given, answer: list(given))
    classes = OperationClasses()
    mixed, dead, other = (classes.number(operation(given)) for given in ((1, -1), (-1,), (-2, -3)))
    machine = Machine(model, classes, dead=lambda state: state < 0)
    assert machine.next_state(machine.initial, dead) == machine.next_state(machine.initial, other)
    assert machine.next_state(machine.initial, mixed) != machine.next_state(machine.initial, dead)
