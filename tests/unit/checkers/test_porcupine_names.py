"""The names and meanings of Porcupine's interface, on histories small enough to judge by hand."""

from __future__ import annotations

import io

import pytest

from faultline.checkers.linearizability import generic
from faultline.checkers.porcupine import (
    PENDING,
    UNKNOWN,
    Budget,
    CheckResult,
    Event,
    EventKind,
    Model,
    NondeterministicModel,
    Operation,
    check_events,
    check_events_verbose,
    check_operations,
    check_operations_timeout,
    check_operations_verbose,
    visualization_data,
    visualize,
    visualize_path,
)
from faultline.checkers.porcupine.budget import OutOfTime
from faultline.harness.errors import UsageError

CALL, RETURN = EventKind.CALL, EventKind.RETURN
EMPTY = "empty"


def queue_step(state, given, answer):
    """The queue as Porcupine's README would have it: it compares answers, and knows of no unknown one."""
    if given[0] == "enqueue":
        return True, (*state, given[1])
    if not state:
        return answer == EMPTY, state
    return answer == state[0], state[1:]


Queue = Model(init=tuple, step=queue_step)
Register = Model(
    init=lambda: 0,
    step=lambda state, given, answer: (True, given[1]) if given[0] == "put" else (answer == state, state),
)
ENQUEUED = [Event(0, CALL, ("enqueue", 1), 1), Event(0, RETURN, None, 1)]
FOUND_EMPTY = [Event(2, CALL, ("dequeue",), 3), Event(2, RETURN, EMPTY, 3)]

HARD = [Operation(client, ("put", client), 0, None, 100) for client in range(9)]
HARD.append(Operation(9, ("get", None), 101, 99, 102))


class FakeClock:
    """A monotonic clock that moves only when it is told to."""

    def __init__(self, monkeypatch):
        self.now = 1_000.0
        monkeypatch.setattr("faultline.checkers.porcupine.budget.time", self)

    def monotonic(self):
        return self.now


# -- calls that never returned --------------------------------------------------------------------------------------


def test_a_dequeue_that_never_returned_may_have_taken_the_value():
    assert check_events(Queue, [*ENQUEUED, Event(1, CALL, ("dequeue",), 2), *FOUND_EMPTY])


def test_a_queue_that_hides_a_value_is_refused_when_no_call_is_open():
    assert not check_events(Queue, [*ENQUEUED, *FOUND_EMPTY])


def test_a_call_that_never_returned_takes_one_value_and_no_more():
    two = [*ENQUEUED, Event(0, CALL, ("enqueue", 2), 4), Event(0, RETURN, None, 4)]
    assert not check_events(Queue, [*two, Event(1, CALL, ("dequeue",), 2), *FOUND_EMPTY])


def test_the_unknown_output_equals_every_answer_and_is_none_of_them():
    asked = UNKNOWN
    for answer in (7, "x", None, ()):
        assert (answer == asked, asked == answer) == (True, True)
        assert (answer != asked, asked != answer) == (False, False)
    assert UNKNOWN is not None
    assert {("get", UNKNOWN): 1}.get(("get", "ANSWER")) is None


def test_a_model_that_cannot_take_an_unknown_output_is_told_which_call_and_what_to_do():
    broken = Model(init=tuple, step=lambda state, given, answer: (answer["value"] == 1, state))
    with pytest.raises(UsageError, match=r"operation 0 \(\('dequeue',\)\), which never returned: TypeError"):
        check_events(broken, [Event(1, CALL, ("dequeue",), 2), *FOUND_EMPTY])


def test_an_operation_is_pending_unless_it_says_when_it_returned():
    taken = Operation(1, ("dequeue",), 2)
    assert (taken.output, taken.return_) == (UNKNOWN, PENDING)
    put, empty = Operation(0, ("enqueue", 1), 0, None, 1), Operation(2, ("dequeue",), 3, EMPTY, 4)
    assert check_operations(Queue, [put, taken, empty])
    assert not check_operations(Queue, [put, empty])


# -- timeouts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", [check_operations_timeout, generic.check_operations_timeout])
def test_a_timeout_holds_though_each_step_takes_a_tenth_of_it(check, monkeypatch):
    clock = FakeClock(monkeypatch)

    def slow(state, given, answer):
        clock.now += 0.1
        return Register.step(state, given, answer)

    assert check(Model(init=Register.init, step=slow), HARD, 1.0) is CheckResult.UNKNOWN
    assert clock.now <= 1_001.1 + 1e-6


@pytest.mark.parametrize("check", [check_operations_timeout, generic.check_operations_timeout])
def test_a_history_that_is_decided_in_time_is_decided_though_steps_are_slow(check, monkeypatch):
    clock = FakeClock(monkeypatch)

    def slow(state, given, answer):
        clock.now += 0.1
        return Register.step(state, given, answer)

    model = Model(init=Register.init, step=slow)
    assert check(model, [Operation(0, ("put", 1), 0, None, 1), HARD[-1]], 1.0) is CheckResult.ILLEGAL
    assert check(model, [Operation(0, ("put", 1), 0, None, 1)], 1.0) is CheckResult.OK


@pytest.mark.parametrize("check", [check_operations_timeout, generic.check_operations_timeout])
def test_a_timeout_of_zero_is_no_limit(check):
    assert check(Register, [Operation(0, ("get", None), 0, 5, 1)], 0) is CheckResult.ILLEGAL


def test_a_step_with_a_context_can_stop_in_its_middle_and_its_answer_is_not_taken(monkeypatch):
    clock = FakeClock(monkeypatch)
    stopped = []

    def step(context, state, given, answer):
        for _ in range(50):
            clock.now += 0.1
            if context.is_over():
                stopped.append(given)
                return False, state
        return Register.step(state, given, answer)

    model = Model(init=Register.init, step_context=step)
    read = [Operation(0, ("get", None), 0, 0, 1)]
    for check in (check_operations_timeout, generic.check_operations_timeout):
        assert check(model, read, 1.0) is CheckResult.UNKNOWN
        assert check(model, read) is CheckResult.OK
    assert stopped == [("get", None)] * 2


def test_the_step_for_a_check_raises_instead_of_answering_late(monkeypatch):
    clock = FakeClock(monkeypatch)
    step = Register.step_within(Budget.of(timeout_s=1.0))
    assert step(0, ("put", 5), None) == (True, 5)
    clock.now += 1.0
    with pytest.raises(OutOfTime):
        step(0, ("put", 5), None)


def test_a_model_without_any_step_is_refused():
    with pytest.raises(UsageError, match="neither step nor step_context"):
        Model(init=int)


# -- nondeterministic models ----------------------------------------------------------------------------------------

Lossy = NondeterministicModel(
    init=lambda: [0],
    step=lambda state, given, answer: [state, given] if answer is None else [state] if answer == state else [],
)
WRITE, ZERO, ONE = (Operation(0, 1, 0, None, 1), Operation(0, 0, 2, 0, 3), Operation(0, 0, 4, 1, 5))


def test_a_nondeterministic_model_can_be_given_as_it_is():
    assert check_operations(Lossy, [WRITE, ZERO])
    assert not check_operations(Lossy, [WRITE, ZERO, ONE])
    result, information = check_operations_verbose(Lossy, [WRITE, ONE])
    assert result is CheckResult.OK
    (part,) = visualization_data(Lossy, information).partitions
    assert [step.state for step in part.partial_linearizations[0]] == ["{0, 1}", "{1}"]


def test_states_of_a_nondeterministic_model_are_found_by_their_hash():
    compared = []

    def equal(left, right):
        compared.append((left, right))
        return left == right

    def sized(with_hash):
        compared.clear()
        model = NondeterministicModel(
            init=lambda: [0],
            step=lambda state, given, answer: [given] if answer is None else [state] if answer == state else [],
            equal=equal,
            hash=(lambda state: state) if with_hash else None,
        )
        history = [Operation(client, client, 0, None, 100) for client in range(6)]
        assert not check_operations(model, [*history, Operation(9, 0, 101, 77, 102)])
        return len(compared)

    assert sized(with_hash=True) < sized(with_hash=False) / 2


# -- metadata and pictures ------------------------------------------------------------------------------------------


def test_metadata_of_operations_and_events_is_described_by_the_model(tmp_path):
    told = Model(
        init=Register.init, step=Register.step, describe_operation_metadata=lambda info: f"node {info['node']}"
    )
    history = [Operation(0, ("put", 1), 0, None, 1, metadata={"node": "n3"})]
    _, information = check_operations_verbose(told, history)
    assert visualization_data(told, information).partitions[0].history[0].metadata == "node n3"
    page = visualize_path(told, information, tmp_path / "page.html").read_text("utf-8")
    assert "node n3" in page
    events = [Event(0, CALL, ("put", 1), 1, metadata={"node": "n1"}), Event(0, RETURN, None, 1, {"node": "n2"})]
    _, information = check_events_verbose(told, events)
    assert information.history[0][0].metadata == {"node": "n2"}


def test_without_a_hook_metadata_is_shown_as_text_and_its_absence_as_nothing():
    _, information = check_operations_verbose(Register, [Operation(0, ("put", 1), 0, None, 1, metadata=3), HARD[0]])
    assert [each.metadata for each in visualization_data(Register, information).partitions[0].history] == ["3", ""]


def test_a_picture_goes_to_any_text_file_or_to_a_path(tmp_path):
    _, information = check_operations_verbose(Register, HARD[:2])
    text = io.StringIO()
    visualize(Register, information, text)
    path = visualize_path(Register, information, tmp_path / "page.html")
    assert path.read_text("utf-8") == text.getvalue()
    assert "There is a linearization of every operation that returned." in text.getvalue()
