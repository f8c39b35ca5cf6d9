"""The network port over TCP: a node's channels to its peers and answers to its callers, a client's to nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from faultline.harness.world.framing import encode_frame
from faultline.harness.world.local.channel import Address, InboundConnection, OutgoingChannel
from faultline.harness.world.local.handshake import Listener, RunSecret
from faultline.harness.world.local.kept_messages import KeptMessages
from faultline.harness.world.local.outbox import Outbox
from faultline.harness.world.message_codec import MessageCodec, WireError
from faultline.harness.world.ports import NodeId, UnexpectedMessage

__all__ = ["ClientNetwork", "NodeNetwork"]

Receive = Callable[[NodeId, Any], None]


class NodeNetwork:
    """A node's network: one outgoing channel per peer, and everyone else is answered over their own connection.

    Messages leave through the outbox, so none overtakes a write that it may promise. `receive` gets what arrives, from
    those that know the `secret` of the run.
    """

    def __init__(
        self,
        node_id: NodeId,
        secret: RunSecret,
        peers: Mapping[NodeId, Address],
        codec: MessageCodec,
        outbox: Outbox,
        receive: Receive,
    ) -> None:
        self._secret = secret
        self._node_id = node_id
        self._peers = peers
        self._codec = codec
        self._outbox = outbox
        self._receive = receive
        self._channels: dict[NodeId, OutgoingChannel] = {}
        self._callers: dict[str, InboundConnection] = {}

    def connect(self) -> None:
        """Open the channels to all peers."""
        for peer in self._peers:
            self._channels[peer] = OutgoingChannel(self._node_id, peer, self._secret, partial(self._peers.get, peer))

    async def listen(self, host: str, port: int = 0) -> tuple[asyncio.Server, int]:
        """Accept connections on `port` of `host`, or on any free one; returns the server and its port."""
        server = await asyncio.get_running_loop().create_server(self._accept, host, port)
        return server, server.sockets[0].getsockname()[1]

    def send(self, to: NodeId, message: msgspec.Struct) -> None:
        """Send after every earlier write of this node is durable."""
        frame = self._codec.encode_frame(message)
        self._outbox.submit(lambda: self._release(to, frame))

    def send_ahead(self, to: NodeId, message: msgspec.Struct) -> None:
        """Send at once."""
        self._release(to, self._codec.encode_frame(message))

    def _release(self, to: NodeId, frame: bytes) -> None:
        channel = self._channels.get(to)
        if channel is not None:
            channel.send(frame)
        elif to == self._node_id:
            message = self._codec.decode(frame[4:])
            asyncio.get_running_loop().call_soon(self._receive, self._node_id, message)
        elif (caller := self._callers.get(to)) is not None:
            caller.send(frame)

    def _accept(self) -> InboundConnection:
        handshake = Listener(self._secret, self._node_id)
        return InboundConnection(handshake, self._caller_came, self._payload_came, self._caller_left)

    def _caller_came(self, name: str, connection: InboundConnection) -> None:
        self._callers[name] = connection

    def _payload_came(self, name: str, payload: bytes) -> None:
        try:
            self._receive(NodeId(name), self._codec.decode(payload))
        except UnexpectedMessage as error:
            raise WireError(str(error)) from error

    def _caller_left(self, name: str, connection: InboundConnection) -> None:
        if self._callers.get(name) is connection:
            del self._callers[name]


class ClientNetwork:
    """A client's network: a channel to each node it has something to say to, opened when it first does.

    Its messages are `kept`, in a world that keeps any.
    """

    def __init__(
        self,
        client_id: NodeId,
        secret: RunSecret,
        address_of: Callable[[NodeId], Address | None],
        codec: MessageCodec,
        receive: Receive,
        kept: KeptMessages | None = None,
    ) -> None:
        self._secret = secret
        self._kept = kept
        self._loop = asyncio.get_running_loop()
        self._client_id = client_id
        self._address_of = address_of
        self._codec = codec
        self._receive = receive
        self._channels: dict[NodeId, OutgoingChannel] = {}
        self._closed = False

    def send(self, to: NodeId, message: msgspec.Struct) -> None:
        """Send `message` to the node `to`."""
        if self._closed:
            return
        channel = self._channels.get(to)
        if channel is None:
            channel = self._channels[to] = OutgoingChannel(
                self._client_id,
                to,
                self._secret,
                lambda: self._address_of(to),
                lambda payload: self._take(to, payload),
                partial(self._kept.note, (self._client_id, to)) if self._kept is not None else None,
            )
        channel.send(self._codec.encode_frame(message))

    def send_ahead(self, to: NodeId, message: msgspec.Struct) -> None:
        """The same as `send`: a client's writes are not durable anyway."""
        self.send(to, message)

    def close(self) -> None:
        """Hang up on all nodes; nothing is received any more."""
        self._closed = True
        for channel in self._channels.values():
            channel.close()

    def _take(self, source: NodeId, payload: bytes) -> None:
        if self._closed:
            return
        if self._kept is not None:
            now_s = self._loop.time()
            self._kept.note((source, self._client_id), encode_frame(payload), now_s, now_s)
        self._receive(source, self._codec.decode(payload))
