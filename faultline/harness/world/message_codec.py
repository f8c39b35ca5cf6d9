"""The messages of a system as MessagePack, for the wires that carry them.

The codec is built from the message types a system declares; their tags tell them apart on the wire.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

import msgspec

from faultline.harness.errors import HarnessError
from faultline.harness.world.framing import encode_frame

__all__ = ["MessageCodec", "WireError"]


class WireError(Exception):
    """A connection carried bytes that do not belong there, and is of no more use."""


class MessageCodec:
    """Encodes messages, also into frames, and decodes payloads, for one system's message types."""

    def __init__(self, messages: Sequence[type[msgspec.Struct]]) -> None:
        self._encoder = msgspec.msgpack.Encoder()
        try:
            # A union of types known only now has no static type.
            self._decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(Union[tuple(messages)])  # noqa: UP007  # made at run time
        except TypeError as error:
            raise HarnessError(
                f"The system's messages cannot be told apart on the wire: {error}.",
                "Give each message type in `messages` its own tag (`tag=True`).",
            ) from error

    def encode(self, message: msgspec.Struct) -> bytes:
        """Return `message` as bytes."""
        return self._encoder.encode(message)

    def encode_frame(self, message: msgspec.Struct) -> bytes:
        """Return `message` as a frame, ready for the socket."""
        return encode_frame(self.encode(message))

    def decode(self, payload: bytes) -> Any:
        """Return the message in `payload`. Raises WireError when it is none of the system's."""
        try:
            return self._decoder.decode(payload)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise WireError(f"{payload[:80]!r} is not a message of this system: {error}") from error
