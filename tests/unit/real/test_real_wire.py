"""The wire: messages come back as the types they were, and what is no message is refused by name."""

from __future__ import annotations

import msgspec
import pytest

from faultline.harness.errors import HarnessError
from faultline.harness.world.framing import FrameDecoder
from faultline.harness.world.real.wire import MessageCodec, WireError, decode_hello, encode_hello


class Ping(msgspec.Struct, frozen=True, tag=True):
    number: int


class Pong(msgspec.Struct, frozen=True, tag=True):
    number: int
    names: tuple[str, ...] = ()


class Untagged(msgspec.Struct, frozen=True):
    number: int


class AlsoUntagged(msgspec.Struct, frozen=True):
    number: int


def test_messages_keep_their_type_and_their_fields() -> None:
    codec = MessageCodec((Ping, Pong))
    stream = codec.encode_frame(Ping(1)) + codec.encode_frame(Pong(2, ("a", "b")))
    assert list(map(codec.decode, FrameDecoder().feed(stream))) == [Ping(1), Pong(2, ("a", "b"))]


def test_a_payload_that_is_no_message_of_the_system_is_refused() -> None:
    with pytest.raises(WireError, match="not a message"):
        MessageCodec((Ping,)).decode(b"\xc1")


def test_a_system_whose_messages_cannot_be_told_apart_is_refused_with_advice() -> None:
    with pytest.raises(HarnessError, match="told apart"):
        MessageCodec((Untagged, AlsoUntagged))


def test_a_hello_names_the_caller() -> None:
    (payload,) = FrameDecoder().feed(encode_hello("client-7"))
    assert decode_hello(payload) == "client-7"


def test_a_hello_that_is_no_text_is_refused() -> None:
    with pytest.raises(WireError, match="not the name"):
        decode_hello(b"\xff\xfe")
