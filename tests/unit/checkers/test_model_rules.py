"""The configurations of a search as a proof: plain to check, the same in both forms, and refused when wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from faultline.checkers.linearizability.certificates import Configuration
from faultline.checkers.linearizability.engine.native import engine_in_use
from faultline.checkers.linearizability.generic_search import Hooks, search_generic
from faultline.checkers.porcupine import PENDING, UNLIMITED, Budget, Model, Operation

FORMS = ["python"] if engine_in_use().name == "python" else ["native", "python"]


def step(state, given, answer):
    return (True, given[1]) if given[0] == "put" else (answer == state, state)


Register = Model(init=lambda: 0, step=step)


def put(value, call, return_):
    return Operation(0, ("put", value), call, None, return_)


def get(value, call, return_):
    return Operation(0, ("get", None), call, value, return_)


STALE = [put(1, 0, 5), put(2, 6, 9), get(1, 2, 8), put(3, 10, PENDING), get(1, 20, 21)]


def refutation_of(history, form="python"):
    walked = search_generic(Register, history, UNLIMITED, engine=form)
    assert walked.decision.is_illegal and walked.is_proved
    return walked.refutation()


@pytest.mark.parametrize("form", FORMS)
def test_a_refutation_is_proved_by_one_look_at_its_configurations(form):
    assert not refutation_of(STALE, form).fault()


def test_a_refutation_that_lacks_a_configuration_is_refused():
    proof = refutation_of(STALE)
    for missing in proof.configurations:
        rest = [each for each in proof.configurations if each != missing]
        assert proof._replace(configurations=rest).fault(), missing


def changes(configuration):
    yield configuration._replace(rank=configuration.rank + 1)
    yield configuration._replace(state=configuration.state + 1)
    yield configuration._replace(ahead=tuple({*configuration.ahead} ^ {1}))
    yield configuration._replace(used=(*configuration.used, 3))


def test_a_refutation_with_a_changed_configuration_is_refused():
    proof = refutation_of([put(1, 0, 5), put(2, 0, 5), get(0, 6, 9), put(3, 7, PENDING)])
    first, *rest = proof.configurations
    for changed in changes(first):
        assert proof._replace(configurations=[changed, *rest]).fault(), changed


def test_no_set_of_configurations_refutes_a_legal_history():
    legal = [replace(each, output=2) if each.call == 20 else each for each in STALE]
    assert search_generic(Register, legal, UNLIMITED).decision.is_legal
    walked = search_generic(Register, legal, UNLIMITED, engine="python").refutation()
    every = [
        Configuration(rank, state, ahead, used)
        for rank, open_now in enumerate([((), (2,)), ((), (1,)), ((),), ((),)])
        for ahead in open_now
        for used in ((), (3,))[: 1 if rank < 3 else 2]
        for state in sorted({each.state for each in walked.configurations})
    ]
    assert walked._replace(configurations=every).fault()


def test_an_operation_that_is_called_still_and_moves_the_state_elsewhere_breaks_the_proof():
    # A put of the value that is there changes nothing when it is tried first; placed later, it explains the read.
    history = [put(0, 0, 0), put(1, 0, 0), get(0, 1, 1)]
    walked = search_generic(Register, history, UNLIMITED, engine="python")
    assert walked.decision.is_legal
    guess = walked.refutation()
    put_of_0, put_of_1, _ = guess.class_of
    state_of_1 = guess.next_state(guess.initial, put_of_1)
    # With the put of 0 placed at once, the only thing left after the put of 1 is a read that is illegal.
    hidden = guess._replace(
        still={put_of_0},
        configurations=[
            Configuration(1, guess.initial, (), ()),
            Configuration(2, state_of_1, (), ()),
        ],
    )
    assert hidden.broken_guesses() == {put_of_0}
    assert hidden.fault()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("hooks", [Hooks(), Hooks(readonly=lambda given, _: given[0] == "get")])
def test_both_forms_walk_the_same_way(form, hooks):
    history = [*STALE, *(put(client, 0, 30) for client in range(4)), get(9, 1, 40)]
    expected = search_generic(Register, history, UNLIMITED, hooks, "python")
    found = search_generic(Register, history, UNLIMITED, hooks, form)
    assert found.decision == expected.decision
    assert sorted(map(repr, found.refutation().configurations)) == sorted(
        map(repr, expected.refutation().configurations)
    )


@pytest.mark.parametrize("form", FORMS)
def test_a_budget_of_steps_ends_both_forms_at_the_same_place(form):
    history = [*(put(client, 0, 30) for client in range(9)), get(99, 40, 41)]
    found = search_generic(Register, history, Budget(steps_max=50), engine=form).decision
    assert found == search_generic(Register, history, Budget(steps_max=50), engine="python").decision
    assert found.is_unknown and found.steps == 50


@pytest.mark.parametrize("form", FORMS)
def test_an_exception_of_the_model_is_raised_as_it_is(form):
    def failing(state, given, answer):
        raise ValueError("the model does not know this operation")

    with pytest.raises(ValueError, match="does not know"):
        search_generic(Model(init=lambda: 0, step=failing), STALE, UNLIMITED, engine=form)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shift", [-1000, 0.25, 1 << 70])
def test_times_of_any_size_and_kind_are_compared_alike(form, shift):
    moved = [replace(each, call=each.call + shift, return_=each.return_ + shift) for each in STALE]
    assert search_generic(Register, moved, UNLIMITED, engine=form).decision.is_illegal
    assert search_generic(Register, moved[:2], UNLIMITED, engine=form).decision.is_legal
