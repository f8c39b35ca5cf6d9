"""Any model through the faster engine: the same answers, with witness, hooks, budgets and an honest report."""

from __future__ import annotations

import pytest

from faultline.checkers.linearizability import generic
from faultline.checkers.linearizability.decision import Decision, Legality, worst
from faultline.checkers.linearizability.generic import (
    check_operations,
    check_operations_report,
    check_operations_timeout,
    check_part,
    illegal_prefix,
)
from faultline.checkers.linearizability.generic_search import Hooks, Walked, search_generic
from faultline.checkers.linearizability.generic_tables import COMPARED_MAX
from faultline.checkers.linearizability.replay import is_linearization
from faultline.checkers.porcupine import PENDING, UNLIMITED, CheckResult, Model, NondeterministicModel, Operation
from faultline.harness.errors import HarnessError


def step(state, given, answer):
    return (True, given[1]) if given[0] == "put" else (answer == state, state)


Register = Model(init=lambda: 0, step=step)
READS = Hooks(readonly=lambda given, answer: given[0] == "get")


def put(client, value, call, return_):
    return Operation(client, ("put", value), call, None, return_)


def get(client, value, call, return_):
    return Operation(client, ("get", None), call, value, return_)


ILLEGAL = [put(0, 200, 0, 100), get(1, 200, 10, 30), get(2, 0, 40, 90)]
LEGAL = [put(0, 100, 0, 100), get(1, 100, 25, 75), get(2, 0, 30, 60)]
HARD = [*(put(client, client, 0, 100) for client in range(9)), get(9, 99, 101, 102)]


@pytest.mark.parametrize("engine", ["auto", "port"])
def test_both_engines_give_the_same_answers(engine):
    assert check_operations(Register, LEGAL, engine=engine)
    assert not check_operations(Register, ILLEGAL, engine=engine)
    assert check_operations_timeout(Register, [], engine=engine) is CheckResult.OK


def test_a_report_tells_order_engine_and_that_it_was_confirmed():
    (part,) = check_operations_report(Register, LEGAL)
    assert part.engine == "generic" and part.handed_over == "" and part.is_confirmed
    assert is_linearization(Register, LEGAL, part.order)
    (part,) = check_operations_report(Register, ILLEGAL)
    assert part.is_illegal and part.is_confirmed
    assert part.furthest == 1


def test_the_port_is_used_when_asked_for_and_the_report_says_so():
    (part,) = check_operations_report(Register, ILLEGAL, engine="port")
    assert (part.engine, part.handed_over) == ("port", "the port was asked for")
    assert part.furthest == 1


def test_pending_operations_may_happen_or_not_and_equal_ones_are_used_in_order_of_call():
    pending = [put(0, 1, 0, PENDING), put(1, 1, 50, PENDING)]
    assert check_operations(Register, [*pending, get(2, 1, 5, 6), get(2, 0, 7, 8)]) is False
    assert check_operations(Register, [*pending, get(2, 0, 5, 6), get(2, 1, 7, 8)])
    assert check_operations(Register, [*pending, get(2, 1, 5, 6), put(3, 0, 7, 8), get(2, 0, 9, 10), get(2, 1, 60, 61)])
    assert not check_operations(
        Register, [*pending, get(2, 1, 5, 6), put(3, 0, 7, 8), get(2, 0, 9, 10), get(2, 1, 20, 21)]
    )


def test_many_equal_pending_operations_cost_little():
    history = [put(client, 1, client, PENDING) for client in range(300)]
    history += [get(999, value, 1000 + 2 * number, 1001 + 2 * number) for number, value in enumerate([0, 1, 2])]
    assert check_operations_timeout(Register, history, steps_max=2_000) is CheckResult.ILLEGAL


def test_a_spent_budget_is_unknown_and_says_how_far_it_came():
    report = check_operations_report(Register, [*LEGAL, *HARD], steps_max=3)
    assert worst(report) is Legality.UNKNOWN
    assert report[0].steps == 3
    assert check_operations_timeout(Register, ILLEGAL, timeout_s=-1.0) is CheckResult.UNKNOWN


def test_the_first_illegal_part_ends_the_check_and_outranks_an_unknown_one():
    by_client = Model(
        init=Register.init,
        step=step,
        partition=lambda history: [[o for o in history if o.client_id < 10], [o for o in history if o.client_id >= 10]],
    )
    report = check_operations_report(by_client, [*HARD, get(10, 5, 0, 1)], steps_max=3)
    assert [part.legality for part in report] == [Legality.UNKNOWN, Legality.ILLEGAL]
    assert worst(report) is Legality.ILLEGAL
    report = check_operations_report(by_client, [*ILLEGAL, get(10, 5, 0, 1)])
    assert len(report) == 1


def test_a_nondeterministic_model_needs_no_conversion():
    lossy = NondeterministicModel(
        init=lambda: [0],
        step=lambda state, given, answer: [state, given] if answer is None else [state] if answer == state else [],
    )
    write, zero, one = (Operation(0, 1, 0, None, 1), Operation(0, 0, 2, 0, 3), Operation(0, 0, 4, 1, 5))
    assert check_operations(lossy, [write, zero])
    assert check_operations(lossy, [write, one])
    assert not check_operations(lossy, [write, zero, one])
    assert check_operations_report(lossy, [write, one])[0].engine == "generic"


def test_a_wrong_guess_about_what_changes_nothing_is_taken_back():
    # A put of the value that is there changes nothing when it is tried first; placed there, it could not explain
    # the read of 0 after the put of 1. Only a second search without guessing finds the order.
    history = [put(0, 0, 0, 100), put(1, 1, 10, 20), get(2, 0, 30, 40)]
    assert check_operations(Register, history)


def test_can_reach_turns_back_before_anything_is_tried_in_vain():
    asked = []

    def can_reach(state, operation, available):
        asked.append((state, operation.output, sorted(each.input[1] or 0 for each in available)))
        return any(each.input == ("put", operation.output) for each in available)

    hooks = Hooks(readonly=READS.readonly, can_reach=can_reach)
    blind = search_generic(Register, HARD, UNLIMITED, READS).decision
    seeing = search_generic(Register, HARD, UNLIMITED, hooks).decision
    assert blind.is_illegal and seeing.is_illegal
    late = [put(0, 1, 0, 9), put(1, 2, 0, 9), put(2, 3, 5, PENDING), get(3, 7, 1, 6)]
    without = search_generic(Register, late, UNLIMITED).decision
    assert search_generic(Register, late, UNLIMITED, hooks).decision.steps < without.steps
    assert (0, 7, [0, 1, 2, 3]) in asked


def test_dead_states_are_searched_once():
    history = [*(put(client, 100 + client, 0, 100) for client in range(8)), get(9, 1, 101, 102)]
    dead = Hooks(readonly=READS.readonly, dead=lambda state: state >= 100)
    merged = search_generic(Register, history, UNLIMITED, dead).decision
    apart = search_generic(Register, history, UNLIMITED, READS).decision
    assert merged.is_illegal and apart.is_illegal
    assert merged.steps < apart.steps


def test_a_hook_that_calls_a_change_harmless_is_found_out_and_not_believed():
    lying = Hooks(readonly=lambda given, answer: True)
    (part,) = check_operations_report(Register, [put(0, 0, 0, 100), put(1, 1, 10, 20), get(2, 0, 30, 40)], hooks=lying)
    assert part.is_legal
    assert (part.engine, part.handed_over) == ("generic", "")


def test_a_look_ahead_that_gives_up_too_early_is_found_out_and_the_port_decides():
    lying = Hooks(readonly=READS.readonly, can_reach=lambda state, operation, available: False)
    (part,) = check_operations_report(Register, [put(0, 1, 0, 9), get(1, 1, 2, 5)], hooks=lying)
    assert part.is_legal
    assert (part.engine, part.handed_over) == (
        "port",
        "a hook promised too much: a search without hooks accepts what was refused",
    )


def test_a_hook_that_calls_live_states_dead_is_found_out_when_the_order_is_replayed():
    lying = Hooks(dead=lambda state: state in (1, 2))
    history = [put(0, 1, 0, 1), put(0, 2, 2, 3), get(0, 1, 4, 5)]
    (part,) = check_operations_report(Register, history, hooks=lying)
    assert part.is_illegal
    assert part.handed_over == "a hook promised too much: what was found does not hold when replayed"


def test_states_without_a_hash_give_way_to_the_port_when_they_are_too_many():
    counting = Model(init=lambda: [0], step=lambda state, given, answer: (True, [state[0] + 1]))
    history = [Operation(0, "tick", 2 * number, None, 2 * number + 1) for number in range(COMPARED_MAX + 1)]
    (part,) = check_operations_report(counting, history)
    assert part.is_legal and part.engine == "port"
    assert "no hash" in part.handed_over


def test_a_model_whose_steps_are_not_pure_is_reported_as_a_disagreement():
    calls = []

    def moody(state, given, answer):
        calls.append(given)
        return len(calls) < 3, state

    with pytest.raises(HarnessError, match="disagree"):
        check_operations(Model(init=lambda: 0, step=moody), [put(0, 1, 0, 1), put(0, 2, 2, 3)])


def test_a_search_that_refused_what_the_port_accepts_is_reported(monkeypatch):
    monkeypatch.setattr(
        generic,
        "search_generic",
        lambda *_: Walked(Decision(Legality.ILLEGAL, "generic", steps=1), is_proved=False, refutation=dict),
    )
    with pytest.raises(HarnessError, match="the port accepts"):
        check_part(Register, LEGAL, UNLIMITED)


def test_the_illegal_prefix_ends_at_the_return_that_cannot_be_placed():
    assert illegal_prefix([*ILLEGAL, put(3, 9, 95, 96)], 1) == [
        Operation(0, ("put", 200), 0, None, PENDING),
        *ILLEGAL[1:],
    ]


@pytest.mark.parametrize(
    ("order", "why"),
    [((0, 1), "one is missing"), ((0, 1, 2, 2), "one is twice"), ((2, 1, 0), "illegal"), ((1, 0, 2), "illegal")],
)
def test_a_replay_refuses_orders_that_prove_nothing(order, why):
    assert not is_linearization(Register, ILLEGAL, order), why


def test_a_replay_refuses_an_order_against_real_time():
    history = [put(0, 1, 0, 1), put(0, 2, 2, 3)]
    assert is_linearization(Register, history, (0, 1))
    assert not is_linearization(Register, history, (1, 0))


def test_more_than_sixty_four_open_operations_are_no_obstacle():
    history = [put(client, client, 0, 1000) for client in range(150)]
    history += [get(200 + number, number, 10 + 2 * number, 11 + 2 * number) for number in range(150)]
    assert check_operations(Register, history, hooks=READS)


def test_a_read_that_look_ahead_refuses_is_cut_at_its_own_return():
    def can_reach(state, operation, available):
        return any(each.input == ("put", operation.output) for each in available)

    hooks = Hooks(readonly=READS.readonly, can_reach=can_reach)
    (part,) = check_operations_report(Register, [put(0, 0, 0, 1), get(1, 7, 0, 5), put(0, 8, 2, 3)], hooks=hooks)
    assert (part.legality, part.engine, part.is_confirmed) == (Legality.ILLEGAL, "generic", True)
    assert (part.furthest, part.refuted) == (0, 2)
