"""The netlink messages by which a program decides about packets: Linux's nfnetlink_queue, as far as it is used here.

The kernel hands a queued packet to the socket that has bound the queue's number, and waits for a verdict. Every message
is a netlink header, four bytes that name family and queue, and attributes of a length, a type and a padded content; see
`include/uapi/linux/netfilter/nfnetlink_queue.h` of the kernel's sources. Numbers within attributes are big-endian,
those of the headers are the machine's.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import msgspec

__all__ = [
    "ACCEPT",
    "DROP",
    "NETFILTER",
    "QueuedPacket",
    "bind_request",
    "copy_request",
    "decoded",
    "length_request",
    "verdict",
]

NETFILTER = 12
"""The netlink protocol of netfilter."""
DROP, ACCEPT = 0, 1

_HEADER = struct.Struct("=IHHII")
_QUEUE_OF = struct.Struct("!BBH")
_ATTRIBUTE = struct.Struct("=HH")
_SUBSYSTEM = 3 << 8
_PACKET, _VERDICT, _CONFIG = _SUBSYSTEM | 0, _SUBSYSTEM | 1, _SUBSYSTEM | 2
_REQUEST, _ACKNOWLEDGE = 1, 4
_ERROR = 2
_TYPE_MASK = 0x3FFF
_CONFIG_COMMAND, _CONFIG_COPY, _CONFIG_LENGTH, _CONFIG_MASK, _CONFIG_FLAGS = 1, 2, 3, 4, 5
_PACKET_HEADER, _VERDICT_HEADER, _PAYLOAD = 1, 2, 10
_BIND = 1
_COPY_PACKET = 2
_LARGE_PACKETS = 4


class QueuedPacket(msgspec.Struct, frozen=True):
    """A packet that waits in `queue` under the number `packet_id`; `content` is it, or as much of it as was asked for.

    `error` instead is the kernel's answer to a request: 0, or the number of an error.
    """

    queue: int
    packet_id: int = 0
    content: bytes = b""
    error: int | None = None


def bind_request(queue: int) -> bytes:
    """Ask to decide about the packets of `queue` from now on."""
    return _request(_CONFIG, queue, _attribute(_CONFIG_COMMAND, struct.pack("!BBH", _BIND, 0, socket.AF_INET)))


def copy_request(queue: int, byte_count: int, *, large: bool) -> bytes:
    """Ask for the first bytes of each packet of `queue`.

    With `large`, packets that the sender's kernel has not cut up yet come as they are; else one by one, as on a wire.
    """
    copy = _attribute(_CONFIG_COPY, struct.pack("!IB", byte_count, _COPY_PACKET))
    mask = _attribute(_CONFIG_MASK, struct.pack("!I", _LARGE_PACKETS))
    flags = _attribute(_CONFIG_FLAGS, struct.pack("!I", _LARGE_PACKETS if large else 0))
    return _request(_CONFIG, queue, copy + mask + flags)


def length_request(queue: int, packets: int) -> bytes:
    """Ask that so many packets may wait in `queue`; those beyond are dropped."""
    return _request(_CONFIG, queue, _attribute(_CONFIG_LENGTH, struct.pack("!I", packets)))


def verdict(queue: int, packet_id: int, decision: int, content: bytes | None = None) -> bytes:
    """Return the decision `ACCEPT` or `DROP` about a packet; `content` takes the place of the packet's own."""
    head = _attribute(_VERDICT_HEADER, struct.pack("!II", decision, packet_id))
    return _message(_VERDICT, _REQUEST, queue, head if content is None else head + _attribute(_PAYLOAD, content))


def decoded(datagram: bytes) -> Iterator[QueuedPacket]:
    """Return the packets and answers in what the kernel sent; messages of other kinds are passed over."""
    offset = 0
    while offset + _HEADER.size <= len(datagram):
        length, kind, _, _, _ = _HEADER.unpack_from(datagram, offset)
        body = offset + _HEADER.size
        if kind == _ERROR:
            yield QueuedPacket(-1, error=-struct.unpack_from("=i", datagram, body)[0])
        elif kind == _PACKET:
            yield _packet(datagram, body, offset + length)
        offset += _padded(max(length, _HEADER.size))


def _packet(datagram: bytes, start: int, end: int) -> QueuedPacket:
    _, _, queue = _QUEUE_OF.unpack_from(datagram, start)
    packet_id, content = 0, b""
    offset = start + _QUEUE_OF.size
    while offset + _ATTRIBUTE.size <= end:
        length, kind = _ATTRIBUTE.unpack_from(datagram, offset)
        kind &= _TYPE_MASK
        if kind == _PACKET_HEADER:
            (packet_id,) = struct.unpack_from("!I", datagram, offset + _ATTRIBUTE.size)
        elif kind == _PAYLOAD:
            content = datagram[offset + _ATTRIBUTE.size : offset + length]
        offset += _padded(max(length, _ATTRIBUTE.size))
    return QueuedPacket(queue, packet_id, content)


def _request(kind: int, queue: int, attributes: bytes) -> bytes:
    return _message(kind, _REQUEST | _ACKNOWLEDGE, queue, attributes)


def _message(kind: int, flags: int, queue: int, attributes: bytes) -> bytes:
    body = _QUEUE_OF.pack(socket.AF_UNSPEC, 0, queue) + attributes
    return _HEADER.pack(_HEADER.size + len(body), kind, flags, 0, 0) + body


def _attribute(kind: int, content: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(content)
    return _ATTRIBUTE.pack(length, kind) + content + b"\0" * (_padded(length) - length)


def _padded(length: int) -> int:
    return (length + 3) & ~3
