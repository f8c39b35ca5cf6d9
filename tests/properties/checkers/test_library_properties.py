"""`check`, the port's events and the models by name, against every order of a small history."""

from __future__ import annotations

from itertools import permutations, product

from hypothesis import given, settings
from hypothesis import strategies as st

from faultline.checkers import PENDING, UNKNOWN, Model, Operation, check
from faultline.checkers.porcupine import Event, EventKind, check_events
from faultline.harness.verdict import Verdict

VALUES = (0, 1, 2)


def register_step(state, given_, answer):
    """A register with compare-and-set that compares answers and knows of no unknown one."""
    f = given_ if isinstance(given_, str) else given_[0]
    if f == "read":
        return answer == state, state
    if f == "write":
        return answer is None or answer == "done", given_[1]
    is_done = state == given_[1][0]
    return answer == is_done, given_[1][1] if is_done else state


def queue_step(state, given_, answer):
    if given_[0] == "enqueue":
        return True, (*state, given_[1])
    return (answer == state[0], state[1:]) if state else (answer is None or answer == "empty", state)


Register = Model(init=lambda: None, step=register_step)
Queue = Model(init=tuple, step=queue_step)

REQUESTS = {
    "register": (
        ["read", *(("write", value) for value in VALUES), *(("cas", pair) for pair in ((0, 1), (1, 2), (2, 2)))],
        [None, *VALUES],
    ),
    "queue": (
        [*((("enqueue", value)) for value in VALUES), ("dequeue", None), ("dequeue", None)],
        [None, *VALUES],
    ),
}


def answers_of(given_, seen):
    """The answers that an operation can have at all."""
    f = given_ if isinstance(given_, str) else given_[0]
    return {"cas": (True, False), "write": (None,), "enqueue": (None,)}.get(f, seen)


@st.composite
def histories(draw, kind, operations_max=5):
    """Operations of clients of their own, open at moments that are all different, some of them for ever."""
    requests, seen = REQUESTS[kind]
    size = draw(st.integers(1, operations_max))
    moments = draw(st.permutations(range(2 * size)))
    history = []
    for client in range(size):
        begin, end = sorted(moments[2 * client : 2 * client + 2])
        request = draw(st.sampled_from(requests))
        if draw(st.integers(0, 3)) == 0:
            history.append(Operation(client, request, begin))
        else:
            answer = draw(st.sampled_from(answers_of(request, seen)))
            history.append(Operation(client, request, begin, answer, end))
    return history


def has_an_order(history, step, state, seen):
    """Return whether some order explains `history`. An open operation may have happened, with any answer, or not."""
    returned = [operation for operation in history if operation.return_ != PENDING]
    open_ = [operation for operation in history if operation.return_ == PENDING]
    for happened in product((False, True), repeat=len(open_)):
        chosen = [*returned, *(operation for operation, did in zip(open_, happened, strict=True) if did)]
        if any(in_real_time(order) and explains(order, step, state, seen) for order in permutations(chosen)):
            return True
    return False


def in_real_time(order):
    return not any(later.return_ < earlier.call for at, earlier in enumerate(order) for later in order[at:])


def explains(order, step, state, seen):
    if not order:
        return True
    first, *rest = order
    answers = answers_of(first.input, seen) if first.output is UNKNOWN else (first.output,)
    for answer in answers:
        legal, after = step(state, first.input, answer)
        if legal and explains(rest, step, after, seen):
            return True
    return False


def events_of(history):
    moments = [
        (operation.call, Event(operation.client_id, EventKind.CALL, operation.input, at))
        for at, operation in enumerate(history)
    ]
    moments += [
        (operation.return_, Event(operation.client_id, EventKind.RETURN, operation.output, at))
        for at, operation in enumerate(history)
        if operation.return_ != PENDING
    ]
    return [event for _, event in sorted(moments, key=lambda moment: moment[0])]


NO_VIOLATION = (Verdict.PASS, Verdict.VACUOUS)
"""A history without any answer is vacuous under a model by name."""


@settings(max_examples=300)
@given(histories("register"))
def test_a_register_is_judged_alike_by_name_by_ones_own_model_and_by_events(history):
    expected = has_an_order(history, register_step, None, REQUESTS["register"][1])
    assert check_events(Register, events_of(history)) is expected
    for model in ("cas-register", Register):
        result = check(model, history)
        assert (result.verdict in NO_VIOLATION) is expected
        assert set(result.evidence) <= set(history)
        assert bool(result.evidence) is not expected


@settings(max_examples=300)
@given(histories("queue"))
def test_a_queue_is_judged_alike_by_name_by_ones_own_model_and_by_events(history):
    expected = has_an_order(history, queue_step, (), REQUESTS["queue"][1])
    assert check_events(Queue, events_of(history)) is expected
    for model in ("linearizable-queue", Queue):
        assert (check(model, history).verdict in NO_VIOLATION) is expected
