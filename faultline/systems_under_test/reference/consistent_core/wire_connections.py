"""Connections of bytes over the network port: what the ends of a single socket channel need below them.

A channel wants a stream that keeps order until it ends (`Wire`); the port brings messages, and may lose, repeat or hold
up each. So the bytes of a connection travel in numbered segments. A segment that comes again is dropped. A gap ends the
connection at both ends, as a reset does: what is lost is not sent again below the channel. Each dial makes up a name
that no other connection bears, so late segments of an old connection find none, and their sender is told to hang up.

All goes through `send`, in order: on one connection nothing may leave ahead of what waits for the disk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.node_communication.socket_channel import Wire

__all__ = ["WIRE_MESSAGES", "Caller", "Connections", "Dial", "DialAccepted", "End", "HangUp", "Listener", "Segment"]

_NAMES_MAX = 1 << 30
_DIAL_AGAIN_US = 25_000


class Dial(msgspec.Struct, frozen=True, tag="dial"):
    """A node or client asks for a connection of this name."""

    connection: str


class DialAccepted(msgspec.Struct, frozen=True, tag="dial-accepted"):
    """The connection is made."""

    connection: str


class Segment(msgspec.Struct, frozen=True, tag="segment"):
    """Bytes of a connection; `number` counts the segments of one direction from 1."""

    connection: str
    number: int
    data: bytes


class HangUp(msgspec.Struct, frozen=True, tag="hang-up"):
    """The connection has ended, or never was."""

    connection: str


WIRE_MESSAGES: tuple[type[msgspec.Struct], ...] = (Dial, DialAccepted, Segment, HangUp)
"""The messages that carry connections."""


class End(Protocol):
    """An end of a channel, which numbers its connections."""

    def data_received(self, number: int, data: bytes, /) -> None:
        """Take bytes of a connection."""

    def lost(self, number: int, /) -> None:
        """Learn that a connection ended."""


class Caller(End, Protocol):
    """The end that dials."""

    def opened(self, attempt: int, wire: Wire) -> None:
        """Use the connection that was dialled as `attempt`."""


class Listener(End, Protocol):
    """The end that accepts."""

    def accepted(self, wire: Wire) -> int:
        """Accept a connection, and return its number."""


class _Connection:
    """One end of a connection: implements `Wire`. `number` is that of its owner.

    `dialled_by` is the caller until the other end has accepted.
    """

    __slots__ = ("_connections", "dialled_by", "name", "number", "owner", "peer", "received", "sent")

    def __init__(self, connections: Connections, peer: NodeId, name: str, owner: End) -> None:
        self._connections = connections
        self.peer = peer
        self.name = name
        self.owner = owner
        self.number = 0
        self.sent = 0
        self.received = 0
        self.dialled_by: Caller | None = None

    def write(self, data: bytes) -> None:
        """Send bytes, after all those written before."""
        self.sent += 1
        self._connections.send(self.peer, Segment(self.name, self.sent, data))

    def close(self) -> None:
        """End the connection, and tell the other end."""
        self._connections.end(self)


class Connections:
    """The connections of one node or client; `listener` accepts those that others dial, None refuses them."""

    def __init__(self, ports: Ports) -> None:
        self.listener: Listener | None = None
        self._ports = ports
        self._open: dict[str, _Connection] = {}
        self._handlers: dict[type, Callable[[NodeId, Any], None]] = {
            Dial: self._handle_dial,
            DialAccepted: self._handle_accepted,
            Segment: self._handle_segment,
            HangUp: self._handle_hang_up,
        }

    def dial(self, peer: NodeId, attempt: int, caller: Caller) -> None:
        """Ask `peer` for a connection; `caller` is told when it is made, or refused."""
        for old in [each for each in self._open.values() if each.owner is caller]:
            self.end(old)
        made_up = self._ports.random.uniform_us(f"connection-{peer}", 0, _NAMES_MAX)
        connection = _Connection(self, peer, f"{self._ports.node_id}-{peer}-{made_up}", caller)
        connection.number = attempt
        connection.dialled_by = caller
        self._open[connection.name] = connection
        self._dial(connection)

    def take(self, source: NodeId, message: Any) -> bool:
        """Handle a message that carries connections; return False for any other."""
        handle = self._handlers.get(type(message))
        if handle is None:
            return False
        handle(source, message)
        return True

    def send(self, to: NodeId, message: msgspec.Struct) -> None:
        """Send a message of a connection."""
        self._ports.network.send(to, message)

    def end(self, connection: _Connection) -> None:
        """Forget a connection, and tell the other end; its owner knows."""
        if self._open.pop(connection.name, None) is not None:
            self.send(connection.peer, HangUp(connection.name))

    def _dial(self, connection: _Connection) -> None:
        """Ask until there is an answer: the first message of a connection may be lost like any other."""
        if connection.dialled_by is not None and connection.name in self._open:
            self.send(connection.peer, Dial(connection.name))
            self._ports.timers.after(_DIAL_AGAIN_US, lambda: self._dial(connection))

    def _handle_dial(self, source: NodeId, dial: Dial) -> None:
        if self.listener is None:
            self.send(source, HangUp(dial.connection))
            return
        if dial.connection not in self._open:
            connection = self._open[dial.connection] = _Connection(self, source, dial.connection, self.listener)
            connection.number = self.listener.accepted(connection)
        self.send(source, DialAccepted(dial.connection))

    def _handle_accepted(self, source: NodeId, accepted: DialAccepted) -> None:
        connection = self._open.get(accepted.connection)
        if connection is None:
            self.send(source, HangUp(accepted.connection))
        elif connection.dialled_by is not None:
            caller, connection.dialled_by = connection.dialled_by, None
            caller.opened(connection.number, connection)

    def _handle_segment(self, source: NodeId, segment: Segment) -> None:
        connection = self._open.get(segment.connection)
        if connection is None:
            self.send(source, HangUp(segment.connection))
        elif segment.number == connection.received + 1:
            connection.received += 1
            connection.owner.data_received(connection.number, segment.data)
        elif segment.number > connection.received:
            self._ports.trace.sometimes("connection-reset")
            self.end(connection)
            connection.owner.lost(connection.number)

    def _handle_hang_up(self, _: NodeId, hang_up: HangUp) -> None:
        connection = self._open.pop(hang_up.connection, None)
        if connection is not None:
            connection.owner.lost(connection.number)
