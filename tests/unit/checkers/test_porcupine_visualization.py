"""The data of a verbose check, for programs that draw it."""

from __future__ import annotations

import json

import pytest

from faultline.checkers.porcupine import (
    PENDING,
    Annotation,
    Model,
    Operation,
    check_operations_verbose,
    visualization_data,
)
from faultline.checkers.porcupine.visualization import plain

Register = Model(
    init=lambda: 0,
    step=lambda state, given, answer: (True, given[1]) if given[0] == "put" else (answer == state, state),
    describe_operation=lambda given, answer: f"put {given[1]}" if given[0] == "put" else f"get {answer}",
    describe_state=lambda state: f"={state}",
)
ILLEGAL = [
    Operation(0, ("put", 200), 0, None, 100),
    Operation(1, ("get", None), 10, 200, 30),
    Operation(2, ("get", None), 40, 0, 90),
]


def data_of(history, *annotations, model=Register):
    _, information = check_operations_verbose(model, history)
    information.add_annotations(annotations)
    return visualization_data(model, information)


def test_operations_are_told_with_client_times_and_words():
    (part,) = data_of(ILLEGAL).partitions
    assert [(e.client_id, e.start, e.end, e.description) for e in part.history] == [
        (0, 0, 100, "put 200"),
        (1, 10, 30, "get 200"),
        (2, 40, 90, "get 0"),
    ]
    assert part.lanes == (0, 1, 2)


def test_each_step_of_a_linearization_tells_the_state_after_it():
    (part,) = data_of(ILLEGAL).partitions
    assert [[(step.index, step.state) for step in order] for order in part.partial_linearizations] == [
        [(0, "=200"), (1, "=200")]
    ]


def test_largest_names_the_longest_linearization_of_each_operation_and_leaves_out_what_is_in_none():
    (part,) = data_of(ILLEGAL).partitions
    assert part.largest == {0: 0, 1: 0}
    assert part.unplaced == (2,)


def test_longer_linearizations_come_first():
    history = [
        Operation(0, ("put", 1), 0, None, 10),
        Operation(1, ("put", 2), 0, None, 10),
        Operation(2, ("get", None), 11, 1, 12),
        Operation(3, ("get", None), 13, 2, 14),
    ]
    (part,) = data_of(history).partitions
    sizes = [len(order) for order in part.partial_linearizations]
    assert sizes == sorted(sizes, reverse=True)
    assert all(any(step.index == at for step in part.partial_linearizations[n]) for at, n in part.largest.items())


def test_a_pending_operation_has_no_end_and_is_never_called_unplaced():
    (part,) = data_of([*ILLEGAL[:2], Operation(3, ("get", None), 5, 77, PENDING)]).partitions
    assert part.history[2].end is None
    assert part.unplaced == ()


def test_annotations_are_kept_and_an_end_before_the_start_is_a_point():
    notes = (Annotation(5, "cut", tag="nemesis", text_color="#fff"), Annotation(9, "odd", end=3, client_id=1))
    first, second = data_of(ILLEGAL, *notes).annotations
    assert (first.start, first.end, first.tag, first.text_color, first.client_id) == (5, 5, "nemesis", "#fff", None)
    assert (second.start, second.end, second.client_id) == (9, 9, 1)


def test_every_part_has_its_own_data():
    by_client = Model(
        init=Register.init,
        step=Register.step,
        partition=lambda history: [[o for o in history if o.client_id < 2], [o for o in history if o.client_id >= 2]],
    )
    first, second = data_of(ILLEGAL, model=by_client).partitions
    assert (len(first.history), len(second.history)) == (2, 1)
    assert (first.unplaced, second.unplaced) == ((), ())


def test_plain_data_is_json():
    built = plain(data_of(ILLEGAL, Annotation(1, "note", tag="x")))
    assert json.loads(json.dumps(built)) == built
    assert built["partitions"][0]["largest"] == {"0": 0, "1": 0}


def test_a_linearization_of_another_model_is_refused():
    _, information = check_operations_verbose(Register, ILLEGAL[:2])
    never = Model(init=lambda: 0, step=lambda state, given, answer: (False, state))
    with pytest.raises(ValueError, match="operation 0 is not legal"):
        visualization_data(never, information)


def test_a_deadline_ends_the_search_soon_even_when_a_step_takes_long():
    steps = []

    class Clock:
        now = 0.0

        def monotonic(self):
            return self.now

    clock = Clock()

    def slow(state, given, answer):
        steps.append(given)
        clock.now += 1.0
        return Register.step(state, given, answer)

    hard = [Operation(client, ("put", client), 0, None, 100) for client in range(9)]
    hard.append(Operation(9, ("get", None), 101, 99, 102))
    model = Model(init=Register.init, step=slow)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("faultline.checkers.porcupine.budget.time", clock)
        result, _ = check_operations_verbose(model, hard, timeout_s=10.0)
    assert result == "Unknown"
    assert len(steps) <= 128
