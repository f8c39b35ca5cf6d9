"""Frames: payloads come out of a stream as they went in, however the stream was cut, and nonsense is refused."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultline.harness.world.framing import MAX_FRAME_BYTES, FrameDecoder, FrameError, encode_frame


@given(st.lists(st.binary(max_size=40), max_size=8), st.integers(1, 17))
def test_payloads_survive_any_cutting_of_the_stream(payloads: list[bytes], step: int) -> None:
    stream = b"".join(map(encode_frame, payloads))
    decoder = FrameDecoder()
    seen = [out for start in range(0, len(stream), step) for out in decoder.feed(stream[start : start + step])]
    assert seen == payloads
    assert decoder.pending_bytes == 0


def test_an_unfinished_frame_waits_for_the_rest() -> None:
    decoder = FrameDecoder()
    assert decoder.feed(encode_frame(b"hello")[:-1]) == []
    assert decoder.pending_bytes == 8
    assert decoder.feed(b"o") == [b"hello"]


def test_the_length_is_four_bytes_big_endian() -> None:
    assert encode_frame(b"abc") == b"\x00\x00\x00\x03abc"


def test_an_announced_length_out_of_bounds_is_refused_at_once() -> None:
    with pytest.raises(FrameError, match="announces"):
        FrameDecoder().feed(struct.pack(">I", MAX_FRAME_BYTES + 1))


def test_an_http_request_is_refused_and_not_waited_for() -> None:
    with pytest.raises(FrameError):
        FrameDecoder().feed(b"GET / HTTP/1.1\r\n")


def test_a_payload_that_is_too_long_is_not_sent() -> None:
    with pytest.raises(FrameError, match="longer"):
        encode_frame(bytes(MAX_FRAME_BYTES + 1))
