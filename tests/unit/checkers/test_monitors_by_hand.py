"""The monitors, on histories small enough to judge by hand: each kind of violation, its legal twin, each hand-over."""

from __future__ import annotations

import pytest

from faultline.checkers.linearizability.data_types import MODEL_FACTORIES, UNKNOWN
from faultline.checkers.linearizability.decision import Legality, illegal, legal
from faultline.checkers.linearizability.monitors import decision as deciding
from faultline.checkers.linearizability.monitors.decision import decide
from faultline.checkers.linearizability.monitors.queues import monitor_queue
from faultline.checkers.linearizability.monitors.sets import monitor_set
from faultline.checkers.linearizability.replay import replays
from faultline.checkers.porcupine import PENDING, UNLIMITED, Budget, Operation, check_operations
from faultline.harness.errors import HarnessError, UsageError


def op(f, value, answer, call, return_, client=0):
    return Operation(client, (f, value), call, answer, return_)


def enqueue(value, call, return_):
    return op("enqueue", value, None, call, return_)


def dequeue(answer, call, return_):
    return op("dequeue", None, answer, call, return_)


def push(value, call, return_):
    return op("push", value, None, call, return_)


def pop(answer, call, return_):
    return op("pop", None, answer, call, return_)


def lost(call, f="dequeue"):
    return op(f, None, UNKNOWN, call, PENDING)


def held(client, acquired, released):
    operations = [op("acquire", client, None, *acquired)]
    return operations if released is None else [*operations, op("release", client, None, *released)]


QUEUE = {
    "in order": [enqueue(1, 0, 1), enqueue(2, 2, 3), dequeue(1, 4, 5), dequeue(2, 6, 7)],
    "enqueues overlap": [enqueue(1, 0, 9), enqueue(2, 1, 8), dequeue(2, 10, 11), dequeue(1, 12, 13)],
    "dequeues overlap": [enqueue(1, 0, 1), enqueue(2, 2, 3), dequeue(2, 4, 7), dequeue(1, 5, 6)],
    "empty before": [dequeue(None, 0, 1), enqueue(1, 2, 3), dequeue(1, 4, 5), dequeue(None, 6, 7)],
    "empty between": [enqueue(1, 0, 1), dequeue(1, 2, 6), dequeue(None, 3, 9), enqueue(2, 4, 8)],
    "never confirmed but seen": [enqueue(1, 0, PENDING), dequeue(1, 5, 6)],
    "never confirmed, never seen": [enqueue(1, 0, PENDING), enqueue(2, 1, 2), dequeue(2, 3, 4), dequeue(None, 5, 6)],
    "taken by an unknown operation": [enqueue(1, 0, 1), enqueue(2, 2, 3), lost(4), dequeue(2, 5, 6)],
    "emptied by an unknown operation": [enqueue(1, 0, 1), lost(2), dequeue(None, 3, 4)],
    "values of any kind": [enqueue("a", 0, 1), enqueue((1, 2), 2, 3), dequeue("a", 4, 5), dequeue((1, 2), 6, 7)],
}
NO_QUEUE = {
    "out of order": [enqueue(1, 0, 1), enqueue(2, 2, 3), dequeue(2, 4, 5), dequeue(1, 6, 7)],
    "first one stayed": [enqueue(1, 0, 1), enqueue(2, 2, 3), dequeue(2, 4, 5)],
    "from nowhere": [enqueue(1, 0, 1), dequeue(2, 2, 3)],
    "twice": [enqueue(1, 0, 1), dequeue(1, 2, 3), dequeue(1, 4, 5)],
    "before it was put in": [dequeue(1, 0, 1), enqueue(1, 2, 3)],
    "empty while full": [enqueue(1, 0, 1), dequeue(None, 2, 3), dequeue(1, 4, 5)],
    "empty under a chain": [
        *(enqueue(1, 0, 1), enqueue(2, 3, 4), dequeue(1, 5, 6), enqueue(3, 7, 8), dequeue(2, 9, 10)),
        *(dequeue(None, 2, 11), dequeue(3, 12, 13)),
    ],
    "one lost dequeue cannot take two": [
        *(enqueue(1, 0, 1), enqueue(2, 2, 3), enqueue(3, 4, 5), lost(6), dequeue(3, 7, 8)),
    ],
    "a lost dequeue comes too late": [enqueue(1, 0, 1), enqueue(2, 2, 3), dequeue(2, 4, 5), lost(6)],
}
STACK = {
    "in order": [push(1, 0, 1), push(2, 2, 3), pop(2, 4, 5), pop(1, 6, 7)],
    "pushes overlap": [push(1, 0, 9), push(2, 1, 8), pop(1, 10, 11), pop(2, 12, 13)],
    "empty before and behind": [pop(None, 0, 1), push(1, 2, 3), pop(1, 4, 5), pop(None, 6, 7)],
    "what stays lies below": [push(1, 0, 1), push(2, 2, 3), pop(2, 4, 5)],
    "taken by an unknown operation": [push(1, 0, 1), push(2, 2, 3), lost(4, "pop"), pop(1, 5, 6)],
    "never confirmed, never seen": [push(1, 0, PENDING), push(2, 1, 2), pop(2, 3, 4), pop(None, 5, 6)],
    "all at once": [push(1, 0, 9), pop(1, 0, 9), push(2, 0, 9), pop(2, 0, 9), pop(None, 0, 9)],
}
NO_STACK = {
    "out of order": [push(1, 0, 1), push(2, 2, 3), pop(1, 4, 5), pop(2, 6, 7)],
    "popped from below": [push(1, 0, 1), push(2, 2, 3), pop(1, 4, 5)],
    "from nowhere": [pop(2, 2, 3)],
    "twice": [push(1, 0, 1), pop(1, 2, 3), pop(1, 4, 5)],
    "before it was pushed": [pop(1, 0, 1), push(1, 2, 3)],
    "empty while full": [push(1, 0, 1), pop(None, 2, 3), pop(1, 4, 5)],
    "crossed far apart": [push(1, 0, 1), push(2, 2, 3), push(3, 4, 5), pop(2, 6, 7), pop(3, 8, 9), pop(1, 10, 11)],
    "a lost pop comes too late": [push(1, 0, 1), push(2, 2, 3), pop(1, 4, 5), lost(6, "pop")],
}
SET = {
    "in and out": [op("add", 1, True, 0, 1), op("contains", 1, True, 2, 3), op("remove", 1, True, 4, 5)],
    "seen while it is added": [op("add", 1, True, 0, 9), op("contains", 1, True, 1, 2), op("contains", 1, False, 0, 3)],
    "told it was there": [op("add", 1, None, 0, 1), op("add", 1, False, 2, 3), op("remove", 2, False, 0, 9)],
    "never confirmed but seen": [op("add", 1, UNKNOWN, 0, PENDING), op("contains", 1, True, 5, 6)],
    "never confirmed, never seen": [op("add", 1, UNKNOWN, 0, PENDING), op("contains", 1, False, 5, 6)],
    "removed by an unknown operation": [
        op("add", 1, True, 0, 1), op("remove", 1, UNKNOWN, 2, PENDING), op("contains", 1, False, 5, 6),
    ],
    "added and removed again": [
        *(op("add", 1, True, 0, 1), op("remove", 1, True, 2, 3), op("add", 1, True, 4, 5)),
        op("contains", 1, True, 6, 7),
    ],
}  # fmt: skip
NO_SET = {
    "never added": [op("contains", 1, True, 2, 3)],
    "seen too early": [op("contains", 1, True, 0, 1), op("add", 1, True, 2, 3)],
    "seen too late": [op("add", 1, True, 0, 1), op("remove", 1, True, 2, 3), op("contains", 1, True, 4, 5)],
    "missed": [op("add", 1, True, 0, 1), op("contains", 1, False, 2, 3)],
    "missed between": [op("add", 1, True, 0, 1), op("contains", 1, False, 2, 3), op("remove", 1, True, 4, 5)],
    "missed before the lost remove": [
        op("add", 1, True, 0, 1), op("contains", 1, False, 2, 3), op("remove", 1, UNKNOWN, 4, PENDING),
    ],
    "added twice": [op("add", 1, True, 0, 1), op("add", 1, True, 2, 3)],
}  # fmt: skip
LOCK = {
    "one after the other": [*held(0, (0, 1), (2, 3)), *held(1, (4, 5), (6, 7))],
    "waiting": [*held(0, (0, 1), (4, 6)), *held(1, (2, 5), (7, 8))],
    "a crashed holder gave it back": [
        *(op("acquire", 0, None, 0, 1), op("release", 0, UNKNOWN, 2, PENDING)),
        *held(1, (3, 4), None),
    ],
    "a crashed acquire got nothing": [op("acquire", 0, UNKNOWN, 0, PENDING), *held(1, (3, 4), (5, 6))],
    "refused while it is held": [*held(0, (0, 1), (4, 6)), op("acquire", 1, False, 2, 3)],
}
NO_LOCK = {
    "two holders": [*held(0, (0, 1), (4, 5)), *held(1, (2, 3), (6, 7))],
    "never given back": [*held(0, (0, 1), None), *held(1, (2, 3), None)],
    "acquired twice": [op("acquire", 0, None, 0, 1), op("acquire", 0, None, 2, 3)],
    "released without": [op("release", 0, None, 0, 1)],
    "given back by another": [op("acquire", 0, None, 0, 1), op("release", 1, None, 2, 3)],
    "refused while it is free": [*held(0, (0, 1), (2, 3)), op("acquire", 1, False, 4, 5)],
}
COUNTER = {
    "counts": [op("add", 2, None, 0, 1), op("read", None, 2, 2, 3), op("add", 2, None, 4, 5)],
    "while it is added to": [op("add", 1, None, 0, 9), op("read", None, 1, 1, 2), op("read", None, 0, 0, 3)],
    "never confirmed but seen": [op("add", 1, UNKNOWN, 0, PENDING), op("read", None, 1, 5, 6)],
    "nothing is added": [op("add", 0, None, 0, 1), op("read", None, 0, 2, 3)],
    "downwards": [op("add", -3, None, 0, 1), op("read", None, -3, 2, 3)],
    "different amounts": [op("add", 5, None, 0, 9), op("add", 2, None, 0, 9), op("read", None, 2, 1, 8)],
}
NO_COUNTER = {
    "too much": [op("add", 1, None, 0, 1), op("read", None, 2, 2, 3)],
    "too little": [op("add", 1, None, 0, 1), op("read", None, 0, 2, 3)],
    "no multiple": [op("add", 2, None, 0, 9), op("add", 2, None, 0, 9), op("read", None, 3, 2, 3)],
    "backwards": [op("add", 1, None, 0, 9), op("read", None, 1, 1, 2), op("read", None, 0, 3, 4)],
    "no room": [
        *(op("add", 1, None, 0, 20), op("read", None, 0, 0, 2), op("add", 1, None, 3, 5), op("read", None, 1, 7, 9)),
        *(op("add", 1, None, 4, 6), op("read", None, 3, 30, 31)),
    ],
    "no subset": [op("add", 5, None, 0, 9), op("add", 2, None, 0, 9), op("read", None, 3, 1, 8)],
    "no number": [op("add", 1, None, 0, 1), op("read", None, "one", 2, 3)],
}
LEGAL = [("queue", QUEUE), ("stack", STACK), ("set", SET), ("lock", LOCK), ("counter", COUNTER)]
NOT_LEGAL = [("queue", NO_QUEUE), ("stack", NO_STACK), ("set", NO_SET), ("lock", NO_LOCK), ("counter", NO_COUNTER)]


def cases(groups):
    return [
        pytest.param(kind, history, id=f"{kind}: {name}") for kind, named in groups for name, history in named.items()
    ]


@pytest.mark.parametrize(("kind", "history"), cases(LEGAL))
def test_a_legal_history_is_accepted_with_an_order_that_holds(kind, history):
    found = decide(kind, history, UNLIMITED)
    assert found.legality is Legality.LEGAL, found.reason
    assert found.is_confirmed
    assert check_operations(MODEL_FACTORIES[kind].model(), history)


@pytest.mark.parametrize(("kind", "history"), cases(NOT_LEGAL))
def test_an_illegal_history_is_refused_with_a_core_that_the_port_refuses_alone(kind, history):
    found = decide(kind, history, UNLIMITED)
    assert found.legality is Legality.ILLEGAL
    assert found.is_confirmed
    assert found.reason
    assert not check_operations(MODEL_FACTORIES[kind].model(), [history[position] for position in found.core])


@pytest.mark.parametrize(
    ("kind", "history", "reason"),
    [
        ("queue", [enqueue(1, 0, 1), enqueue(1, 2, 3), dequeue(1, 4, 5), dequeue(1, 6, 7)], "put in twice"),
        ("queue", [enqueue([1], 0, 1), dequeue([1], 2, 3)], "cannot be hashed"),
        ("queue", [enqueue(1, 0, 1), op("dequeue", None, UNKNOWN, 2, 3)], "no known answer"),
        ("queue", [enqueue(1, 0, 1), dequeue(1, 2, PENDING)], "has an answer"),
        ("stack", [push(None, 0, 1)], "None is a value"),
        ("stack", [push(1, 0, 1), push(1, 2, 3), pop(1, 4, 5)], "put in twice"),
        ("set", [op("add", 1, True, 0, 1), op("read", None, frozenset([1]), 2, 3)], "whole set"),
        ("lock", LOCK["refused while it is held"], "refused"),
        ("lock", [op("acquire", 0, None, 0, 5), op("release", 0, None, 3, 6)], "two things at once"),
        ("counter", COUNTER["different amounts"], "different amounts"),
        ("counter", [op("add", 1, None, 0, 1), op("read", None, UNKNOWN, 2, 3)], "no known answer"),
        ("mutex", [op("acquire", None, None, 0, 1), op("release", None, None, 2, 3)], "no monitor for mutex"),
    ],
)
def test_what_a_monitor_cannot_decide_goes_to_another_engine_which_says_why(kind, history, reason):
    found = decide(kind, history, UNLIMITED)
    assert found.engine in (("slots", "zones") if kind in ("lock", "mutex") and found.is_legal else ("generic",))
    assert reason in found.handed_over
    assert (found.legality is Legality.LEGAL) == check_operations(MODEL_FACTORIES[kind].model(), history)


def test_a_search_that_is_handed_too_much_is_unknown_and_says_how_far_it_came():
    history = [op("add", 2**number, None, 0, 100) for number in range(12)] + [op("read", None, 1365, 1, 99)]
    history += [op("read", None, 2730, 1, 98)]
    found = decide("counter", history, Budget(50))
    assert (found.legality, found.engine, found.steps) == (Legality.UNKNOWN, "generic", 50)
    assert "different amounts" in found.handed_over


def test_one_hard_value_of_a_set_is_searched_and_the_others_are_not():
    history = [*SET["added and removed again"], *(op("add", value, True, 0, 1) for value in range(100, 400))]
    found = decide("set", history, Budget(20))
    assert (found.legality, found.engine) == (Legality.LEGAL, "monitor")
    assert monitor_set(history).legality is Legality.UNKNOWN


def test_clients_that_cannot_be_hashed_are_compared_one_by_one():
    history = [op("acquire", [7], None, 0, 1), op("release", [7], None, 2, 3), op("acquire", [8], False, 2, 3)]
    assert decide("lock", history, UNLIMITED).engine == "generic"
    assert decide("lock", history, UNLIMITED).legality is Legality.LEGAL


def test_the_core_of_an_overtaken_value_is_its_four_operations():
    history = [*(enqueue(value, 2 * value, 2 * value + 1) for value in range(50))]
    history += [dequeue(value, 200 + 2 * at, 201 + 2 * at) for at, value in enumerate([1, 0, *range(2, 50)])]
    found = monitor_queue(history)
    assert found.core == (0, 1, 50, 51)
    assert found.reason == "1 was enqueued after 0 and dequeued before it"


def test_deep_stacks_are_peeled_one_by_one_as_well_as_all_at_once():
    depth = 300
    history = [push(value, 2 * value, 2 * value + 1) for value in range(depth)]
    history += [pop(value, 4 * depth - 2 * value, 4 * depth - 2 * value + 1) for value in range(depth)]
    assert decide("stack", history, UNLIMITED).engine == "monitor"
    assert decide("stack", history, UNLIMITED).legality is Legality.LEGAL
    history[depth], history[depth + 1] = (
        pop(1, history[depth].call, history[depth].return_),
        pop(0, history[depth + 1].call, history[depth + 1].return_),
    )
    found = decide("stack", history, UNLIMITED)
    assert found.legality is Legality.ILLEGAL
    assert len(found.core) == 4


def test_a_data_type_that_does_not_exist_is_refused():
    with pytest.raises(UsageError, match="no data type called `heap`"):
        decide("heap", [], UNLIMITED)


def test_a_monitor_whose_order_does_not_hold_is_reported(monkeypatch):
    monkeypatch.setitem(deciding.MONITORS, "queue", lambda operations: legal([1, 0]))
    with pytest.raises(HarnessError, match="does not hold when it is replayed"):
        decide("queue", [enqueue(1, 0, 1), dequeue(1, 2, 3)], UNLIMITED)


def test_a_monitor_whose_core_is_legal_is_reported(monkeypatch):
    wrong = illegal([0], "wrong")
    monkeypatch.setitem(deciding.MONITORS, "queue", lambda operations: wrong)
    with pytest.raises(HarnessError, match="disagree"):
        decide("queue", [enqueue(1, 0, 1)], UNLIMITED)


def test_a_type_error_that_is_not_about_values_is_not_hidden(monkeypatch):
    def broken(operations):
        raise TypeError("a bug")

    monkeypatch.setitem(deciding.MONITORS, "queue", broken)
    with pytest.raises(TypeError, match="a bug"):
        decide("queue", [enqueue(1, 0, 1)], UNLIMITED)


@pytest.mark.parametrize(
    ("kind", "history", "order"),
    [
        ("queue", QUEUE["in order"], (0, 1, 3, 2)),
        ("queue", QUEUE["in order"], (0, 1, 2)),
        ("queue", QUEUE["enqueues overlap"], (0, 1, 2, 3)),
        ("stack", STACK["in order"], (0, 1, 3, 2)),
        ("stack", [push(1, 0, 1), push(2, 2, 3)], (1, 0)),
        ("set", SET["in and out"], (1, 0, 2)),
        ("lock", LOCK["one after the other"], (0, 2, 1, 3)),
        ("counter", COUNTER["counts"], (1, 0, 2)),
    ],
)
def test_a_replay_refuses_orders_that_prove_nothing(kind, history, order):
    assert not replays(kind, history, order)


def test_two_reads_of_a_counter_with_too_many_additions_between_them_are_told():
    adds = [Operation(0, ("add", 1), call, None, return_) for call, return_ in ((0, 20), (4, 5), (6, 7))]
    reads = [Operation(1, ("read", None), call, seen, return_) for seen, call, return_ in ((1, 2, 3), (2, 8, 9))]
    found = decide("counter", [*adds, *reads], UNLIMITED)
    assert found.is_illegal and found.is_confirmed
    assert found.reason == "2 additions began and ended between a read of 1 and a read of 2"
    assert found.certificate is not None and found.core == (0, 1, 2, 3, 4)
    assert decide("counter", [*adds[:2], *reads], UNLIMITED).is_legal
