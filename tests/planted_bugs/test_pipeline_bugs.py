"""Bugs of request pipelines, each a subclass or a setting that breaks a claim its correct twin keeps.

No campaign shows these: clients of the systems here have one request in flight, and among servers the log refuses what
does not follow. Those that a campaign does show (RP-M1, RP-M4) are planted in consistent-core.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
from communication_driver import SERVICE_US, TRIP_US, PipelineStory, outcome

from faultline.systems_under_test.patterns.node_communication.pipelined_sender import (
    PipelinedSender,
    SequencedReceiver,
    SequencedRequest,
    SequencedResponse,
)
from faultline.systems_under_test.patterns.node_communication.request_pipeline import Arrival, RequestPipeline

Bug = dict[str, Any]
Claim = Callable[..., None]
NUMBERS = [b"%d" % number for number in range(1, 9)]


# -- the claims -------------------------------------------------------------------------------------------------------


def a_lost_request_is_not_overtaken(**bug: Any) -> None:
    story = PipelineStory(**bug)
    story.lose = lambda request: request.attempt == 1
    promises = story.send(b"x=1", b"x=2")
    story.time.pass_time(20 * TRIP_US)
    assert story.executed == [b"x=1", b"x=2"]
    assert [outcome(promise) for promise in promises] == [b"did x=1", b"did x=2"]


def the_receiver_never_holds_more_than_five_unanswered(**bug: Any) -> None:
    story = PipelineStory(**bug)
    story.holds_responses = True
    story.send(*NUMBERS)
    story.time.pass_time(20 * TRIP_US)
    assert story.unanswered_max <= 5


def an_answer_out_of_order_reaches_no_wrong_caller(**bug: Any) -> None:
    story = PipelineStory(**bug)
    story.holds_responses = True
    first, _ = story.send(b"one", b"two")
    story.time.pass_time(TRIP_US + 2 * SERVICE_US)
    story.sender.receive(*story.held[1])
    assert outcome(first) in (None, b"did one")


def an_event_touches_no_place(**bug: Any) -> None:
    story = PipelineStory(**bug)
    story.holds_responses = True
    story.send(*NUMBERS[:5])
    story.sender.receive(story.connection, {"watch": "servers/1"})
    assert (story.sender.in_flight, story.hang_ups) == (5, 0)


def requests_overlap(**bug: Any) -> None:
    story = PipelineStory(**bug)
    story.send(*NUMBERS[:5])
    story.time.pass_time(2 * TRIP_US + 5 * SERVICE_US)
    assert len(story.executed) == 5


def a_break_after_execution_gives_each_one_effect_and_its_answer(**bug: Any) -> None:
    story = PipelineStory(**bug)
    story.holds_responses = True
    promises = story.send(*NUMBERS[:5])
    story.time.pass_time(TRIP_US + 5 * SERVICE_US)
    story.disconnect()
    story.held.clear()
    story.holds_responses = False
    story.connect()
    story.time.pass_time(20 * TRIP_US)
    assert story.executed == NUMBERS[:5]
    assert [outcome(promise) for promise in promises] == [b"did " + command for command in NUMBERS[:5]]


def numbers_are_equal_by_value(pipeline_type: type[RequestPipeline] = RequestPipeline) -> None:
    pipeline = pipeline_type()
    for number in (1, 256, 257, 2**31):
        pipeline.sent("byzantium", int(str(number)))
        assert pipeline.received("byzantium", int(str(number)))


# -- the bugs ---------------------------------------------------------------------------------------------------------


class NoOrderCheck(SequencedReceiver):
    def _judge(self, request: SequencedRequest) -> Arrival:
        return Arrival.NEXT


class DuplicateTakenForGap(SequencedReceiver):
    def _judge(self, request: SequencedRequest) -> Arrival:
        arrival = super()._judge(request)
        return Arrival.GAP if arrival is Arrival.DUPLICATE else arrival


class GapTakenForDuplicate(SequencedReceiver):
    def receive(self, request: SequencedRequest) -> Any:
        if request.sequence > self._guard.expected(request.sender):
            return SequencedResponse(request.epoch, request.sequence, b"did " + request.command)
        return super().receive(request)


class RetriesTheFailedOneOnly(PipelinedSender):
    def _go_back(self, expected: int) -> None:
        request = next(request for request in self._in_flight if request.sequence == expected)
        self._went_back_at = self._attempt + 1
        self._attempt += 1
        self._transmit(SequencedRequest(self._name, self.epoch, expected, self._attempt, request.command))


class FreedOnSend(RequestPipeline):
    def _is_full(self, ids: deque[int]) -> bool:
        return False


class PlacesFreedOnSend(PipelinedSender):
    def _new_pipeline(self, in_flight_max: int) -> RequestPipeline:
        return FreedOnSend(in_flight_max)


class MatchedByPosition(PipelinedSender):
    def _handle_response(self, response: SequencedResponse) -> None:
        request = self._in_flight.popleft()
        self._pipeline.received(self._name, request.sequence)
        request.promise.complete(response.result)


class EventsAreAnswers(PipelinedSender):
    def _handle_event(self, event: Any) -> None:
        self._hang_up()
        self.disconnected(self._connection)


class ComparedByReference(RequestPipeline):
    def received(self, peer: str, correlation_id: int, now_us: int = 0) -> bool:
        flight = self._flights[peer]
        return flight.ids[0] is correlation_id and super().received(peer, correlation_id, now_us)


@pytest.mark.parametrize(
    ("claim", "bug"),
    [
        pytest.param(a_lost_request_is_not_overtaken, {"receiver_type": NoOrderCheck}, marks=pytest.mark.rows("RP-M2")),
        pytest.param(
            a_lost_request_is_not_overtaken, {"sender_type": RetriesTheFailedOneOnly}, marks=pytest.mark.rows("RP-M3")
        ),
        pytest.param(
            the_receiver_never_holds_more_than_five_unanswered,
            {"sender_type": PlacesFreedOnSend},
            marks=pytest.mark.rows("RP-M5"),
        ),
        pytest.param(
            an_answer_out_of_order_reaches_no_wrong_caller,
            {"sender_type": MatchedByPosition},
            marks=pytest.mark.rows("RP-M6"),
        ),
        pytest.param(an_event_touches_no_place, {"sender_type": EventsAreAnswers}, marks=pytest.mark.rows("RP-M7")),
        pytest.param(requests_overlap, {"in_flight_max": 1}, marks=pytest.mark.rows("RP-M8")),
        pytest.param(
            a_break_after_execution_gives_each_one_effect_and_its_answer,
            {"saved_responses_max": 3},
            marks=pytest.mark.rows("RP-M9"),
        ),
        pytest.param(
            a_break_after_execution_gives_each_one_effect_and_its_answer,
            {"receiver_type": DuplicateTakenForGap},
            marks=pytest.mark.rows("RP-M10"),
        ),
        pytest.param(
            a_lost_request_is_not_overtaken, {"receiver_type": GapTakenForDuplicate}, marks=pytest.mark.rows("RP-M10")
        ),
        pytest.param(
            numbers_are_equal_by_value, {"pipeline_type": ComparedByReference}, marks=pytest.mark.rows("RP-M11")
        ),
    ],
)
def test_a_pipeline_bug_breaks_the_claim_that_the_correct_pipeline_keeps(claim: Claim, bug: Bug) -> None:
    claim()
    with pytest.raises(AssertionError):
        claim(**bug)
