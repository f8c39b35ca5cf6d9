"""Stories about request pipelines: RP-S*, told on virtual time with a trip of 1 ms and a service of 100 µs."""

from __future__ import annotations

import pytest
from communication_driver import SERVICE_US, TRIP_US, PipelineStory, outcome

from faultline.story.log_cluster import Client, Cluster
from faultline.systems_under_test.patterns.data_replication.replicated_log import ReplicationRequest
from faultline.systems_under_test.patterns.node_communication.pipelined_sender import (
    REQUEST_TIMEOUT_US,
    SAVED_RESPONSES_MAX,
    FateUnknown,
    NotSent,
    OnLoss,
    SequencedReceiver,
    SequencedRequest,
    SequencedResponse,
    SequenceRejected,
)

COMMANDS = [b"%d" % number for number in range(1, 8)]
ROUND_TRIP_US = 2 * TRIP_US


@pytest.mark.rows("RP-R1", "RP-S1", "RP-I5")
def test_five_requests_overlap_in_one_round_trip() -> None:
    story = PipelineStory()
    story.holds_responses = True
    promises = story.send(*COMMANDS[:5])
    story.time.pass_time(TRIP_US + 5 * SERVICE_US)
    assert story.executed == COMMANDS[:5]
    story.release()
    story.time.pass_time(TRIP_US)
    assert story.time.now_us == ROUND_TRIP_US + 5 * SERVICE_US
    assert [outcome(promise) for promise in promises] == [b"did " + command for command in COMMANDS[:5]]
    assert story.unanswered_max == 5


@pytest.mark.rows("RP-R4", "RP-R5", "RP-S2")
def test_the_sixth_request_waits_and_one_answer_lets_exactly_one_more_go() -> None:
    story = PipelineStory()
    story.holds_responses = True
    story.send(*COMMANDS)
    story.time.pass_time(TRIP_US + 5 * SERVICE_US)
    assert [sequence for _, sequence in story.transmitted] == [1, 2, 3, 4, 5]
    assert story.sender.waiting == 2
    story.answer(*story.held.pop(0))
    story.time.pass_time(TRIP_US)
    assert [sequence for _, sequence in story.transmitted] == [1, 2, 3, 4, 5, 6]


@pytest.mark.rows("RP-R11", "RP-R13", "RP-R14", "RP-S3")
def test_a_lost_first_request_is_not_overtaken_by_the_second() -> None:
    story = PipelineStory()
    story.lose = lambda request: request.attempt == 1
    story.send(b"x=1", b"x=2")
    story.time.pass_time(10 * ROUND_TRIP_US)
    assert story.executed == [b"x=1", b"x=2"]
    assert [sequence for _, sequence in story.transmitted] == [1, 2, 1, 2]


@pytest.mark.rows("RP-R12", "RP-S4", "RP-R17")
def test_in_raft_form_the_follower_refuses_what_does_not_follow_and_the_leader_backs_up() -> None:
    cluster = Cluster()
    cluster.elect("athens")
    alice = Client(cluster, "alice").register("athens")
    before = len(cluster.log("cyrene"))
    for value in (5, 6, 7):
        alice.set("athens", "x", value)
    requests = cluster.take(lambda _, target, message: target == "cyrene" and isinstance(message, ReplicationRequest))
    assert len(requests) == 3
    cluster.hand(*requests[1])
    assert len(cluster.log("cyrene")) == before
    cluster.deliver()
    assert cluster.log("cyrene") == cluster.log("athens")
    cluster.pass_time(100_000)
    assert cluster.values("cyrene") == {"x": 7}
    assert "in-flight-go-back" in cluster.marks


@pytest.mark.rows("RP-R13", "RP-S5")
def test_in_kafka_form_gaps_are_rejected_and_duplicates_answered_without_effect() -> None:
    executed: list[bytes] = []
    receiver = SequencedReceiver(lambda command: executed.append(command) or command)

    def arrive(sequence: int, attempt: int) -> SequencedResponse | SequenceRejected | None:
        return receiver.receive(SequencedRequest("athens", 1, sequence, attempt, b"%d" % sequence))

    for sequence in range(1, 11):
        arrive(sequence, sequence)
    assert arrive(12, 12) == SequenceRejected(1, 12, expected=11)
    assert arrive(10, 13) == SequencedResponse(1, 10, b"10")
    assert arrive(11, 14) == SequencedResponse(1, 11, b"11")
    assert arrive(12, 15) == SequencedResponse(1, 12, b"12")
    assert executed == [b"%d" % sequence for sequence in range(1, 13)]


@pytest.mark.rows("RP-R7", "RP-S6", "RP-I2")
def test_an_answer_out_of_order_drops_the_connection_and_reaches_no_wrong_caller() -> None:
    story = PipelineStory()
    story.holds_responses = True
    first, second = story.send(b"one", b"two")
    story.time.pass_time(TRIP_US + 2 * SERVICE_US)
    (connection, _), (_, response) = story.held
    story.sender.receive(connection, response)
    assert story.hang_ups == 1
    assert not first.done and not second.done
    story.held.clear()
    story.holds_responses = False
    story.connect()
    story.time.pass_time(10 * ROUND_TRIP_US)
    assert (outcome(first), outcome(second)) == (b"did one", b"did two")
    assert story.executed == [b"one", b"two"]


@pytest.mark.rows("RP-R3", "RP-R5", "RP-R15", "RP-S7", "RP-I4")
def test_a_peer_that_dies_without_a_word_blocks_no_request_longer_than_the_timeout() -> None:
    story = PipelineStory()
    story.is_dead = True
    promises = story.send(*COMMANDS[:6])
    story.time.pass_time(REQUEST_TIMEOUT_US)
    assert [outcome(promise) for promise in promises] == ["FateUnknown"] * 5 + ["NotSent"]
    assert story.hang_ups == 1
    with pytest.raises(FateUnknown, match="unknown"):
        promises[0].result()
    with pytest.raises(NotSent, match="no place"):
        promises[5].result()
    story.is_dead = False
    story.connect()
    later = story.send(*COMMANDS[:5])
    assert story.sender.in_flight == 5 and story.sender.waiting == 0
    story.time.pass_time(2 * ROUND_TRIP_US)
    assert all(promise.done for promise in later)


@pytest.mark.rows("RP-R3", "RP-S8", "RP-R15")
def test_late_answers_of_the_old_connection_complete_nothing_and_free_no_places_of_the_new_one() -> None:
    story = PipelineStory(on_loss=OnLoss.FAIL_ALL)
    story.holds_responses = True
    lost = story.send(*COMMANDS[:5])
    story.time.pass_time(TRIP_US + 5 * SERVICE_US)
    story.disconnect()
    assert [outcome(promise) for promise in lost] == ["FateUnknown"] * 5
    late, story.held = story.held, []
    story.connect()
    kept = story.send(*COMMANDS[:5])
    for connection, response in late:
        story.sender.receive(connection, response)
    assert story.sender.in_flight == 5
    assert not any(promise.done for promise in kept)


@pytest.mark.rows("RP-R10", "RP-S9")
def test_two_who_send_first_to_one_address_share_its_five_places() -> None:
    story = PipelineStory()
    story.disconnect()
    story.connect()
    transmit = story.sender._transmit
    inner = iter([b"second task"] * 6)

    def both(request: SequencedRequest) -> None:
        transmit(request)
        if (command := next(inner, None)) is not None:
            story.sender.send(command)

    story.sender._transmit = both
    story.send(*[b"first task"] * 6)
    assert len(story.transmitted) == story.sender.in_flight == 5
    story.time.pass_time(20 * ROUND_TRIP_US)
    assert len(story.executed) == 12 and story.unanswered_max == 5


@pytest.mark.rows("RP-R8", "RP-S10")
def test_thousands_of_requests_and_numbers_beyond_every_small_integer_are_matched() -> None:
    story = PipelineStory(timeout_us=10**9)
    story.sender._next_sequence = 2**31 - 300
    story.receiver._guard._next["athens"] = 2**31 - 300
    story.receiver._epochs["athens"] = 1
    promises = story.send(*[b"%d" % number for number in range(600)])
    story.time.pass_time(10**7)
    assert [outcome(promise) for promise in promises] == [b"did %d" % number for number in range(600)]


@pytest.mark.rows("RP-R3", "RP-R16", "RP-S11", "RP-I3")
def test_a_break_with_five_executed_and_unanswered_requests_gives_each_one_effect_in_order() -> None:
    story = PipelineStory()
    story.holds_responses = True
    promises = story.send(*COMMANDS)
    story.time.pass_time(TRIP_US + 5 * SERVICE_US)
    assert story.executed == COMMANDS[:5]
    story.disconnect()
    story.held.clear()
    story.holds_responses = False
    story.connect()
    story.time.pass_time(10 * ROUND_TRIP_US)
    assert story.executed == COMMANDS
    assert [outcome(promise) for promise in promises] == [b"did " + command for command in COMMANDS]


@pytest.mark.rows("RP-R16")
def test_a_receiver_keeps_as_many_answers_as_may_be_in_flight() -> None:
    assert PipelineStory().sender._pipeline._in_flight_max == SAVED_RESPONSES_MAX == 5


@pytest.mark.rows("RP-R9")
def test_an_event_goes_past_the_pipeline_and_touches_no_place() -> None:
    story = PipelineStory()
    story.holds_responses = True
    story.send(*COMMANDS[:5])
    story.sender.receive(story.connection, {"watch": "servers/1"})
    assert story.events == [{"watch": "servers/1"}]
    assert (story.sender.in_flight, story.hang_ups) == (5, 0)


@pytest.mark.rows("RP-R8")
def test_answers_to_an_empty_pipeline_and_for_an_unknown_number_are_ignored() -> None:
    story = PipelineStory()
    story.sender.receive(story.connection, SequencedResponse(1, 9, b"?"))
    story.sender.receive(story.connection, SequenceRejected(1, 9, 9))
    promise = story.send(b"one")[0]
    story.sender.receive(story.connection, SequencedResponse(7, 1, b"of another epoch"))
    story.sender.receive(story.connection, SequenceRejected(7, 1, 1))
    story.time.pass_time(3 * ROUND_TRIP_US)
    assert (outcome(promise), story.hang_ups) == (b"did one", 0)


@pytest.mark.rows("RP-R6")
def test_an_answer_that_comes_before_transmit_returns_finds_its_request() -> None:
    story = PipelineStory()
    story.sender._transmit = lambda request: story.sender.receive(1, story.receiver.receive(request))
    assert story.send(b"one")[0].result() == b"did one"
    assert story.sender.in_flight == 0


@pytest.mark.rows("RP-R2")
def test_answers_may_be_handled_later_by_an_update_queue_and_keep_their_order() -> None:
    story = PipelineStory()
    waiting: list[tuple[int, object]] = []
    receive = story.sender.receive
    story.sender.receive = lambda connection, message: waiting.append((connection, message))
    promises = story.send(*COMMANDS[:5])
    story.time.pass_time(3 * ROUND_TRIP_US)
    assert not any(promise.done for promise in promises)
    for item in waiting:
        receive(*item)
    assert [outcome(promise) for promise in promises] == [b"did " + command for command in COMMANDS[:5]]


def test_a_receiver_that_forgot_everything_ends_the_epoch_and_the_next_one_starts_with_one() -> None:
    story = PipelineStory()
    first = story.send(b"one")[0]
    story.time.pass_time(3 * ROUND_TRIP_US)
    story.receiver = SequencedReceiver(story.execute)
    second, third = story.send(b"two", b"three")
    story.time.pass_time(3 * ROUND_TRIP_US)
    assert [outcome(promise) for promise in (first, second, third)] == [b"did one", "FateUnknown", "FateUnknown"]
    fourth = story.send(b"four")[0]
    story.time.pass_time(3 * ROUND_TRIP_US)
    assert outcome(fourth) == b"did four"
    assert story.sender.epoch == 2


def test_what_an_old_epoch_still_brings_is_not_executed_any_more() -> None:
    story = PipelineStory(on_loss=OnLoss.FAIL_ALL)
    story.lose = lambda request: True
    story.send(b"given up")
    story.disconnect()
    story.lose = lambda request: False
    story.connect()
    story.send(b"new")
    story.time.pass_time(3 * ROUND_TRIP_US)
    story.arrive(1, SequencedRequest("athens", 1, 1, 1, b"given up"))
    story.time.pass_time(3 * ROUND_TRIP_US)
    assert story.executed == [b"new"]
