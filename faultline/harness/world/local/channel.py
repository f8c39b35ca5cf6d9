"""Single-socket channels: one TCP connection carries all messages of one direction (Joshi, "Single Socket Channel").

Over one connection messages arrive in the order they were sent. When it breaks, what was under way is lost and
the channel connects again by itself; messages sent to a peer that cannot be reached are lost at once, so that a peer
that comes back is not flooded with a stale past.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable

from faultline.harness.world.framing import FrameDecoder, FrameError
from faultline.harness.world.local.handshake import (
    HANDSHAKE_BYTES_MAX,
    HANDSHAKE_TIMEOUT_S,
    Caller,
    Listener,
    RunSecret,
)
from faultline.harness.world.local.kept_messages import LOST_S, Note
from faultline.harness.world.message_codec import WireError

__all__ = ["HOST", "WRITE_BUFFER_BYTES_MAX", "Address", "InboundConnection", "OutgoingChannel", "takes_more"]

HOST = "127.0.0.1"
"""The address everything in the local world listens on; only the ports differ."""

Address = tuple[str, int]
"""Host and port."""

WRITE_BUFFER_BYTES_MAX = 16 * 1024 * 1024
"""Beyond this many unread bytes messages to a stalled peer are lost instead of filling the memory."""

_BACKOFF_S_MIN = 0.01
_BACKOFF_S_MAX = 0.16


def takes_more(transport: asyncio.Transport) -> bool:
    """Return whether the connection is up and its other end reads."""
    return not transport.is_closing() and transport.get_write_buffer_size() <= WRITE_BUFFER_BYTES_MAX


class _ChannelProtocol(asyncio.Protocol):
    """The connection of an OutgoingChannel; lives as long as the TCP connection does.

    `on_proven` is called with its transport once the other end has proved itself, and `closed` is set at its end.
    """

    def __init__(
        self,
        handshake: Caller,
        on_proven: Callable[[asyncio.Transport], None],
        on_payload: Callable[[bytes], None] | None,
    ) -> None:
        self._decoder = FrameDecoder()
        self._handshake: Caller | None = handshake
        self._on_proven = on_proven
        self._on_payload = on_payload
        self._transport: asyncio.Transport | None = None
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(HANDSHAKE_TIMEOUT_S, self._hang_up)
        self.closed: asyncio.Future[None] = loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        assert self._handshake is not None
        self._transport = transport
        transport.write(self._handshake.hello)

    def data_received(self, data: bytes) -> None:
        if self._handshake is None and self._on_payload is None:
            return
        try:
            for payload in self._decoder.feed(data):
                self._take(payload)
        except (FrameError, WireError) as error:
            sys.stderr.write(f"connection to a node dropped: {error}\n")
            self._hang_up()

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline.cancel()
        if not self.closed.done():
            self.closed.set_result(None)

    def _take(self, payload: bytes) -> None:
        assert self._transport is not None
        if self._handshake is not None:
            self._transport.write(self._handshake.answer(payload))
            self._handshake = None
            self._deadline.cancel()
            self._on_proven(self._transport)
        elif self._on_payload is not None:
            self._on_payload(payload)

    def _hang_up(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class OutgoingChannel:
    """A connection from `name` to the one peer `peer`, at which both prove themselves, and which heals itself.

    `address` is asked before each attempt and may answer None while the peer's place is unknown. `on_payload`
    receives what the peer sends back over the same connection, `note` each frame once its fate is known.
    """

    def __init__(
        self,
        name: str,
        peer: str,
        secret: RunSecret,
        address: Callable[[], Address | None],
        on_payload: Callable[[bytes], None] | None = None,
        note: Note | None = None,
    ) -> None:
        self._name = name
        self._peer = peer
        self._secret = secret
        self._address = address
        self._on_payload = on_payload
        self._note = note
        self._transport: asyncio.Transport | None = None
        self._connecting = True
        # What waits for the connection, with the time of its sending.
        self._queue: list[tuple[bytes, float]] = []
        self.lost = 0
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._stay_connected())

    def send(self, frame: bytes) -> None:
        """Send `frame`, or lose it when the peer cannot be reached."""
        if self._transport is not None:
            if takes_more(self._transport):
                self._transport.write(frame)
                if self._note is not None:
                    now_s = self._loop.time()
                    self._note(frame, now_s, now_s)
                return
        elif self._connecting:
            self._queue.append((frame, self._loop.time()))
            return
        self._lose((frame, self._loop.time()))

    def close(self) -> None:
        """Drop the connection and whatever it had not sent."""
        self._task.cancel()
        self._connecting = False
        self._lose(*self._queue)
        self._queue.clear()
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    async def _stay_connected(self) -> None:
        backoff_s = _BACKOFF_S_MIN
        while True:
            self._connecting = True
            protocol = await self._connect()
            if protocol is not None:
                await protocol.closed
                if self._transport is not None:
                    backoff_s = _BACKOFF_S_MIN
            self._transport = None
            self._connecting = False
            self._lose(*self._queue)
            self._queue.clear()
            await asyncio.sleep(backoff_s)
            backoff_s = min(backoff_s * 2, _BACKOFF_S_MAX)

    async def _connect(self) -> _ChannelProtocol | None:
        address = self._address()
        if address is None:
            return None
        handshake = Caller(self._secret, self._name, self._peer)
        try:
            _, protocol = await asyncio.get_running_loop().create_connection(
                lambda: _ChannelProtocol(handshake, self._proven, self._on_payload), *address
            )
        except OSError:
            return None
        return protocol

    def _proven(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        transport.write(b"".join(frame for frame, _ in self._queue))
        if self._note is not None:
            now_s = self._loop.time()
            for frame, sent_s in self._queue:
                self._note(frame, sent_s, now_s)
        self._queue.clear()

    def _lose(self, *frames: tuple[bytes, float]) -> None:
        self.lost += len(frames)
        if self._note is not None:
            for frame, sent_s in frames:
                self._note(frame, sent_s, LOST_S)


class InboundConnection(asyncio.Protocol):
    """A connection that a peer or client made to us: a handshake, then payloads.

    `on_hello(name, connection)` is called when the caller has proved its name, then `on_payload(name, payload)`;
    `on_lost(name, connection)` once, when such a connection is gone. Any other caller is hung up on.
    """

    def __init__(
        self,
        handshake: Listener,
        on_hello: Callable[[str, InboundConnection], None],
        on_payload: Callable[[str, bytes], None],
        on_lost: Callable[[str, InboundConnection], None],
    ) -> None:
        self._on_hello = on_hello
        self._on_payload = on_payload
        self._on_lost = on_lost
        self._decoder = FrameDecoder()
        self._handshake = handshake
        self._name: str | None = None
        self._deadline = asyncio.get_running_loop().call_later(HANDSHAKE_TIMEOUT_S, self.close)
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            for payload in self._decoder.feed(data):
                self._take(payload)
            if self._name is None and self._decoder.pending_bytes > HANDSHAKE_BYTES_MAX:
                raise WireError(f"more than {HANDSHAKE_BYTES_MAX} bytes and no hello")
        except (FrameError, WireError) as error:
            sys.stderr.write(f"connection from {self._name or 'a stranger'} dropped: {error}\n")
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline.cancel()
        if self._name is not None:
            self._on_lost(self._name, self)

    def send(self, frame: bytes) -> None:
        """Send `frame` back to the caller; lost when the caller does not read."""
        if self.transport is not None and takes_more(self.transport):
            self.transport.write(frame)

    def close(self) -> None:
        """Hang up on the peer."""
        if self.transport is not None:
            self.transport.abort()

    def _take(self, payload: bytes) -> None:
        if self._name is not None:
            self._on_payload(self._name, payload)
            return
        self.send(self._handshake.take(payload))
        self._name = self._handshake.caller
        if self._name is not None:
            self._deadline.cancel()
            self._on_hello(self._name, self)
