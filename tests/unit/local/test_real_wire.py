"""The wire: messages come back as the types they were, and what is no message is refused by name."""

from __future__ import annotations

import msgspec
import pytest

from faultline.harness.errors import HarnessError
from faultline.harness.world.framing import FrameDecoder
from faultline.harness.world.message_codec import MessageCodec, WireError


class Ping(msgspec.Struct, frozen=True, tag=True):
    number: int


class Pong(msgspec.Struct, frozen=True, tag=True):
    number: int
    names: tuple[str, ...] = ()


class Free(msgspec.Struct, frozen=True, tag=True):
    value: object


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


@pytest.mark.parametrize(
    ("what", "payload"),
    [
        ("nothing", b""),
        ("another format", b"GET / HTTP/1.1"),
        ("a record cut short", b"\x82\xa4type\xa4Ping\xa6num"),
        ("an unknown kind", b"\x82\xa4type\xa5Other\xa6number\x01"),
        ("a kind without its field", b"\x81\xa4type\xa4Ping"),
        ("a field of another type", b"\x82\xa4type\xa4Ping\xa6number\xa1x"),
        ("text that is no UTF-8", b"\x83\xa4type\xa4Pong\xa6number\x01\xa5names\x91\xa1\xff"),
        ("nesting without end", b"\x82\xa4type\xa4Free\xa5value" + b"\x91" * 5_000 + b"\xc0"),
    ],
)
def test_whatever_bytes_come_they_are_a_message_or_refused(what: str, payload: bytes) -> None:
    with pytest.raises(WireError, match="not a message"):
        MessageCodec((Ping, Pong, Free)).decode(payload)
