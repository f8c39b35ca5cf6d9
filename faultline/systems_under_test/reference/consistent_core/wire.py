"""The wire of `consistent-core` with `wire=channel`: its servers and clients talk over single socket channels.

    node or client ── call ──► batches ──► pipeline ──┐
          │                                           ├──► channel ──► connection ──► network port
          └────────── message ────────────────────────┘

Each layer owns one thing. A *connection* (`wire_connections`) carries bytes in order until it ends. A *channel* keeps
one connection to its peer: it dials again, and shows and demands signs of life. A *pipeline* has a bounded number of
requests in flight, in order, each executed once. *Batches* put calls into one request, for as long as they linger or
the pipeline is full. `wire_line` joins them at the caller's end. This module is the listener's end, and the door: it
stands in the place of the network port.

Clients' requests are *calls*, also those that a server forwards: an answer belongs to its call because the wire says
so, whatever number it bears. Servers send each other *messages*, which need no answer below their own: the replicated
log has a pipeline in which each request names its predecessor (RP-R12). A message is dropped while there is no
connection, and its sender repeats it. A call waits for the connection.

A call that was lost fails, and its caller is told as by a server that knows no leader: it may have been executed.

Nothing overtakes on a channel: `send_ahead` sends like `send`, so heartbeats wait for the disk as well. The listener
keeps the last answers of each incarnation of its callers, and calls that its node never answers, until it restarts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome
from faultline.harness.system import PortClient
from faultline.harness.world.framing import FrameError
from faultline.harness.world.message_codec import MessageCodec, WireError
from faultline.harness.world.ports import (
    Clock,
    Network,
    Node,
    NodeId,
    NodeStatus,
    Ports,
    RandomSource,
    Storage,
    Timers,
    Trace,
)
from faultline.systems_under_test.patterns.data_replication.singular_update_queue import QueueFull
from faultline.systems_under_test.patterns.node_communication.deferred_answers import DeferredSequencedReceiver
from faultline.systems_under_test.patterns.node_communication.pipelined_sender import SequencedRequest
from faultline.systems_under_test.patterns.node_communication.request_batch import RequestBatch
from faultline.systems_under_test.patterns.node_communication.socket_channel import ReadTimeout
from faultline.systems_under_test.patterns.promise import Promise
from faultline.systems_under_test.reference.consistent_core.calls import Answer, Call, key_of
from faultline.systems_under_test.reference.consistent_core.wire_connections import Connections
from faultline.systems_under_test.reference.consistent_core.wire_events import BatchExecuted
from faultline.systems_under_test.reference.consistent_core.wire_line import (
    MESSAGE,
    WireLine,
    WireParts,
    WireTiming,
)

__all__ = ["ChannelPorts", "ClientOverChannels", "NodeOverChannels"]

_OF_THE_OTHER_END = (FrameError, QueueFull, ReadTimeout, WireError, msgspec.MsgspecError)
"""Errors that end a connection. Any other is one of the node, and ends it."""


class ChannelPorts:
    """The ports of a node or client with channels to `members` in the place of the network: `Ports` and `Network`."""

    def __init__(
        self,
        ports: Ports,
        members: Sequence[NodeId],
        messages: Sequence[type[msgspec.Struct]],
        timing: WireTiming,
        parts: WireParts,
    ) -> None:
        self.node_id: NodeId = ports.node_id
        self.clock: Clock = ports.clock
        self.timers: Timers = ports.timers
        self.storage: Storage = ports.storage
        self.random: RandomSource = ports.random
        self.trace: Trace = ports.trace
        self.network: Network = self
        self.receive: Callable[[NodeId, Any], None]
        """The `receive` of the node or client, which is made later."""
        self._ports = ports
        self._members = members
        self._timing = timing
        self._parts = parts
        self._codec = MessageCodec(messages)
        self._connections = Connections(ports)
        self._lines: dict[NodeId, WireLine] = {}
        self._receivers: dict[NodeId, DeferredSequencedReceiver] = {}
        self._unanswered: dict[tuple[NodeId, str], list[Promise[bytes]]] = {}

    def listen(self) -> None:
        """Accept connections, and dial all other members."""
        self._connections.listener = self._parts.listener(
            self.clock,
            self.timers,
            lambda peer, payload: self._handle(NodeId(peer), payload),
            on_error=_raise_own,
            heartbeat_interval_us=self._timing.heartbeat_interval_us,
        )
        for member in self._members:
            if member != self.node_id:
                self._line(member)

    def take(self, source: NodeId, message: Any) -> None:
        """Handle what the network brings."""
        if not self._connections.take(source, message):
            self.receive(source, message)

    # Network.

    def send(self, to: NodeId, message: msgspec.Struct) -> None:
        """Send a message, make a call, or answer one. An answer for which no call waits is late, and dropped."""
        if isinstance(message, Answer):
            for promise in self._unanswered.pop((to, key_of(message)), ()):
                promise.complete(self._codec.encode(message))
        elif to == self.node_id:
            self._ports.network.send(to, message)
        elif isinstance(message, Call):
            self._line(to).call(message)
        else:
            self._line(to).send(message)

    def send_ahead(self, to: NodeId, message: msgspec.Struct) -> None:
        """Send it in its turn: on a channel nothing overtakes."""
        self.send(to, message)

    def _line(self, peer: NodeId) -> WireLine:
        line = self._lines.get(peer)
        if line is None:
            line = self._lines[peer] = self._parts.line(
                self._ports,
                peer,
                self._connections,
                lambda source, message: self.receive(source, message),
                self._codec,
                self._timing,
                self._parts,
            )
        return line

    # The listener's end.

    def _handle(self, source: NodeId, payload: bytes) -> Promise[bytes] | None:
        if payload[:1] == MESSAGE:
            self.receive(source, self._codec.decode(payload[1:]))
            return None
        receiver = self._receivers.get(source)
        if receiver is None:
            receiver = self._receivers[source] = self._parts.receiver(
                lambda request: self._begin_batch(source, request), self._timing.in_flight_max
            )
        answer: Promise[bytes] = Promise()
        request = msgspec.msgpack.decode(payload[1:], type=SequencedRequest)
        receiver.take(request, lambda response: answer.complete(self._codec.encode(response)))
        return answer

    def _begin_batch(self, source: NodeId, request: SequencedRequest) -> Promise[bytes]:
        self.trace.emit(BatchExecuted(request.sender, request.epoch, request.sequence))
        answered: Promise[bytes] = Promise()
        receiver = self._parts.batch_receiver(lambda command: self._begin_call(source, command))
        batch = msgspec.msgpack.decode(request.command, type=RequestBatch)
        receiver.process(batch).then(lambda response: answered.complete(self._codec.encode(response)))
        return answered

    def _begin_call(self, source: NodeId, command: bytes) -> Promise[bytes]:
        call = self._codec.decode(command)
        answer: Promise[bytes] = Promise()
        self._unanswered.setdefault((source, key_of(call)), []).append(answer)
        self.receive(source, call)
        return answer


class NodeOverChannels:
    """A node whose network is `ports`: implements `Node`."""

    def __init__(self, node: Node, ports: ChannelPorts) -> None:
        self._node = node
        self._ports = ports
        ports.receive = node.receive

    def start(self) -> None:
        """Start the node, and let others reach it."""
        self._node.start()
        self._ports.listen()

    def receive(self, source: NodeId, message: Any) -> None:
        """Take what the network brings."""
        self._ports.take(source, message)

    def status(self) -> NodeStatus:
        """Return the status of the node."""
        return self._node.status()


class ClientOverChannels:
    """A client whose network is `ports`: implements `PortClient`."""

    def __init__(self, client: PortClient, ports: ChannelPorts) -> None:
        self._client = client
        self._ports = ports
        ports.receive = client.receive

    def start(self) -> None:
        """Start the client."""
        self._client.start()

    def invoke(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        """Perform `operation`, over channels."""
        self._client.invoke(operation, done)

    def receive(self, source: NodeId, message: Any) -> None:
        """Take what the network brings."""
        self._ports.take(source, message)


def _raise_own(_: str, error: Exception) -> None:
    if not isinstance(error, _OF_THE_OTHER_END):
        raise error
