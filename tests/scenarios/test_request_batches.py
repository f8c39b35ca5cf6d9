"""Stories about request batches: RB-S*, told on virtual time with the sample's link of 100 µs a message."""

from __future__ import annotations

import pytest
from communication_driver import MESSAGE_US, BatchStory, outcome

from faultline.systems_under_test.patterns.node_communication.batch_queue import (
    BATCH_SIZE_BYTES,
    BatchLimits,
    BatchQueueClosed,
    BatchQueueFull,
    OversizeRequest,
    WhenFull,
)
from faultline.systems_under_test.patterns.node_communication.request_batch import (
    _SERIALIZE,
    BatchFailed,
    BatchResponse,
    NumberedRequest,
    NumberedResponse,
    RequestFailed,
    saved_responses_min,
)

LINGER_US = 5_000
PLUS_BYTES = len(_SERIALIZE.encode(NumberedRequest(1, b"+")))


def lingering(**limits: int | WhenFull) -> BatchLimits:
    return BatchLimits(linger_us=LINGER_US, **limits)


@pytest.mark.rows("RB-R1", "RB-R3", "RB-R5", "RB-S1")
def test_one_byte_too_many_sends_one_full_batch_at_once_and_the_rest_waits_for_the_next() -> None:
    story = BatchStory(lingering(size_bytes_max=4 * PLUS_BYTES))
    story.send(*[b"+"] * 4)
    assert story.sent == []
    story.send(b"-")
    assert story.batches() == [[b"+"] * 4]
    assert story.sent[0][0] == 0
    story.time.pass_time(LINGER_US + 2 * MESSAGE_US)
    assert story.batches() == [[b"+"] * 4, [b"-"]]
    assert [outcome(promise) for promise in story.promises] == [b"1", b"2", b"3", b"4", b"5"]


@pytest.mark.rows("RB-R3", "RB-R7", "RB-S2")
def test_a_single_small_request_is_sent_when_its_linger_is_over_and_not_before() -> None:
    story = BatchStory(lingering())
    story.time.pass_time(700)
    story.send(b"+")
    story.time.pass_time(LINGER_US - 1)
    assert story.sent == []
    story.time.pass_time(1)
    assert [time_us for time_us, _ in story.sent] == [700 + LINGER_US]


@pytest.mark.rows("RB-R3")
def test_an_empty_queue_sends_nothing_however_long_it_is_watched() -> None:
    story = BatchStory(lingering())
    story.time.pass_time(100 * LINGER_US)
    story.client.link_freed()
    assert story.sent == []


@pytest.mark.rows("RB-R4")
def test_the_defaults_are_those_of_kafkas_producer() -> None:
    assert BATCH_SIZE_BYTES == BatchLimits().size_bytes_max == 16_384
    assert BatchLimits().linger_us == 0
    story = BatchStory()
    story.send(b"+", b"+")
    assert story.batches() == [[b"+"], [b"+"]]


@pytest.mark.rows("RB-R10", "RB-R11", "RB-S3")
def test_a_batch_of_six_increments_half_executed_before_a_crash_counts_six_after_the_retry() -> None:
    story = BatchStory(lingering(), response_timeout_us=50_000)
    story.server.crash_after = 3
    story.send(*[b"+"] * 6)
    story.time.pass_time(LINGER_US + MESSAGE_US)
    assert len(story.server.executed) == 3
    story.time.pass_time(200_000)
    assert len(story.server.executed) == 6
    assert [outcome(promise) for promise in story.promises] == [b"1", b"2", b"3", b"4", b"5", b"6"]
    assert story.batches() == [[b"+"] * 6] * 2


@pytest.mark.rows("RB-R10", "RB-S4")
def test_a_refused_connection_fails_the_futures_of_its_batch_and_the_next_batch_is_sent() -> None:
    story = BatchStory(lingering(), attempts_max=1)
    story.refused_connections = 1
    story.send(b"+", b"+")
    story.time.pass_time(LINGER_US)
    assert [outcome(promise) for promise in story.promises] == ["BatchFailed"] * 2
    assert story.client.pending == 0
    later = story.send(b"+")[0]
    story.time.pass_time(LINGER_US + 2 * MESSAGE_US)
    assert later.result() == b"1"
    with pytest.raises(BatchFailed, match="sent 1 times: the port is closed"):
        story.promises[0].result()


@pytest.mark.rows("RB-R11")
def test_retries_wait_twice_as_long_each_time_and_stop_after_the_third() -> None:
    story = BatchStory(response_timeout_us=1_000, backoff_us=100)
    story.lose_requests = lambda attempt: True
    promise = story.send(b"+")[0]
    story.time.pass_time(100_000)
    assert [time_us for time_us, _ in story.sent] == [0, 1_100, 2_300, 3_700]
    assert outcome(promise) == "BatchFailed"


@pytest.mark.rows("RB-S5")
def test_an_exact_fit_is_no_reason_to_send_and_goes_by_time_as_one_batch() -> None:
    story = BatchStory(lingering(size_bytes_max=3 * PLUS_BYTES))
    story.send(*[b"+"] * 3)
    story.time.pass_time(LINGER_US - 1)
    assert story.sent == []
    story.time.pass_time(1)
    assert story.batches() == [[b"+"] * 3]


@pytest.mark.rows("RB-R6", "RB-S6")
def test_an_oversize_request_is_refused_when_queued_and_the_small_ones_get_through() -> None:
    story = BatchStory(lingering(size_bytes_max=100))
    with pytest.raises(OversizeRequest, match="split it, or raise the batch size"):
        story.client.send(b"x" * 101)
    story.send(b"+", b"+")
    story.time.pass_time(LINGER_US + 2 * MESSAGE_US)
    assert [outcome(promise) for promise in story.promises] == [b"1", b"2"]
    assert story.client.pending == 0


@pytest.mark.rows("RB-R2", "RB-S7")
def test_an_answer_that_is_there_before_send_returns_completes_the_future() -> None:
    story = BatchStory()
    story.client._transmit = lambda batch: story.client.handle_response(story.server.receiver.process(1, batch))
    assert story.client.send(b"+").result() == b"1"
    assert story.client.pending == story.client.unknown_responses == 0


@pytest.mark.rows("RB-R2", "RB-R9", "RB-S8")
def test_senders_that_interleave_get_numbers_of_their_own_and_each_its_own_answer() -> None:
    story = BatchStory(lingering(requests_max=7))
    inner: list[bytes] = []
    for task in range(10):
        for _ in range(5):
            promise = story.send(b"+")[0]
            if task == 3:
                promise.then(lambda value: inner.append(story.send(b"again")[0] and value))
    story.time.pass_time(1_000_000)
    numbers = [request.number for _, batch in story.sent for request in batch.requests]
    assert numbers == list(range(1, 56))
    assert sorted(int(outcome(promise)) for promise in story.promises) == list(range(1, 56))
    assert story.promises[0].result() == b"1" and story.promises[49].result() == b"50"
    assert len(inner) == 5 and story.client.pending == 0


@pytest.mark.rows("RB-R8", "RB-S9")
def test_one_bad_request_gets_its_own_error_and_the_others_are_executed() -> None:
    story = BatchStory(lingering())
    story.send(b"+", b"bad", b"+")
    story.time.pass_time(LINGER_US + 2 * MESSAGE_US)
    assert [outcome(promise) for promise in story.promises] == [b"1", "bad-request", b"2"]
    with pytest.raises(RequestFailed, match="bad-request"):
        story.promises[1].result()


@pytest.mark.rows("RB-R14", "RB-S10")
@pytest.mark.parametrize("flush", [True, False])
def test_closing_with_queued_entries_leaves_no_future_open(flush: bool) -> None:
    story = BatchStory(lingering())
    story.send(b"+", b"+")
    story.client.close(flush=flush)
    with pytest.raises(BatchQueueClosed, match="closed"):
        story.client.send(b"+")
    story.time.pass_time(2 * MESSAGE_US)
    assert [outcome(promise) for promise in story.promises] == (
        [b"1", b"2"] if flush else ["BatchQueueClosed", "BatchQueueClosed"]
    )
    assert story.client.pending == 0


@pytest.mark.rows("RB-R14")
def test_closing_without_flush_fails_what_is_on_its_way_as_unknown() -> None:
    story = BatchStory()
    story.send(b"+")
    story.client.close(flush=False)
    assert outcome(story.promises[0]) == "BatchFailed"
    story.time.pass_time(10_000)
    assert len(story.server.executed) == 1 and story.client.unknown_responses == 1


@pytest.mark.rows("RB-R14")
def test_a_full_queue_refuses_or_blocks_and_blocked_callers_keep_their_turn() -> None:
    limits = {"requests_max": 2, "queue_max": 2}
    refusing = BatchStory(BatchLimits(**limits, when_full=WhenFull.REFUSE))
    refusing.link_is_free = False
    refusing.send(b"a", b"b")
    with pytest.raises(BatchQueueFull, match="2 requests are waiting"):
        refusing.client.send(b"c")
    assert refusing.client.pending == 2
    blocking = BatchStory(BatchLimits(**limits))
    blocking.link_is_free = False
    blocking.send(b"a", b"b", b"c", b"d", b"e")
    assert (len(blocking.client._queue), blocking.client._queue.blocked) == (2, 3)
    blocking.link_is_free = True
    blocking.client.link_freed()
    blocking.time.pass_time(10_000)
    assert blocking.batches() == [[b"a", b"b"], [b"c", b"d"], [b"e"]]
    assert [outcome(promise) for promise in blocking.promises] == [b"1", b"2", b"3", b"4", b"5"]


@pytest.mark.rows("RB-R12")
def test_while_the_link_is_taken_requests_gather_into_one_batch_even_without_linger() -> None:
    story = BatchStory()
    story.send(b"a")
    story.link_is_free = False
    story.send(b"b", b"c", b"d")
    story.link_is_free = True
    story.client.link_freed()
    assert story.batches() == [[b"a"], [b"b", b"c", b"d"]]


@pytest.mark.rows("RB-S11", "RB-I2")
def test_a_hundred_requests_in_batches_cost_a_fraction_of_the_messages_and_end_the_same() -> None:
    single, batched = BatchStory(), BatchStory(lingering())
    for story in (single, batched):
        story.send(*[b"%d" % number for number in range(100)])
        while story.client.pending:
            story.time.pass_time(MESSAGE_US)
    assert single.time.now_us >= 100 * MESSAGE_US
    assert batched.time.now_us <= 3 * MESSAGE_US
    assert batched.server.executed == single.server.executed == [b"%d" % number for number in range(100)]
    assert list(map(outcome, batched.promises)) == list(map(outcome, single.promises))


@pytest.mark.rows("RB-R9")
def test_an_answer_to_nothing_is_counted_and_nothing_else() -> None:
    story = BatchStory()
    story.client.handle_response(BatchResponse(77, [NumberedResponse(5, None, b"?")]))
    assert story.client.unknown_responses == 1
    promise = story.send(b"+")[0]
    story.time.pass_time(10_000)
    story.client.handle_response(BatchResponse(1, [NumberedResponse(1, None, b"late")]))
    assert promise.result() == b"1"
    assert story.client.unknown_responses == 2


@pytest.mark.rows("RB-R10")
def test_a_request_that_the_answer_leaves_out_fails_instead_of_waiting_for_ever() -> None:
    story = BatchStory(lingering())
    story.send(b"+", b"+")
    story.time.pass_time(LINGER_US)
    story.client.handle_response(BatchResponse(1, [NumberedResponse(1, None, b"1")]))
    assert [outcome(promise) for promise in story.promises] == [b"1", "BatchFailed"]


def test_a_receiver_keeps_answers_for_all_that_can_come_again_batch_by_batch() -> None:
    """X3: five batches in flight of up to a hundred requests; the window of five would be far too small."""
    assert saved_responses_min(5, BatchLimits()) == 500
    assert saved_responses_min(1, BatchLimits(requests_max=6)) == 6


@pytest.mark.parametrize("limits", [{"size_bytes_max": 0}, {"requests_max": 0}, {"linger_us": -1}, {"queue_max": 99}])
def test_limits_that_no_batch_can_keep_are_refused(limits: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="batch"):
        BatchLimits(**limits)
