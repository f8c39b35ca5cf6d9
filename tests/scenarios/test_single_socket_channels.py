"""Stories about single socket channels: SC-S*, told on virtual time over wires that carry bytes."""

from __future__ import annotations

import msgspec
import pytest
from communication_driver import ChannelStory, PipelineStory, VirtualTime, outcome

from faultline.harness.world.framing import MAX_FRAME_BYTES, FrameError, encode_frame
from faultline.systems_under_test.patterns.node_communication.pipelined_sender import (
    PipelinedSender,
    SequencedReceiver,
    SequencedRequest,
    SequencedResponse,
    SequenceRejected,
)
from faultline.systems_under_test.patterns.node_communication.single_socket_channel import ChannelClosed
from faultline.systems_under_test.patterns.node_communication.socket_channel import (
    BACKOFF_US_MAX,
    BACKOFF_US_MIN,
    HEARTBEAT_INTERVAL_US,
    ReadTimeout,
)

READ_TIMEOUT_US = 10 * HEARTBEAT_INTERVAL_US
REQUESTS = [b"%d" % number for number in range(1, 31)]


@pytest.mark.rows("SC-R1", "SC-R2", "SC-S1", "SC-I2")
def test_a_leaders_requests_are_handled_in_order_over_one_connection() -> None:
    story = ChannelStory(service_us=50).connect()
    for request in REQUESTS:
        story.channel.send_one_way(request)
        story.time.pass_time(37)
    story.time.pass_time(100_000)
    assert story.handled == REQUESTS
    assert story.messages == [b"did " + request for request in REQUESTS]
    assert story.listener.accepted_total == len(story.network.dialled_us) == 1


@pytest.mark.rows("SC-R7", "SC-S2", "SC-R3")
def test_both_ends_notice_a_silent_death_within_ten_heartbeats_and_connect_again() -> None:
    story = ChannelStory().connect()
    story.time.pass_time(5 * HEARTBEAT_INTERVAL_US)
    story.network.is_mute = True
    story.time.pass_time(READ_TIMEOUT_US + 2 * HEARTBEAT_INTERVAL_US)
    assert not story.channel.is_open and story.listener.open_connections == []
    assert story.channel_errors[0] == "ReadTimeout: the other end is silent"
    assert story.errors == ["athens: ReadTimeout: the other end is silent"]
    story.network.is_mute = False
    story.time.pass_time(READ_TIMEOUT_US + HEARTBEAT_INTERVAL_US)
    assert story.channel.is_open
    assert [peer for _, peer in story.listener.open_connections] == ["athens"]


@pytest.mark.rows("SC-R8", "SC-S3", "SC-I5")
def test_an_idle_link_stays_open_with_heartbeats() -> None:
    story = ChannelStory().connect()
    story.time.pass_time(20 * READ_TIMEOUT_US)
    assert story.channel.is_open and story.listener.accepted_total == 1
    assert story.errors == story.channel_errors == []


@pytest.mark.rows("SC-R8", "SC-I5")
def test_a_link_on_which_one_end_talks_all_the_time_and_gets_no_answer_stays_open() -> None:
    story = ChannelStory().connect()
    for _ in range(3 * 20):
        story.channel.send_one_way(b"no answer")
        story.time.pass_time(HEARTBEAT_INTERVAL_US // 2)
    assert story.channel.is_open and story.listener.accepted_total == 1
    assert story.errors == story.channel_errors == []


@pytest.mark.rows("SC-S3")
def test_an_idle_link_without_heartbeats_times_out() -> None:
    quiet = ChannelStory(heartbeat_interval_us=100 * HEARTBEAT_INTERVAL_US).connect()
    quiet.time.pass_time(READ_TIMEOUT_US + 2 * HEARTBEAT_INTERVAL_US)
    assert quiet.errors == ["athens: ReadTimeout: the other end is silent"]


@pytest.mark.rows("SC-R9", "SC-S4", "SC-I5")
def test_a_slow_request_holds_up_those_behind_it_but_does_not_look_like_a_dead_server() -> None:
    story = ChannelStory(service_us=3 * READ_TIMEOUT_US).connect()
    for request in (b"slow", b"behind it"):
        story.channel.send_one_way(request)
    story.time.pass_time(3 * READ_TIMEOUT_US - HEARTBEAT_INTERVAL_US)
    assert story.handled == []
    assert story.channel.is_open and story.channel_errors == []
    story.time.pass_time(10 * READ_TIMEOUT_US)
    assert story.handled == [b"slow", b"behind it"]
    assert story.listener.accepted_total == 1


@pytest.mark.rows("SC-R9", "SC-S4")
def test_a_batch_that_takes_longer_than_the_timeout_costs_the_connection_and_small_ones_do_not() -> None:
    for size_bytes, connections in ((30_000, 2), (3_000, 1)):
        story = ChannelStory(piece_bytes=100).connect()
        story.network.piece_us = 10_000
        calls = [story.channel.blocking_send(b"x" * size_bytes)]
        while len(calls) * size_bytes < 30_000:
            story.time.pass_time(size_bytes * 200 + 50_000)
            calls.append(story.channel.blocking_send(b"x" * size_bytes))
        story.time.pass_time(2 * READ_TIMEOUT_US)
        assert story.listener.accepted_total == connections
        assert [outcome(call) for call in calls].count("ReadTimeout") == connections - 1


@pytest.mark.rows("SC-R10", "SC-S5", "SC-I3", "SC-I4")
def test_an_answer_that_comes_after_its_timeout_is_never_taken_for_the_next_one() -> None:
    story = ChannelStory(service_us=READ_TIMEOUT_US + 200_000).connect()
    first = story.channel.blocking_send(b"one")
    story.time.pass_time(READ_TIMEOUT_US)
    with pytest.raises(ReadTimeout, match="no answer in time"):
        first.result()
    story.service_us = 1_000
    story.time.pass_time(50_000)
    second = story.channel.blocking_send(b"two")
    story.time.pass_time(READ_TIMEOUT_US)
    assert outcome(second) == b"did two"
    assert story.listener.accepted_total == 2


@pytest.mark.rows("SC-R5", "SC-I3")
def test_blocking_calls_take_turns_and_each_gets_its_own_answer() -> None:
    story = ChannelStory(service_us=1_000).connect()
    calls = [story.channel.blocking_send(request) for request in REQUESTS[:5]]
    story.time.pass_time(1_900)
    assert story.handled == [b"1"]
    story.time.pass_time(20_000)
    assert [outcome(call) for call in calls] == [b"did " + request for request in REQUESTS[:5]]


@pytest.mark.rows("SC-I4")
def test_no_call_is_open_longer_than_the_read_timeout_not_even_one_that_waits_its_turn() -> None:
    story = ChannelStory().connect()
    story.network.is_mute = True
    calls = [story.channel.blocking_send(request) for request in REQUESTS[:3]]
    story.time.pass_time(READ_TIMEOUT_US)
    assert [outcome(call) for call in calls] == ["ReadTimeout"] * 3


class SequencedOverChannel:
    """A pipelined sender over a channel, so that resends are ordered by the layer above."""

    MESSAGES = SequencedRequest | SequencedResponse | SequenceRejected

    def __init__(self) -> None:
        self.decoder = msgspec.msgpack.Decoder(self.MESSAGES)
        self.story = ChannelStory(on_connection=self.connection_changed)
        self.connections = 0
        self.executed: list[bytes] = []
        self.receiver = SequencedReceiver(lambda command: self.executed.append(command) or b"did " + command)
        self.story.listener._handle_request = self.handle
        self.story.channel._on_message = self.take
        self.sender = PipelinedSender(
            "athens", self.story.time, self.story.time, self.transmit, lambda: self.story.network.reset()
        )
        self.story.connect()

    def connection_changed(self, is_open: bool) -> None:
        if is_open:
            self.connections += 1
            self.sender.connected(self.connections)
        else:
            self.sender.disconnected(self.connections)

    def transmit(self, request: SequencedRequest) -> None:
        self.story.channel.send_one_way(msgspec.msgpack.encode(request))

    def handle(self, peer: str, payload: bytes) -> bytes | None:
        response = self.receiver.receive(self.decoder.decode(payload))
        return None if response is None else msgspec.msgpack.encode(response)

    def take(self, payload: bytes) -> None:
        self.sender.receive(self.connections, self.decoder.decode(payload))


@pytest.mark.rows("SC-R11", "SC-S6")
@pytest.mark.parametrize("break_us", range(0, 2_000, 100))
def test_requests_sent_again_after_a_break_are_neither_inverted_nor_executed_twice(break_us: int) -> None:
    cluster = SequencedOverChannel()
    promises = [cluster.sender.send(request) for request in REQUESTS[:4]]
    cluster.story.time.pass_time(break_us)
    cluster.story.network.reset(leaves_old_bytes=True)
    promises.append(cluster.sender.send(b"5"))
    cluster.story.time.pass_time(200_000)
    assert cluster.executed == REQUESTS[:5]
    assert [outcome(promise) for promise in promises] == [b"did " + request for request in REQUESTS[:5]]


@pytest.mark.rows("SC-R11", "SC-I2")
def test_a_new_connection_of_the_same_caller_ends_the_old_one_whose_late_bytes_do_not_count() -> None:
    story = ChannelStory().connect()
    story.time.pass_time(10_000)
    old = story.network.connections[0][1]
    story.network.reset(leaves_old_bytes=True)
    story.time.pass_time(50_000)
    assert [peer for _, peer in story.listener.open_connections] == ["athens"]
    old.deliver(encode_frame(b"late"))
    story.channel.send_one_way(b"new")
    story.time.pass_time(10_000)
    assert story.handled == [b"new"]
    assert len(story.network.dialled_us) == 2


@pytest.mark.rows("SC-R6", "SC-S7")
def test_requests_that_arrive_byte_by_byte_are_handled_whole() -> None:
    story = ChannelStory(piece_bytes=1).connect()
    calls = [story.channel.blocking_send(request * 40) for request in REQUESTS[:5]]
    story.time.pass_time(100_000)
    assert [outcome(call) for call in calls] == [b"did " + request * 40 for request in REQUESTS[:5]]


@pytest.mark.rows("SC-R6", "SC-S7")
@pytest.mark.parametrize("cut_after_bytes", range(1, 24))
def test_a_request_cut_by_a_reset_is_not_processed_in_part(cut_after_bytes: int) -> None:
    story = ChannelStory(piece_bytes=1).connect()
    story.time.pass_time(10_000)
    story.network.piece_us = 100
    story.channel.send_one_way(b"no answer: whole")
    story.time.pass_time(story.network.delay_us + 100 * cut_after_bytes)
    story.network.reset()
    story.time.pass_time(100_000)
    assert story.handled == ([b"no answer: whole"] if cut_after_bytes >= 20 else [])
    assert story.channel.is_open


@pytest.mark.rows("SC-R12")
@pytest.mark.parametrize(
    ("nonsense", "complaint"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "FrameError: a frame announces 1195725856 bytes"),
        ((MAX_FRAME_BYTES + 1).to_bytes(4, "big"), "FrameError: a frame announces"),
        (encode_frame(b""), "FrameError: a connection must begin with a name of 1 to 255 bytes, not 0"),
        (encode_frame(b"x" * 256), "FrameError: a connection must begin with a name of 1 to 255 bytes, not 256"),
        (encode_frame(b"\xff\xfe"), "FrameError: a connection must begin with a name, not"),
    ],
)
def test_a_stranger_who_sends_nonsense_is_hung_up_on_with_a_named_error(nonsense: bytes, complaint: str) -> None:
    story = ChannelStory().connect()
    hung_up: list[bool] = []
    wire = type("Stranger", (), {"close": lambda _: hung_up.append(True), "write": lambda _, data: None})()
    story.listener.data_received(story.listener.accepted(wire), nonsense)
    assert complaint in story.errors[0] and hung_up == [True]
    story.channel.send_one_way(b"still served")
    story.time.pass_time(10_000)
    assert story.handled == [b"still served"]


@pytest.mark.rows("SC-R12")
def test_a_frame_too_large_is_refused_before_it_is_sent_and_ends_the_connection_that_brings_one() -> None:
    story = ChannelStory().connect()
    with pytest.raises(FrameError, match="longer than the"):
        story.channel.send_one_way(bytes(MAX_FRAME_BYTES + 1))
    with pytest.raises(FrameError, match="longer than the"):
        story.channel.blocking_send(bytes(MAX_FRAME_BYTES + 1))
    assert story.channel.is_open
    story.channel.data_received(story.channel.attempt, b"\xff\xff\xff\xff")
    assert not story.channel.is_open
    assert story.channel_errors[0].startswith("FrameError: a frame announces")
    story.time.pass_time(50_000)
    assert story.channel.is_open


@pytest.mark.rows("SC-R3")
def test_a_handler_that_raises_ends_its_connection_and_no_other() -> None:
    story = ChannelStory().connect()

    def handle(peer: str, request: bytes) -> bytes:
        raise ZeroDivisionError("a bug")

    story.listener._handle_request = handle
    call = story.channel.blocking_send(b"one")
    story.time.pass_time(5_000)
    assert story.errors == ["athens: ZeroDivisionError: a bug"]
    with pytest.raises(ChannelClosed, match="unknown"):
        call.result()
    story.time.pass_time(50_000)
    assert story.channel.is_open


@pytest.mark.rows("SC-R5")
def test_refused_connections_are_dialled_again_with_pauses_that_double_up_to_a_bound() -> None:
    story = ChannelStory()
    story.network.refuses = True
    story.time.pass_time(1_000_000)
    pauses = [
        later - earlier - story.network.delay_us
        for earlier, later in zip(story.network.dialled_us, story.network.dialled_us[1:], strict=False)
    ]
    assert pauses[:6] == [BACKOFF_US_MIN << doubling for doubling in range(5)] + [BACKOFF_US_MAX]
    assert max(pauses) == BACKOFF_US_MAX


@pytest.mark.rows("SC-R5")
def test_a_connection_that_does_not_come_is_given_up_and_one_that_comes_late_is_closed() -> None:
    story = ChannelStory()
    story.network.is_mute = True
    story.time.pass_time(READ_TIMEOUT_US + HEARTBEAT_INTERVAL_US)
    assert story.channel_errors == ["ReadTimeout: no connection in time"]
    closed: list[bool] = []
    story.channel.opened(1, type("Late", (), {"close": lambda _: closed.append(True)})())
    assert closed == [True] and not story.channel.is_open


@pytest.mark.rows("SC-R3")
def test_closing_fails_what_waits_and_nothing_is_dialled_any_more() -> None:
    story = ChannelStory(service_us=1_000).connect()
    calls = [story.channel.blocking_send(request) for request in REQUESTS[:2]]
    story.channel.close()
    story.time.pass_time(READ_TIMEOUT_US)
    assert [outcome(call) for call in calls] == ["ChannelClosed"] * 2
    assert len(story.network.dialled_us) == 1
    with pytest.raises(ChannelClosed):
        story.channel.send_one_way(b"too late")


@pytest.mark.rows("SC-R4")
def test_one_listener_serves_several_callers_each_in_its_own_order_and_none_needs_a_thread() -> None:
    story = ChannelStory().connect()
    wire = type("Quiet", (), {"close": lambda _: None, "write": lambda _, data: None})()
    other = story.listener.accepted(wire)
    frames = encode_frame(b"byzantium") + encode_frame(b"no answer: b1") + encode_frame(b"no answer: b2")
    for start in range(0, len(frames), 7):
        story.listener.data_received(other, frames[start : start + 7])
        story.channel.send_one_way(b"no answer: a%d" % start)
        story.time.pass_time(1_000)
    assert [request for request in story.handled if b": b" in request] == [b"no answer: b1", b"no answer: b2"]
    mine = [request for request in story.handled if b": a" in request]
    assert mine == [b"no answer: a%d" % start for start in range(0, len(frames), 7)]


def test_the_stories_clock_is_the_schedulers() -> None:
    time = VirtualTime()
    assert (time.monotonic_us(), PipelineStory().time.now_us) == (0, 0)
