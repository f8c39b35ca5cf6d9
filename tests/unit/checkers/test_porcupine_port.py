"""The port of Porcupine, checked on histories small enough to judge by hand."""

from __future__ import annotations

import pytest

from faultline.checkers.porcupine import (
    PENDING,
    Annotation,
    CheckResult,
    Event,
    EventKind,
    Model,
    NondeterministicModel,
    Operation,
    check_events,
    check_events_timeout,
    check_events_verbose,
    check_operations,
    check_operations_timeout,
    check_operations_verbose,
)

Register = Model(
    init=lambda: 0,
    step=lambda state, given, answer: (True, given[1]) if given[0] == "put" else (answer == state, state),
)


def put(client, value, call, return_):
    return Operation(client, ("put", value), call, None, return_)


def get(client, value, call, return_):
    return Operation(client, ("get", None), call, value, return_)


# Porcupine's own two first examples: a put of 100 during which one client may read it before another reads 0, or not.
LEGAL = [put(0, 100, 0, 100), get(1, 100, 25, 75), get(2, 0, 30, 60)]
ILLEGAL = [put(0, 200, 0, 100), get(1, 200, 10, 30), get(2, 0, 40, 90)]


def test_overlapping_reads_may_see_a_write_in_either_order():
    assert check_operations(Register, LEGAL)


def test_a_read_of_the_old_value_after_a_read_of_the_new_one_is_illegal():
    assert not check_operations(Register, ILLEGAL)


def test_calls_come_before_returns_at_equal_times():
    assert check_operations(Register, [put(0, 1, 0, 5), get(1, 0, 5, 6)])
    assert not check_operations(Register, [put(0, 1, 0, 5), get(1, 0, 6, 7)])


def test_a_pending_operation_may_have_happened_or_not():
    pending = put(0, 1, 0, PENDING)
    assert check_operations(Register, [pending, get(1, 1, 5, 6)])
    assert check_operations(Register, [pending, get(1, 0, 5, 6)])
    assert check_operations(Register, [pending, get(1, 0, 5, 6), get(1, 1, 7, 8)])
    assert not check_operations(Register, [pending, get(1, 1, 5, 6), get(1, 0, 7, 8)])


def test_a_pending_operation_that_can_never_be_legal_does_not_condemn_the_history():
    assert check_operations(Register, [get(0, 77, 0, PENDING), get(1, 0, 1, 2)])


def test_verbose_information_of_a_legal_history_is_one_complete_linearization():
    result, information = check_operations_verbose(Register, LEGAL)
    assert result is CheckResult.OK
    assert [sorted(order) for order in information.partial_linearizations[0]] == [[0, 1, 2]]
    (order,) = information.partial_linearizations_operations()[0]
    assert [operation.output for operation in order] == [0, None, 100]


def test_verbose_information_of_an_illegal_history_holds_the_longest_order_around_each_operation():
    result, information = check_operations_verbose(Register, ILLEGAL)
    assert result is CheckResult.ILLEGAL
    assert information.partial_linearizations == [((0, 1),)]
    information.add_annotations([Annotation(10, "partition", end=20)])
    assert information.annotations[0].description == "partition"


def test_events_are_checked_by_their_order_and_may_stay_open():
    call, back = EventKind.CALL, EventKind.RETURN
    events = [
        Event(0, call, ("put", 3), 7),
        Event(1, call, ("get", None), 9),
        Event(1, back, 3, 9),
    ]
    assert check_events(Register, events)
    assert check_events_timeout(Register, events, 5.0) is CheckResult.OK
    late = [*events, Event(2, call, ("get", None), 10), Event(2, back, 0, 10)]
    assert not check_events(Register, late)
    assert check_events_verbose(Register, late)[0] is CheckResult.ILLEGAL


@pytest.mark.parametrize(
    "events",
    [
        [Event(0, EventKind.RETURN, None, 1)],
        [Event(0, EventKind.CALL, ("get", None), 1), Event(0, EventKind.CALL, ("get", None), 1)],
    ],
)
def test_events_that_do_not_pair_up_are_refused(events):
    with pytest.raises(ValueError, match="operation 1"):
        check_events(Register, events)


def test_a_spent_budget_of_steps_is_unknown_and_the_same_every_time():
    history = [put(client, client, 0, 100) for client in range(9)] + [get(9, 99, 101, 102)]
    assert check_operations_timeout(Register, history, steps_max=500) is CheckResult.UNKNOWN
    assert check_operations_timeout(Register, history, steps_max=50_000) is CheckResult.ILLEGAL


def test_a_deadline_that_has_passed_is_unknown():
    assert check_operations_timeout(Register, ILLEGAL, timeout_s=-1.0) is CheckResult.UNKNOWN


def test_an_illegal_part_outranks_an_unknown_one():
    by_client = Model(
        init=Register.init,
        step=Register.step,
        partition=lambda history: [[o for o in history if o.client_id < 10], [o for o in history if o.client_id >= 10]],
    )
    hard = [put(client, client, 0, 100) for client in range(9)] + [get(9, 99, 101, 102)]
    assert check_operations_timeout(by_client, [*hard, get(10, 5, 0, 1)], steps_max=300) is CheckResult.ILLEGAL
    assert check_operations_timeout(by_client, [*hard, get(10, 0, 0, 1)], steps_max=300) is CheckResult.UNKNOWN


def test_states_that_cannot_be_hashed_are_compared():
    listed = Model(
        init=list,
        step=lambda state, given, answer: (True, [*state, given]) if answer is None else (answer == state, state),
    )
    history = [Operation(0, 1, 0, None, 10), Operation(1, 2, 0, None, 10), Operation(2, 0, 11, [2, 1], 12)]
    assert check_operations(listed, history)
    assert not check_operations(listed, [*history[:2], Operation(2, 0, 11, [2], 12)])
    by_size = Model(init=list, step=listed.step, equal=lambda left, right: left == right, hash=len)
    assert check_operations(by_size, history)


def test_a_nondeterministic_model_is_in_all_its_states_at_once():
    lossy = NondeterministicModel(
        init=lambda: [0],
        step=lambda state, given, answer: [state, given] if answer is None else [state] if answer == state else [],
    ).to_model()
    write, zero, one = (Operation(0, 1, 0, None, 1), Operation(0, 0, 2, 0, 3), Operation(0, 0, 4, 1, 5))
    assert check_operations(lossy, [write, zero])
    assert check_operations(lossy, [write, one])
    assert not check_operations(lossy, [write, zero, one])
    assert lossy.describe_state((0, 1)) == "{0, 1}"
