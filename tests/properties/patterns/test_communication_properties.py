"""The invariants of channels, batches and pipelines, on random stories of losses, cuts and resets."""

from __future__ import annotations

import pytest
from communication_driver import BatchStory, ChannelStory, PipelineStory, outcome
from hypothesis import given
from hypothesis import strategies as st

from faultline.systems_under_test.patterns.node_communication.batch_queue import BatchLimits
from faultline.systems_under_test.patterns.node_communication.request_batch import _SERIALIZE, NumberedRequest

LINGER_US = 5_000
SIZE_BYTES = 120


def size_of(requests: list[NumberedRequest]) -> int:
    return sum(len(_SERIALIZE.encode(request)) for request in requests)


sends = st.lists(st.tuples(st.integers(0, 3_000), st.integers(1, 60)), min_size=1, max_size=25)
losses = st.sets(st.integers(1, 12), max_size=5)


@pytest.mark.rows("RB-I1", "RB-I3", "RB-I4", "RB-I5")
@given(sends, losses, losses)
def test_every_batched_request_has_one_outcome_at_most_one_effect_and_a_bounded_wait(
    steps: list[tuple[int, int]], lost_requests: set[int], lost_responses: set[int]
) -> None:
    story = BatchStory(BatchLimits(linger_us=LINGER_US, size_bytes_max=SIZE_BYTES), response_timeout_us=20_000)
    story.lose_requests, story.lose_responses = lost_requests.__contains__, lost_responses.__contains__
    queued_us: dict[int, int] = {}
    for number, (pause_us, size) in enumerate(steps, 1):
        story.time.pass_time(pause_us)
        queued_us[number] = story.time.now_us
        story.send(b"%d:" % number + b"x" * size)
    story.time.pass_time(10_000_000)
    assert story.client.pending == 0
    assert all(promise.done for promise in story.promises)
    assert len(set(story.server.executed)) == len(story.server.executed)
    first_sent_us: dict[int, int] = {}
    for sent_us, batch in story.sent:
        assert 0 < size_of(batch.requests) <= SIZE_BYTES
        for request in batch.requests:
            first_sent_us.setdefault(request.number, sent_us)
    assert all(first_sent_us[number] - since_us <= LINGER_US for number, since_us in queued_us.items())
    for number, promise in enumerate(story.promises):
        answer = outcome(promise)
        if isinstance(answer, bytes):
            assert story.server.executed[int(answer) - 1].startswith(b"%d:" % (number + 1))


@pytest.mark.rows("RB-I2")
@given(sends)
def test_batches_end_as_their_requests_would_one_by_one(steps: list[tuple[int, int]]) -> None:
    batched = BatchStory(BatchLimits(linger_us=LINGER_US, size_bytes_max=SIZE_BYTES))
    single = BatchStory()
    for number, (pause_us, size) in enumerate(steps):
        for story in (batched, single):
            story.time.pass_time(pause_us)
            story.send(b"%d:" % number + b"x" * size)
    for story in (batched, single):
        story.time.pass_time(1_000_000)
    assert batched.server.executed == single.server.executed
    assert list(map(outcome, batched.promises)) == list(map(outcome, single.promises))


faults = st.lists(st.sampled_from(["send", "wait", "lose", "break", "mute"]), min_size=1, max_size=40)


@pytest.mark.rows("RP-I1", "RP-I2", "RP-I3", "RP-I4")
@given(faults)
def test_pipelined_requests_take_effect_in_order_and_once_whatever_breaks(steps: list[str]) -> None:
    story = PipelineStory()
    story.hang_up = story.connect_soon = lambda: story.time.after(500, story.connect)
    story.sender._hang_up = story.hang_up
    lost: set[int] = set()
    story.lose = lambda request: request.attempt in lost
    promises = []
    for number, step in enumerate(steps):
        if step == "send":
            promises += story.send(b"%d" % number)
        elif step == "wait":
            story.time.pass_time(1_700)
        elif step == "lose":
            lost.add(story.sender._attempt + 1)
        elif step == "break":
            story.disconnect()
            story.time.after(500, story.connect)
        else:
            story.is_dead = True
            story.time.pass_time(3_000)
            story.is_dead = False
        assert story.sender.in_flight <= 5
    story.time.pass_time(20_000_000)
    assert all(promise.done for promise in promises)
    assert (story.sender.in_flight, story.sender.waiting) == (0, 0)
    numbers = [int(command) for command in story.executed]
    assert numbers == sorted(set(numbers))
    for promise in promises:
        answer = outcome(promise)
        assert answer in ("FateUnknown", "NotSent") or answer.removeprefix(b"did ") in story.executed


channel_steps = st.lists(
    st.one_of(st.binary(min_size=1, max_size=40), st.sampled_from(["wait", "reset", "reset late"])), max_size=30
)


@pytest.mark.rows("SC-I1", "SC-I2")
@given(channel_steps, st.integers(1, 17))
def test_what_a_connection_brings_is_a_beginning_of_what_was_sent_over_it(
    steps: list[bytes | str], piece_bytes: int
) -> None:
    story = ChannelStory(piece_bytes=piece_bytes).connect()
    story.network.piece_us = 30
    sent: dict[int, list[bytes]] = {}
    received: dict[int, list[bytes]] = {}
    submit = story.listener._submit

    def recorded(connection: int, peer: str, payload: bytes) -> None:
        received.setdefault(connection, []).append(payload)
        submit(connection, peer, payload)

    story.listener._submit = recorded
    failures = 0
    for step in steps:
        if isinstance(step, bytes):
            if story.channel.is_open:
                sent.setdefault(story.listener.accepted_total, []).append(step)
                story.channel.send_one_way(step)
        elif step == "wait":
            story.time.pass_time(3_000)
        elif story.channel.is_open:
            failures += 1
            story.network.reset(leaves_old_bytes=step == "reset late")
    story.time.pass_time(500_000)
    for connection, payloads in received.items():
        assert payloads == sent[connection][: len(payloads)]
    assert story.listener.accepted_total <= 1 + failures
    assert len(story.listener.open_connections) == 1
