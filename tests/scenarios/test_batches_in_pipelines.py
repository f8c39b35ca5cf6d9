"""Batches in a pipeline over one channel: the three patterns of communication together, with breaks at every moment.

The stack of a client: a batching client, whose batches are the requests of a pipelined sender, whose messages are the
frames of a single socket channel. The stack of the server: a listener, a receiver that keeps the order, and one that
takes batches apart and remembers what it answered.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from communication_driver import ALICE, ChannelStory, outcome

from faultline.systems_under_test.patterns.data_replication.idempotent_receiver import ClientSessions, LastResponses
from faultline.systems_under_test.patterns.node_communication.batch_queue import BatchLimits
from faultline.systems_under_test.patterns.node_communication.pipelined_sender import (
    PipelinedSender,
    SequencedReceiver,
    SequencedRequest,
    SequencedResponse,
    SequenceRejected,
)
from faultline.systems_under_test.patterns.node_communication.request_batch import (
    BatchingClient,
    BatchReceiver,
    BatchResponse,
    RequestBatch,
    saved_responses_min,
)
from faultline.systems_under_test.patterns.promise import Promise

LIMITS = BatchLimits(requests_max=6, linger_us=5_000)
BATCHES_IN_FLIGHT = 5
COMMANDS = [b"%d" % number for number in range(1, 91)]

encode = msgspec.msgpack.encode
decode_message: Any = msgspec.msgpack.Decoder(SequencedRequest | SequencedResponse | SequenceRejected).decode
decode_batch: Any = msgspec.msgpack.Decoder(RequestBatch).decode
decode_answers: Any = msgspec.msgpack.Decoder(BatchResponse).decode


class Stack:
    """Client and server, and the channel between them."""

    def __init__(self, saved_responses_max: int, timeout_us: int = 1_000_000) -> None:
        self.story = ChannelStory(on_connection=self.connection_changed, service_us=200)
        self.time = self.story.time
        self.connections = 0
        self.executed: list[bytes] = []
        sessions: Any = ClientSessions(LastResponses(saved_responses_max))
        sessions.register(ALICE)
        self.batches = BatchReceiver(sessions, lambda command: self.executed.append(command) or b"did " + command)
        self.receiver = SequencedReceiver(
            lambda payload: encode(self.batches.process(ALICE, decode_batch(payload))), BATCHES_IN_FLIGHT
        )
        self.story.listener._handle_request = self.serve
        self.story.channel._on_message = lambda payload: self.sender.receive(self.connections, decode_message(payload))
        self.sender = PipelinedSender(
            "athens",
            self.time,
            self.time,
            lambda request: self.story.channel.send_one_way(encode(request)),
            lambda: self.story.network.reset(),
            timeout_us=timeout_us,
        )
        self.client = BatchingClient(
            self.time, self.time, LIMITS, self.transmit, link_is_free=lambda: self.sender.in_flight < BATCHES_IN_FLIGHT
        )
        self.promises: list[Promise[bytes]] = []
        self.story.connect()

    def connection_changed(self, is_open: bool) -> None:
        if is_open:
            self.connections += 1
            self.sender.connected(self.connections)
        else:
            self.sender.disconnected(self.connections)

    def serve(self, peer: str, payload: bytes) -> bytes | None:
        response = self.receiver.receive(decode_message(payload))
        return None if response is None else encode(response)

    def transmit(self, batch: RequestBatch) -> None:
        def answered(payload: bytes) -> None:
            self.client.handle_response(decode_answers(payload))
            self.time.after(0, self.client.link_freed)

        def lost(error: Exception) -> None:
            self.client.handle_failure(batch.number, error)

        self.sender.send(encode(batch)).then(answered, lost)

    def send(self, commands: list[bytes]) -> None:
        self.promises += [self.client.send(command) for command in commands]


@pytest.mark.rows("RB-R12", "RP-R17")
def test_ninety_requests_travel_in_a_few_batches_and_are_executed_in_order() -> None:
    stack = Stack(saved_responses_min(BATCHES_IN_FLIGHT, LIMITS))
    stack.send(COMMANDS)
    stack.time.pass_time(100_000)
    assert stack.executed == COMMANDS
    assert [outcome(promise) for promise in stack.promises] == [b"did " + command for command in COMMANDS]
    assert stack.client._batch_number == 15


@pytest.mark.rows("RB-I5", "RP-I3")
@pytest.mark.parametrize("break_us", range(0, 12_000, 600))
def test_a_break_at_any_moment_leaves_one_effect_each_in_order(break_us: int) -> None:
    stack = Stack(saved_responses_min(BATCHES_IN_FLIGHT, LIMITS))
    stack.send(COMMANDS)
    stack.time.pass_time(break_us)
    stack.story.network.reset(leaves_old_bytes=True)
    stack.time.pass_time(500_000)
    assert stack.executed == COMMANDS
    assert [outcome(promise) for promise in stack.promises] == [b"did " + command for command in COMMANDS]


def lost_answers(saved_responses_max: int) -> Stack:
    """Full batches are executed, then their answers are lost until the sender gives up its epoch; all come again."""
    stack = Stack(saved_responses_max, timeout_us=50_000)
    stack.send(COMMANDS[:30])
    stack.time.pass_time(600)
    stack.story.network.connections[-1][3].is_open = False
    stack.time.pass_time(2_000_000)
    return stack


@pytest.mark.rows("RB-M11")
def test_a_window_of_whole_batches_survives_a_retry_in_a_new_epoch_and_one_of_five_requests_does_not() -> None:
    enough = lost_answers(saved_responses_min(BATCHES_IN_FLIGHT, LIMITS))
    assert enough.sender.epoch > 1
    assert sorted(enough.executed) == sorted(set(enough.executed)) == sorted(COMMANDS[:30])
    assert [outcome(promise) for promise in enough.promises] == [b"did " + command for command in COMMANDS[:30]]
    short = lost_answers(5)
    assert len(set(short.executed)) == len(short.executed)
    assert "request-discarded" in [outcome(promise) for promise in short.promises]


def leader_killed(at_us: int, saved_responses_max: int) -> Stack:
    """A pipeline full of full batches; the leader dies, and the next one knows what was executed, and no connection."""
    stack = Stack(saved_responses_max, timeout_us=50_000)
    stack.send(COMMANDS[:30])
    stack.story.network.connections[-1][3].is_open = False
    stack.time.pass_time(at_us)
    batches = stack.batches
    stack.receiver = SequencedReceiver(
        lambda payload: encode(batches.process(ALICE, decode_batch(payload))), BATCHES_IN_FLIGHT
    )
    stack.story.network.reset()
    stack.time.pass_time(2_000_000)
    return stack


@pytest.mark.rows("X-S3")
@pytest.mark.parametrize("at_us", range(0, 9_000, 900))
def test_a_leader_killed_before_it_answers_a_full_pipeline_leaves_one_effect_of_each_request(at_us: int) -> None:
    stack = leader_killed(at_us, saved_responses_min(BATCHES_IN_FLIGHT, LIMITS))
    assert sorted(stack.executed) == sorted(COMMANDS[:30])
    assert [outcome(promise) for promise in stack.promises] == [b"did " + command for command in COMMANDS[:30]]


@pytest.mark.rows("X-S3")
def test_five_saved_answers_are_too_few_for_five_batches_and_the_client_is_told_not_deceived() -> None:
    stack = leader_killed(9_000, saved_responses_max=5)
    assert len(set(stack.executed)) == len(stack.executed)
    assert "request-discarded" in [outcome(promise) for promise in stack.promises]
