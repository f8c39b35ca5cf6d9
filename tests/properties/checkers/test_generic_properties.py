"""The generic engine against the port, for models of every make."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from faultline.checkers.linearizability.generic import check_operations_report
from faultline.checkers.linearizability.generic_search import NO_HOOKS, Hooks
from faultline.checkers.linearizability.replay import is_linearization
from faultline.checkers.porcupine import PENDING, Model, NondeterministicModel, Operation, check_operations


def step(state, given_, answer):
    f, value = given_
    if f == "read":
        return answer == state, state
    if f == "swap":
        return state == value[0], value[1]
    return True, value if f == "write" else (state + value) % 4


def choices(state, given_, answer):
    legal, after = step(state, given_, answer)
    return [] if not legal else [state, after] if given_[0] == "write" else [after]


def in_a_list(state, given_, answer):
    legal, after = step(state[0], given_, answer)
    return legal, [after]


PLAIN = Model(init=lambda: 0, step=step)
UNHASHED = Model(init=lambda: [0], step=in_a_list)
BUCKETED = Model(init=lambda: [0], step=in_a_list, equal=lambda a, b: a == b, hash=lambda state: state[0] % 2)
LOSSY = NondeterministicModel(init=lambda: [0, 1], step=choices)
READS = Hooks(readonly=lambda given_, answer: given_[0] == "read")


def can_reach(state, operation, available):
    """Return whether some state reachable by any number of `available` operations lets `operation` happen."""
    reached, grown = {state}, True
    while grown:
        before = len(reached)
        for each in available:
            reached |= {step(value, each.input, each.output)[1] for value in reached}
        grown = len(reached) > before
    return any(step(value, operation.input, operation.output)[0] for value in reached)


HOOKS = (NO_HOOKS, READS, Hooks(readonly=READS.readonly, can_reach=can_reach))


@st.composite
def histories(draw, operations_max=8):
    history = []
    for client in range(draw(st.integers(1, operations_max))):
        call, length = draw(st.integers(0, 16)), draw(st.integers(0, 9))
        f = draw(st.sampled_from(["read", "read", "write", "add", "swap"]))
        value = {
            "read": st.none(),
            "write": st.integers(0, 3),
            "add": st.integers(1, 2),
            "swap": st.tuples(st.integers(0, 3), st.integers(0, 3)),
        }[f]
        answer = draw(st.integers(0, 3)) if f == "read" else None
        pending = draw(st.sampled_from([False] * 3 + [True]))
        return_ = PENDING if pending else call + length
        history.append(Operation(client, (f, draw(value)), call, answer, return_))
    return history


def agrees_with_the_port(model, plain, history, hooks):
    expected = check_operations(plain, history)
    (part,) = check_operations_report(model, history, hooks=hooks)
    assert part.is_legal == expected
    assert (part.engine, part.is_confirmed) == ("generic", True)
    if expected:
        assert is_linearization(plain, history, part.order)
    return part


@settings(max_examples=200)
@given(histories(), st.sampled_from(HOOKS))
def test_a_plain_model_is_judged_as_by_the_port_with_and_without_hooks(history, hooks):
    agrees_with_the_port(PLAIN, PLAIN, history, hooks)


@settings(max_examples=150)
@given(histories(), st.sampled_from([UNHASHED, BUCKETED]))
def test_states_without_a_hash_make_no_difference(history, model):
    agrees_with_the_port(model, PLAIN, history, READS)


@settings(max_examples=200)
@given(histories())
def test_a_nondeterministic_model_is_judged_as_its_power_set(history):
    agrees_with_the_port(LOSSY, LOSSY.to_model(), history, READS)


@settings(max_examples=200)
@given(histories())
def test_merging_indistinguishable_states_changes_no_verdict(history):
    """Values that no read and no swap of the history asks for, in a register without additions."""
    history = [operation for operation in history if operation.input[0] != "add"]
    asked = {operation.output for operation in history if operation.input[0] == "read"}
    asked |= {operation.input[1][0] for operation in history if operation.input[0] == "swap"}
    dead = Hooks(readonly=READS.readonly, dead=lambda state: state not in asked)
    if history:
        agrees_with_the_port(PLAIN, PLAIN, history, dead)
