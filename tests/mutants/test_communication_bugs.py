"""Bugs of channels, batches and pipelines, each a subclass or a setting that breaks a claim its correct twin keeps.

No campaign shows these. Clients of the systems here have one request in flight, so no order among a client's requests
can be lost and no answer can reach the wrong one of them; connections belong to the transport, which no system
replaces; and consistent-core's log refuses what does not follow, whatever a channel does to its messages. Those that a
campaign does show (RB-M1, RB-M3, RB-M10, RP-M1, RP-M4) are planted in consistent-core.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
from communication_driver import SERVICE_US, TRIP_US, BatchStory, ByteWire, ChannelStory, PipelineStory, outcome

from faultline.harness.world.framing import FrameDecoder, encode_frame
from faultline.systems_under_test.patterns.data_replication.promise import Promise
from faultline.systems_under_test.patterns.node_communication.batch_queue import BatchLimits, BatchQueue
from faultline.systems_under_test.patterns.node_communication.pipelined_sender import (
    PipelinedSender,
    SequencedReceiver,
    SequencedRequest,
    SequencedResponse,
)
from faultline.systems_under_test.patterns.node_communication.request_batch import (
    BatchingClient,
    BatchReceiver,
    BatchResponse,
    NumberedRequest,
    NumberedResponse,
)
from faultline.systems_under_test.patterns.node_communication.request_pipeline import Arrival, RequestPipeline
from faultline.systems_under_test.patterns.node_communication.socket_channel import (
    HEARTBEAT_INTERVAL_US,
    SingleSocketChannel,
)
from faultline.systems_under_test.patterns.node_communication.socket_listener import SocketListener

Bug = dict[str, Any]
Claim = Callable[..., None]
NUMBERS = [b"%d" % number for number in range(1, 9)]
READ_TIMEOUT_US = 10 * HEARTBEAT_INTERVAL_US
LINGER_US = 5_000


# -- single socket channel: the claims --------------------------------------------------------------------------------


def messages_arrive_in_order_over_one_connection(connections: int = 1) -> None:
    story = ChannelStory().connect()
    wires = [story.network.connections[0][1]]
    for extra in range(1, connections):
        number = story.listener.accepted(wires[0])
        wire = ByteWire(story.network, lambda data, number=number: story.listener.data_received(number, data), int)
        wire._arrives_us = 4_000 * extra
        wire.write(encode_frame(b"athens-%d" % extra))
        wires.append(wire)
    for position, request in enumerate(NUMBERS):
        wires[position % connections].write(encode_frame(b"no answer " + request))
        story.time.pass_time(300)
    story.time.pass_time(50_000)
    assert story.handled == [b"no answer " + request for request in NUMBERS]
    assert story.listener.accepted_total == 1


def a_silent_death_is_noticed_within_the_read_timeout(**bug: Any) -> None:
    story = ChannelStory(**bug).connect()
    story.network.is_mute = True
    call = story.channel.blocking_send(b"one")
    story.time.pass_time(READ_TIMEOUT_US + 2 * HEARTBEAT_INTERVAL_US)
    assert call.done
    assert not story.channel.is_open


def an_idle_link_keeps_its_connection(**bug: Any) -> None:
    story = ChannelStory(**bug).connect()
    story.time.pass_time(5 * READ_TIMEOUT_US)
    assert story.listener.accepted_total == 1
    assert story.channel_errors == []


def a_late_answer_reaches_nobody_else(**bug: Any) -> None:
    story = ChannelStory(service_us=READ_TIMEOUT_US + 200_000, **bug).connect()
    story.channel.blocking_send(b"one")
    story.time.pass_time(READ_TIMEOUT_US + 50_000)
    second = story.channel.blocking_send(b"two")
    story.time.pass_time(2 * READ_TIMEOUT_US)
    assert outcome(second) in (b"did two", "ReadTimeout")


def each_caller_gets_its_own_answer(**bug: Any) -> None:
    story = ChannelStory(service_us=1_000, **bug).connect()
    calls = [story.channel.blocking_send(request) for request in NUMBERS]
    story.time.pass_time(READ_TIMEOUT_US // 2)
    assert [outcome(call) for call in calls] == [b"did " + request for request in NUMBERS]


def requests_of_an_old_connection_are_not_handled_after_those_of_a_new_one(**bug: Any) -> None:
    story = ChannelStory(piece_bytes=4, **bug).connect()
    story.time.pass_time(5_000)
    story.network.piece_us = 20_000
    for request in (b"3", b"4"):
        story.channel.send_one_way(request)
    story.network.piece_us = 0
    story.network.reset(leaves_old_bytes=True)
    story.time.pass_time(15_000)
    story.channel.send_one_way(b"5")
    story.time.pass_time(200_000)
    assert story.handled == sorted(story.handled)
    assert story.handled[-1] == b"5"


def requests_are_handled_in_the_order_they_were_received(**bug: Any) -> None:
    story = ChannelStory(**bug).connect()
    for request in (b"long " * 50, b"short"):
        story.channel.send_one_way(request)
    story.time.pass_time(50_000)
    assert story.handled == [b"long " * 50, b"short"]


def requests_that_come_in_pieces_are_handled_whole(**bug: Any) -> None:
    story = ChannelStory(piece_bytes=5, **bug).connect()
    story.channel.send_one_way(b"a request of more than five bytes")
    story.time.pass_time(50_000)
    assert story.handled == [b"a request of more than five bytes"]


# -- single socket channel: the bugs ----------------------------------------------------------------------------------


class NoReadTimeout(SingleSocketChannel):
    def _has_timed_out(self, now_us: int) -> bool:
        return False

    def _call_is_over(self, call: Any) -> None:
        pass


class ReuseAfterTimeout(SingleSocketChannel):
    def _after_unanswered_call(self) -> None:
        self._next_call()


class NotExclusive(SingleSocketChannel):
    def _is_busy(self) -> bool:
        return False


class OldAndNewTogether(SocketListener):
    def _end_older(self, connection: int, peer: str) -> None:
        pass


class WorkerPool(SocketListener):
    def _submit(self, connection: int, peer: str, payload: bytes) -> None:
        self._timers.after(10 * len(payload), lambda: self._handle((connection, peer, payload)))


class EveryReadIsAMessage(FrameDecoder):
    def feed(self, data: bytes) -> list[bytes]:
        return [data]


class ShortReads(SocketListener):
    def _new_decoder(self) -> FrameDecoder:
        return EveryReadIsAMessage()


@pytest.mark.parametrize(
    ("claim", "bug"),
    [
        pytest.param(
            messages_arrive_in_order_over_one_connection, {"connections": 3}, marks=pytest.mark.rows("SC-M1", "SC-I1")
        ),
        pytest.param(
            a_silent_death_is_noticed_within_the_read_timeout,
            {"channel_type": NoReadTimeout},
            marks=pytest.mark.rows("SC-M2"),
        ),
        pytest.param(
            an_idle_link_keeps_its_connection, {"read_timeout_heartbeats": 1}, marks=pytest.mark.rows("SC-M3")
        ),
        pytest.param(
            a_late_answer_reaches_nobody_else, {"channel_type": ReuseAfterTimeout}, marks=pytest.mark.rows("SC-M4")
        ),
        pytest.param(each_caller_gets_its_own_answer, {"channel_type": NotExclusive}, marks=pytest.mark.rows("SC-M5")),
        pytest.param(
            requests_of_an_old_connection_are_not_handled_after_those_of_a_new_one,
            {"listener_type": OldAndNewTogether},
            marks=pytest.mark.rows("SC-M6"),
        ),
        pytest.param(
            requests_are_handled_in_the_order_they_were_received,
            {"listener_type": WorkerPool},
            marks=pytest.mark.rows("SC-M7"),
        ),
        pytest.param(
            requests_that_come_in_pieces_are_handled_whole,
            {"listener_type": ShortReads},
            marks=pytest.mark.rows("SC-M8"),
        ),
    ],
)
def test_a_channel_bug_breaks_the_claim_that_the_correct_channel_keeps(claim: Claim, bug: Bug) -> None:
    claim()
    with pytest.raises(AssertionError):
        claim(**bug)


# -- request batch: the claims ----------------------------------------------------------------------------------------


def requests_within_the_linger_leave_together_when_it_is_over(**bug: Any) -> None:
    story = BatchStory(BatchLimits(linger_us=LINGER_US), **bug)
    story.send(*NUMBERS)
    story.time.pass_time(LINGER_US)
    assert story.batches() == [NUMBERS]


def an_answer_that_overtakes_send_completes_its_future(**bug: Any) -> None:
    story = BatchStory(**bug)
    story.client._transmit = lambda batch: story.client.handle_response(story.server.receiver.process(1, batch))
    promise = story.client.send(b"+")
    assert promise.done and story.client.unknown_responses == 0


def every_future_completes_with_its_own_answer(**bug: Any) -> None:
    story = BatchStory(BatchLimits(linger_us=LINGER_US), **bug)
    story.send(*NUMBERS)
    story.time.pass_time(100_000)
    assert [outcome(promise) for promise in story.promises] == NUMBERS
    assert story.client.pending == 0


def a_batch_sent_again_has_one_effect_and_the_same_answers(**bug: Any) -> None:
    story = BatchStory(BatchLimits(linger_us=LINGER_US), response_timeout_us=50_000, **bug)
    story.lose_responses = lambda attempt: attempt == 1
    story.send(*NUMBERS)
    story.time.pass_time(200_000)
    assert story.server.executed == NUMBERS
    assert [outcome(promise) for promise in story.promises] == NUMBERS


def one_bad_request_harms_no_other(**bug: Any) -> None:
    story = BatchStory(BatchLimits(linger_us=LINGER_US), **bug)
    story.send(b"+", b"bad", b"+")
    story.time.pass_time(100_000)
    assert [outcome(promise) for promise in story.promises] == [b"1", "bad-request", b"2"]


def a_lost_batch_leaves_no_future_open(**bug: Any) -> None:
    story = BatchStory(attempts_max=1, **bug)
    story.refused_connections = 1
    story.send(b"+")
    story.time.pass_time(100_000)
    assert all(promise.done for promise in story.promises)
    assert story.client.pending == 0


def requests_are_executed_in_the_order_they_were_queued(**bug: Any) -> None:
    story = BatchStory(BatchLimits(linger_us=LINGER_US), **bug)
    story.send(*NUMBERS)
    story.time.pass_time(100_000)
    assert story.server.executed == NUMBERS


# -- request batch: the bugs ------------------------------------------------------------------------------------------


class WithQueue(BatchingClient):
    queue_type: type[BatchQueue[NumberedRequest]] = BatchQueue

    def _new_queue(self, clock: Any, timers: Any, limits: BatchLimits, link_is_free: Any) -> BatchQueue[Any]:
        return self.queue_type(clock, timers, limits, self._send_batch, link_is_free=link_is_free)


class NanosecondsTakenForMilliseconds(BatchQueue[Any]):
    """The queue's clock counts in a unit a million times finer than its limit: everything is overdue at once."""

    def _has_lingered(self) -> bool:
        return (self._clock.monotonic_us() - self._queue[0].queued_us + 1) * 1_000_000 >= self._limits.linger_us


class MillisecondsTakenForNanoseconds(BatchQueue[Any]):
    def _has_lingered(self) -> bool:
        return (self._clock.monotonic_us() - self._queue[0].queued_us) // 1_000_000 >= self._limits.linger_us

    def _arm(self) -> None:
        pass


class StackInsteadOfQueue(BatchQueue[Any]):
    def _take(self) -> list[Any]:
        return super()._take()[::-1]


class AlwaysOverdue(WithQueue):
    queue_type = NanosecondsTakenForMilliseconds


class NeverDue(WithQueue):
    queue_type = MillisecondsTakenForNanoseconds


class LastInFirstOut(WithQueue):
    queue_type = StackInsteadOfQueue


class RegisteredAfterEnqueue(BatchingClient):
    def send(self, command: bytes) -> Promise[bytes]:
        request = NumberedRequest(self._next_request_number(), command)
        self._queue.add(request, len(command))
        promise: Promise[bytes] = Promise()
        self._pending[request.number] = promise
        return promise


class NumberReadTwice(BatchingClient):
    """Two callers read the counter before either has written it."""

    calls = 0

    def _next_request_number(self) -> int:
        self.calls += 1
        return super()._next_request_number() if self.calls % 2 else self._request_number


class NoDuplicateDetection(BatchReceiver):
    def _respond(self, client_id: int, request: NumberedRequest) -> NumberedResponse:
        return self._perform(request)


class FirstErrorEndsTheBatch(BatchReceiver):
    def process(self, client_id: int, batch: Any) -> BatchResponse:
        responses: list[NumberedResponse] = []
        for request in batch.requests:
            responses.append(self._respond(client_id, request))
            if responses[-1].error is not None:
                break
        return BatchResponse(batch.number, responses)


class FailureLeavesFutures(BatchingClient):
    def _fail_requests(self, batch: Any, error: Exception) -> None:
        pass


@pytest.mark.parametrize(
    ("claim", "bug"),
    [
        pytest.param(
            requests_within_the_linger_leave_together_when_it_is_over,
            {"client_type": AlwaysOverdue},
            marks=pytest.mark.rows("RB-M2"),
        ),
        pytest.param(
            requests_within_the_linger_leave_together_when_it_is_over,
            {"client_type": NeverDue},
            marks=pytest.mark.rows("RB-M2"),
        ),
        pytest.param(
            an_answer_that_overtakes_send_completes_its_future,
            {"client_type": RegisteredAfterEnqueue},
            marks=pytest.mark.rows("RB-M4"),
        ),
        pytest.param(
            every_future_completes_with_its_own_answer,
            {"client_type": NumberReadTwice},
            marks=pytest.mark.rows("RB-M5", "RB-I1"),
        ),
        pytest.param(
            a_batch_sent_again_has_one_effect_and_the_same_answers,
            {"receiver_type": NoDuplicateDetection},
            marks=pytest.mark.rows("RB-M6", "RB-I5"),
        ),
        pytest.param(
            one_bad_request_harms_no_other, {"receiver_type": FirstErrorEndsTheBatch}, marks=pytest.mark.rows("RB-M7")
        ),
        pytest.param(
            a_lost_batch_leaves_no_future_open,
            {"client_type": FailureLeavesFutures},
            marks=pytest.mark.rows("RB-M8", "RB-I4"),
        ),
        pytest.param(
            requests_are_executed_in_the_order_they_were_queued,
            {"client_type": LastInFirstOut},
            marks=pytest.mark.rows("RB-M9"),
        ),
        pytest.param(
            a_batch_sent_again_has_one_effect_and_the_same_answers,
            {"saved_responses_max": 5},
            marks=pytest.mark.rows("RB-M11"),
        ),
    ],
)
def test_a_batch_bug_breaks_the_claim_that_the_correct_batch_keeps(claim: Claim, bug: Bug) -> None:
    claim()
    with pytest.raises(AssertionError):
        claim(**bug)


# -- request pipeline: the claims -------------------------------------------------------------------------------------


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


# -- request pipeline: the bugs ---------------------------------------------------------------------------------------


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
