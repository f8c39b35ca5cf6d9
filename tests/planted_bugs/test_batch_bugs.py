"""Bugs of request batches, each a subclass or a setting that breaks a claim its correct twin keeps.

No campaign shows these: clients of the systems here have one request in flight, so no order among a client's requests
can be lost and no answer can reach the wrong one. Those that a campaign does show (RB-M1, RB-M3, RB-M10) are planted in
consistent-core.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from communication_driver import BatchStory, outcome

from faultline.systems_under_test.patterns.data_replication.promise import Promise
from faultline.systems_under_test.patterns.node_communication.batch_queue import BatchLimits, BatchQueue
from faultline.systems_under_test.patterns.node_communication.request_batch import (
    BatchingClient,
    BatchReceiver,
    BatchResponse,
    NumberedRequest,
    NumberedResponse,
)

Bug = dict[str, Any]
Claim = Callable[..., None]
NUMBERS = [b"%d" % number for number in range(1, 9)]
LINGER_US = 5_000


# -- the claims -------------------------------------------------------------------------------------------------------


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


# -- the bugs ---------------------------------------------------------------------------------------------------------


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
