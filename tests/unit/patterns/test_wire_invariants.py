"""Each invariant of the wire says no to what it is about, and accepts its twin."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.harness.invariant import Breach
from faultline.systems_under_test.reference.consistent_core.wire_events import BatchExecuted, CallAnswered
from faultline.systems_under_test.reference.consistent_core.wire_invariants import (
    AnswersReachTheirCallers,
    RequestsAreExecutedInOrder,
)
from faultline.systems_under_test.reference.shared.trace_events import NodeStarted


def breaches(invariant: Any, *events: Any) -> list[str]:
    found: list[Breach] = []
    for time_us, event in enumerate(events):
        assert isinstance(event, invariant.events)
        invariant.observe(time_us, "byzantium", event, found.append)
    return [breach.sentence for breach in found]


@pytest.mark.rows("SC-I3")
def test_an_answer_to_another_call_is_a_breach() -> None:
    assert breaches(AnswersReachTheirCallers(), CallAnswered("athens", "c 1", "c 1")) == []
    assert breaches(AnswersReachTheirCallers(), CallAnswered("athens", "c 1", "d 2")) == [
        "byzantium was given athens's answer to request d 2 for request c 1."
    ]


def executed(*sequences: int, epoch: int = 1) -> list[BatchExecuted]:
    return [BatchExecuted("athens-7", epoch, sequence) for sequence in sequences]


@pytest.mark.rows("RP-I3")
@pytest.mark.parametrize(("sequences", "last"), [((1, 3), 1), ((1, 1), 1), ((2,), 0)])
def test_a_gap_and_a_repetition_are_breaches(sequences: tuple[int, ...], last: int) -> None:
    assert breaches(RequestsAreExecutedInOrder(), *executed(*sequences)) == [
        f"byzantium executed request {sequences[-1]} of athens-7 after request {last}."
    ]


@pytest.mark.rows("RP-I3")
def test_an_epoch_and_a_receiver_that_restarts_begin_with_one_again() -> None:
    story = [*executed(1, 2), *executed(1, epoch=2), NodeStarted(1, 0), *executed(1)]
    assert breaches(RequestsAreExecutedInOrder(), *story) == []
