"""The messages to and from the kernel's packet queues are what its headers say, byte for byte."""

from __future__ import annotations

import struct

import pytest

from faultline.harness.world.hosts.namespaces.netfilter_queue import (
    ACCEPT,
    DROP,
    QueuedPacket,
    bind_request,
    copy_request,
    decoded,
    length_request,
    verdict,
)


def attributes(message: bytes) -> list[tuple[int, bytes]]:
    found, offset = [], 20
    while offset < len(message):
        length, kind = struct.unpack_from("=HH", message, offset)
        found.append((kind, message[offset + 4 : offset + length]))
        offset += (length + 3) & ~3
    assert offset == len(message)
    return found


def head(message: bytes) -> tuple[int, ...]:
    length, kind, flags, _, _ = struct.unpack_from("=IHHII", message)
    _, _, queue = struct.unpack_from("!BBH", message, 16)
    assert length == len(message)
    return kind, flags, queue


def test_a_queue_is_bound_for_internet_packets_and_the_answer_is_asked_for() -> None:
    message = bind_request(7)
    assert head(message) == (0x302, 5, 7)
    assert attributes(message) == [(1, b"\x01\x00\x00\x02")]


@pytest.mark.parametrize(("large", "flags"), [(True, b"\0\0\0\4"), (False, b"\0\0\0\0")])
def test_so_many_bytes_of_each_packet_are_asked_for(large: bool, flags: bytes) -> None:
    message = copy_request(65_000, 128, large=large)
    assert head(message) == (0x302, 5, 65_000)
    assert attributes(message) == [(2, b"\0\0\0\x80\2"), (4, b"\0\0\0\4"), (5, flags)]


def test_the_queue_is_given_a_length() -> None:
    assert attributes(length_request(1, 258)) == [(3, b"\0\0\1\2")]


def test_a_verdict_names_the_packet_and_may_bring_another_content() -> None:
    assert head(verdict(3, 9, DROP)) == (0x301, 1, 3)
    assert attributes(verdict(3, 9, DROP)) == [(2, b"\0\0\0\0\0\0\0\x09")]
    assert attributes(verdict(3, 9, ACCEPT, b"odd")) == [(2, b"\0\0\0\1\0\0\0\x09"), (10, b"odd")]


def packet(queue: int, packet_id: int, content: bytes) -> bytes:
    body = struct.pack("!BBH", 2, 0, queue)
    body += struct.pack("=HH", 11, 1) + struct.pack("!IHB", packet_id, 0x0800, 2) + b"\0"
    body += struct.pack("=HH", 8, 7) + b"\0\0\0\5"
    # The kernel marks nested and big-endian attributes in the two highest bits of the kind.
    body += struct.pack("=HH", 4 + len(content), 10 | 0x4000) + content + b"\0" * (-len(content) % 4)
    return struct.pack("=IHHII", 16 + len(body), 0x300, 0, 0, 0) + body


def answer(number: int) -> bytes:
    return struct.pack("=IHHIIi", 36, 2, 0, 0, 0, -number) + b"\0" * 16


def test_packets_and_answers_are_read_in_order_and_other_messages_passed_over() -> None:
    other = struct.pack("=IHHII", 16, 3, 0, 0, 0)
    datagram = packet(7, 41, b"first") + other + answer(0) + answer(1) + packet(8, 42, b"")
    assert list(decoded(datagram)) == [
        QueuedPacket(7, 41, b"first"),
        QueuedPacket(-1, error=0),
        QueuedPacket(-1, error=1),
        QueuedPacket(8, 42, b""),
    ]


def test_a_datagram_that_is_cut_off_ends_the_reading() -> None:
    assert list(decoded(b"")) == [] == list(decoded(b"\0" * 15))
