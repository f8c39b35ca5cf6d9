"""Receivers that answer later: in the order of requests, each over the connection that brought it last, once."""

from __future__ import annotations

import pytest

from faultline.systems_under_test.patterns.node_communication.deferred_answers import (
    DeferredBatchReceiver,
    DeferredSequencedReceiver,
)
from faultline.systems_under_test.patterns.node_communication.pipelined_sender import (
    SequencedRequest,
    SequencedResponse,
    SequenceRejected,
)
from faultline.systems_under_test.patterns.node_communication.request_batch import (
    BatchResponse,
    NumberedRequest,
    NumberedResponse,
    RequestBatch,
    RequestFailed,
)
from faultline.systems_under_test.patterns.promise import Promise

Answer = SequencedResponse | SequenceRejected


class Receiver:
    """A receiver whose work is done when the test says so; answers are kept by connection."""

    def __init__(self, saved_responses_max: int = 5) -> None:
        self.begun: list[bytes] = []
        self.work: dict[bytes, Promise[bytes]] = {}
        self.answers: dict[str, list[Answer]] = {}
        self.receiver = DeferredSequencedReceiver(self._begin, saved_responses_max)

    def _begin(self, request: SequencedRequest) -> Promise[bytes]:
        self.begun.append(request.command)
        promise = self.work[request.command] = Promise()
        return promise

    def take(self, sequence: int, *, over: str = "first", epoch: int = 1) -> None:
        request = SequencedRequest("athens", epoch, sequence, 1, b"%d.%d" % (epoch, sequence))
        self.receiver.take(request, self.answers.setdefault(over, []).append)

    def finish(self, *sequences: int, epoch: int = 1) -> None:
        for sequence in sequences:
            self.work[b"%d.%d" % (epoch, sequence)].complete(b"did %d" % sequence)


def did(sequence: int, epoch: int = 1) -> SequencedResponse:
    return SequencedResponse(epoch, sequence, b"did %d" % sequence)


@pytest.mark.rows("RP-I2", "RP-R7")
def test_answers_leave_in_the_order_of_requests_whatever_is_done_first() -> None:
    story = Receiver()
    for sequence in (1, 2, 3):
        story.take(sequence)
    story.finish(3, 2)
    assert story.answers["first"] == []
    story.finish(1)
    assert story.answers["first"] == [did(1), did(2), did(3)]


@pytest.mark.rows("RP-I3", "RP-S8")
def test_a_repetition_over_a_new_connection_is_answered_there_and_executed_once() -> None:
    story = Receiver()
    story.take(1)
    story.take(2)
    story.take(1, over="second")
    story.take(2, over="second")
    story.finish(2, 1)
    assert story.begun == [b"1.1", b"1.2"]
    assert story.answers == {"first": [], "second": [did(1), did(2)]}


@pytest.mark.rows("RP-R16")
def test_what_was_answered_over_a_lost_connection_is_answered_again() -> None:
    story = Receiver()
    story.take(1)
    story.finish(1)
    story.take(1, over="second")
    assert story.begun == [b"1.1"]
    assert story.answers["second"] == [did(1)]


@pytest.mark.rows("RP-R13")
def test_a_gap_is_rejected_at_once_though_the_request_before_it_is_not_done() -> None:
    story = Receiver()
    story.take(1)
    story.take(3)
    assert story.answers["first"] == [SequenceRejected(1, 1, 2)]
    assert story.begun == [b"1.1"]


def test_work_of_an_epoch_that_is_over_answers_nothing_and_holds_up_nothing() -> None:
    story = Receiver()
    story.take(1)
    story.take(2)
    story.take(1, epoch=2)
    story.finish(1, 2)
    assert story.answers["first"] == []
    story.finish(1, epoch=2)
    assert story.answers["first"] == [did(1, epoch=2)]


@pytest.mark.rows("RB-I1", "RB-R8")
def test_a_batch_is_answered_when_all_is_done_by_number_and_a_failure_fails_alone() -> None:
    work: dict[bytes, Promise[bytes]] = {}

    def begin(command: bytes) -> Promise[bytes]:
        return work.setdefault(command, Promise())

    requests = [NumberedRequest(number, b"%d" % number) for number in (7, 8, 9)]
    answered = DeferredBatchReceiver(begin).process(RequestBatch(1, requests))
    work[b"9"].complete(b"nine")
    work[b"8"].fail(RequestFailed("bad-request"))
    assert not answered.done
    work[b"7"].complete(b"seven")
    assert answered.result() == BatchResponse(
        1,
        [NumberedResponse(7, None, b"seven"), NumberedResponse(8, "bad-request"), NumberedResponse(9, None, b"nine")],
    )
