"""Single socket channel: frames in any pieces (SC-S7), and connections that no longer count (SC-S5, S6)."""

from __future__ import annotations

import pytest

from faultline.systems_under_test.patterns.node_communication.single_socket_channel import (
    MAX_FRAME_BYTES,
    READ_TIMEOUT_HEARTBEATS,
    ChannelClosed,
    ChannelState,
    FrameDecoder,
    FrameError,
    OutOfSequence,
    encode_frame,
)

INTERVAL_US = 100_000


def test_a_frame_is_a_big_endian_length_and_the_payload() -> None:
    assert encode_frame(b"abc") == b"\0\0\0\x03abc"
    assert encode_frame(b"") == b"\0\0\0\0"


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 1000])
def test_frames_cut_in_pieces_of_any_size_arrive_whole_and_in_order(size: int) -> None:
    payloads = [b"", b"a", b"bc" * 100, b"", b"d" * 7]
    stream = b"".join(encode_frame(payload) for payload in payloads)
    decoder = FrameDecoder()
    received = [p for start in range(0, len(stream), size) for p in decoder.feed(stream[start : start + size])]
    assert received == payloads
    assert decoder.pending_bytes == 0


def test_a_message_cut_by_a_reset_is_never_seen() -> None:
    stream = encode_frame(b"whole") + encode_frame(b"cut short")
    for size in range(len(encode_frame(b"whole")), len(stream)):
        decoder = FrameDecoder()
        assert decoder.feed(stream[:size]) == [b"whole"]
        assert decoder.pending_bytes == size - len(encode_frame(b"whole"))


def test_a_length_above_the_limit_breaks_the_connection_for_good() -> None:
    decoder = FrameDecoder()
    assert decoder.feed(encode_frame(b"fine")) == [b"fine"]
    with pytest.raises(FrameError, match=str(MAX_FRAME_BYTES + 1)):
        decoder.feed((MAX_FRAME_BYTES + 1).to_bytes(4, "big"))
    with pytest.raises(FrameError):
        decoder.feed(encode_frame(b"fine"))


def test_a_message_above_the_limit_is_not_sent() -> None:
    with pytest.raises(FrameError, match=str(MAX_FRAME_BYTES)):
        encode_frame(bytes(MAX_FRAME_BYTES + 1))


def _open_channel(now_us: int = 0) -> tuple[ChannelState, int]:
    channel = ChannelState(INTERVAL_US)
    return channel, channel.opened(now_us)


def test_messages_of_one_connection_are_taken_in_order() -> None:
    channel, connection = _open_channel()
    assert [channel.received(connection, sequence, 0) for sequence in (1, 2, 3)] == [True, True, True]
    assert [channel.sending(0) for _ in range(3)] == [1, 2, 3]


@pytest.mark.parametrize("sequence", [0, 1, 3])
def test_a_gap_or_a_repetition_within_a_connection_is_a_breach(sequence: int) -> None:
    channel, connection = _open_channel()
    channel.received(connection, 1, 0)
    with pytest.raises(OutOfSequence, match=f"message {sequence} "):
        channel.received(connection, sequence, 0)


def test_late_bytes_of_an_old_connection_are_dropped_and_the_new_one_starts_afresh() -> None:
    channel, old = _open_channel()
    channel.received(old, 1, 0)
    new = channel.opened(10)
    assert new > old
    assert not channel.received(old, 2, 20)
    assert not channel.received(old, 1, 20)
    assert channel.received(new, 1, 20)
    assert channel.sending(20) == 1


def test_the_end_of_an_old_connection_does_not_close_the_new_one() -> None:
    channel, old = _open_channel()
    new = channel.opened(10)
    assert not channel.closed(old)
    assert channel.is_open
    assert channel.is_current(new)
    assert channel.closed(new)
    assert not channel.closed(new)
    assert not channel.is_current(new)
    assert not channel.received(new, 1, 20)


def test_nothing_is_sent_without_a_connection() -> None:
    channel, connection = _open_channel()
    channel.closed(connection)
    with pytest.raises(ChannelClosed):
        channel.sending(0)
    with pytest.raises(ChannelClosed):
        ChannelState(INTERVAL_US).sending(0)


def test_a_silent_peer_is_given_up_after_ten_heartbeat_intervals() -> None:
    channel, connection = _open_channel(now_us=5)
    assert READ_TIMEOUT_HEARTBEATS == 10
    assert channel.read_timeout_us == 10 * INTERVAL_US
    assert not channel.timed_out(5 + 10 * INTERVAL_US)
    assert channel.timed_out(6 + 10 * INTERVAL_US)
    channel.received(connection, 1, 6 + 10 * INTERVAL_US)
    assert not channel.timed_out(7 + 10 * INTERVAL_US)
    channel.closed(connection)
    assert not channel.timed_out(100 * INTERVAL_US)


def test_a_channel_that_is_idle_or_hears_nothing_needs_a_heartbeat_each_interval() -> None:
    channel, connection = _open_channel()
    assert not channel.heartbeat_due(INTERVAL_US - 1)
    assert channel.heartbeat_due(INTERVAL_US)
    channel.sending(INTERVAL_US)
    assert channel.heartbeat_due(INTERVAL_US)
    channel.heard(connection, INTERVAL_US)
    assert not channel.heartbeat_due(2 * INTERVAL_US - 1)
    channel.closed(connection)
    assert not channel.heartbeat_due(5 * INTERVAL_US)
