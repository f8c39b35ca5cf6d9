"""Frames: how messages keep their borders on a TCP stream, which has none.

A frame is a 4-byte big-endian length followed by that many bytes. The length is bounded, so that a stranger that
speaks another protocol on the port is refused at once instead of being waited for forever.
"""

from __future__ import annotations

import struct

__all__ = ["LENGTH_BYTES", "MAX_FRAME_BYTES", "FrameDecoder", "FrameError", "encode_frame"]

MAX_FRAME_BYTES = 16 * 1024 * 1024
"""The longest payload a frame may carry."""

_LENGTH = struct.Struct(">I")

LENGTH_BYTES = _LENGTH.size
"""The size of the length before each payload."""


class FrameError(Exception):
    """The bytes on a connection are not frames; the connection is of no more use."""


def encode_frame(payload: bytes) -> bytes:
    """Return `payload` with its length in front. Raises FrameError when it is longer than `MAX_FRAME_BYTES`."""
    if len(payload) > MAX_FRAME_BYTES:
        raise FrameError(f"a payload of {len(payload)} bytes is longer than the {MAX_FRAME_BYTES} a frame may carry")
    return _LENGTH.pack(len(payload)) + payload


class FrameDecoder:
    """Cuts a stream of bytes, however it was split on its way, back into payloads."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    @property
    def pending_bytes(self) -> int:
        """Return the number of bytes of an unfinished frame that have arrived."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[bytes]:
        """Return the payloads that `data` completed, in order. Raises FrameError when a length is out of bounds."""
        buffer = self._buffer
        buffer += data
        payloads: list[bytes] = []
        start, end = 0, len(buffer)
        while end - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(buffer, start)
            if length > MAX_FRAME_BYTES:
                raise FrameError(f"a frame announces {length} bytes; no more than {MAX_FRAME_BYTES} are allowed")
            if end - start - _LENGTH.size < length:
                break
            start += _LENGTH.size
            payloads.append(bytes(buffer[start : start + length]))
            start += length
        del buffer[:start]
        return payloads
