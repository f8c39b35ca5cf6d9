"""The caller's end of the wire to one peer: a channel, the pipeline of requests on it, and the batches of calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from faultline.harness.world.message_codec import MessageCodec
from faultline.harness.world.ports import NodeId, Ports, UnexpectedMessage
from faultline.systems_under_test.patterns.node_communication.batch_queue import BatchLimits, OversizeRequest
from faultline.systems_under_test.patterns.node_communication.deferred_answers import (
    DeferredBatchReceiver,
    DeferredSequencedReceiver,
)
from faultline.systems_under_test.patterns.node_communication.pipelined_sender import (
    PipelinedSender,
    SequencedResponse,
    SequenceRejected,
)
from faultline.systems_under_test.patterns.node_communication.request_batch import (
    BatchingClient,
    BatchResponse,
    BatchRetry,
    RequestBatch,
)
from faultline.systems_under_test.patterns.node_communication.single_socket_channel import READ_TIMEOUT_HEARTBEATS
from faultline.systems_under_test.patterns.node_communication.socket_channel import SingleSocketChannel, Wire
from faultline.systems_under_test.patterns.node_communication.socket_listener import SocketListener
from faultline.systems_under_test.reference.consistent_core.calls import (
    Call,
    key_of,
    lost,
    numbered_like,
    refused_as_too_large,
)
from faultline.systems_under_test.reference.consistent_core.wire_connections import Connections
from faultline.systems_under_test.reference.consistent_core.wire_events import CallAnswered

__all__ = ["CALLS", "MESSAGE", "WireLine", "WireParts", "WireTiming"]

CALLS = b"c"
"""The first byte of a frame with a request of the pipeline: a batch of calls."""

MESSAGE = b"m"
"""The first byte of a frame with a message that needs no answer."""

_QUEUED_MAX = 1_000
_INCARNATIONS_MAX = 1 << 30


@dataclass(frozen=True, slots=True)
class WireParts:
    """The classes that a wire is made of; a planted bug is a subclass in the place of one."""

    channel: type[SingleSocketChannel] = SingleSocketChannel
    listener: type[SocketListener] = SocketListener
    sender: type[PipelinedSender] = PipelinedSender
    receiver: type[DeferredSequencedReceiver] = DeferredSequencedReceiver
    batches: type[BatchingClient] = BatchingClient
    batch_receiver: type[DeferredBatchReceiver] = DeferredBatchReceiver
    line: type[WireLine] = field(default_factory=lambda: WireLine)


class WireTiming(msgspec.Struct, frozen=True, kw_only=True):
    """The interval of signs of life, the time that calls linger for a batch, and the most batches in flight."""

    heartbeat_interval_us: int
    linger_us: int
    in_flight_max: int

    @property
    def timeout_us(self) -> int:
        """The longest wait for an answer."""
        return self.heartbeat_interval_us * READ_TIMEOUT_HEARTBEATS


class WireLine:
    """One line: `send` a message or a call; all that comes of it is handed to `deliver`."""

    def __init__(
        self,
        ports: Ports,
        peer: NodeId,
        connections: Connections,
        deliver: Callable[[NodeId, Any], None],
        codec: MessageCodec,
        timing: WireTiming,
        parts: WireParts,
    ) -> None:
        self._ports = ports
        self._peer = peer
        self._deliver = deliver
        self._codec = codec
        self._timing = timing
        self._connection = 0
        # A pipeline numbers its requests from 1, so that of a restarted node needs another name.
        incarnation = ports.random.uniform_us(f"pipeline-{peer}", 0, _INCARNATIONS_MAX)
        self._sender = parts.sender(
            f"{ports.node_id}-{incarnation}",
            ports.clock,
            ports.timers,
            lambda request: self._channel.send_one_way(CALLS + codec.encode(request)),
            self._hang_up,
            in_flight_max=timing.in_flight_max,
            timeout_us=timing.timeout_us,
        )
        self._batches = parts.batches(
            ports.clock,
            ports.timers,
            BatchLimits(linger_us=timing.linger_us, queue_max=_QUEUED_MAX),
            self._transmit,
            # The pipeline has a timeout, and repeats what may be repeated: a batch is handed to it once.
            retry=BatchRetry(attempts_max=1, response_timeout_us=2 * timing.timeout_us),
            link_is_free=self._has_place,
        )
        self._channel = parts.channel(
            ports.node_id,
            ports.clock,
            ports.timers,
            lambda attempt: connections.dial(peer, attempt, self),
            on_message=self._handle_response,
            on_connection=self._connection_changed,
            heartbeat_interval_us=timing.heartbeat_interval_us,
        )

    def send(self, message: msgspec.Struct) -> None:
        """Send a message, which is dropped while there is no connection."""
        if self._channel.is_open:
            self._channel.send_one_way(MESSAGE + self._codec.encode(message))

    def call(self, call: Call) -> None:
        """Send a call, with others; its answer is delivered, or that it was lost."""
        try:
            answer = self._batches.send(self._codec.encode(call))
        except OversizeRequest:
            self._deliver(self._peer, refused_as_too_large(call))
            return
        answer.then(lambda result: self._answered(call, result), lambda _: self._lost(call))

    # What connections tell.

    def opened(self, attempt: int, wire: Wire) -> None:
        """Use the connection that was dialled as `attempt`."""
        self._channel.opened(attempt, wire)

    def data_received(self, attempt: int, data: bytes) -> None:
        """Take bytes of a connection."""
        self._channel.data_received(attempt, data)

    def lost(self, attempt: int) -> None:
        """Dial again, as a connection ended or was refused."""
        self._channel.lost(attempt)

    def _hang_up(self) -> None:
        self._channel.lost(self._channel.attempt)

    def _connection_changed(self, is_open: bool) -> None:
        if not is_open:
            self._sender.disconnected(self._connection)
            return
        if self._connection:
            self._ports.trace.sometimes("channel-reconnected")
        self._connection = self._channel.attempt
        self._sender.connected(self._connection)

    # Batches and their answers.

    def _has_place(self) -> bool:
        """Return whether the pipeline takes another batch; while it does not, calls gather."""
        if self._sender.in_flight + self._sender.waiting < self._timing.in_flight_max:
            return True
        self._ports.trace.sometimes("pipeline-full")
        return False

    def _transmit(self, batch: RequestBatch) -> None:
        if len(batch.requests) > 1:
            self._ports.trace.sometimes("batch-sent")
        self._sender.send(self._codec.encode(batch)).then(
            self._batch_answered, lambda error: self._batch_lost(batch, error)
        )

    def _handle_response(self, payload: bytes) -> None:
        try:
            response = msgspec.msgpack.decode(payload, type=SequencedResponse | SequenceRejected)
        except msgspec.MsgspecError as error:
            raise UnexpectedMessage(payload) from error
        self._sender.receive(self._connection, response)

    def _batch_answered(self, result: bytes) -> None:
        self._batches.handle_response(msgspec.msgpack.decode(result, type=BatchResponse))
        self._batches.link_freed()

    def _batch_lost(self, batch: RequestBatch, error: Exception) -> None:
        self._batches.handle_failure(batch.number, error)
        self._batches.link_freed()

    def _answered(self, call: Call, result: bytes) -> None:
        answer = self._codec.decode(result)
        self._ports.trace.emit(CallAnswered(self._peer, key_of(call), key_of(answer)))
        self._deliver(self._peer, numbered_like(call, answer))

    def _lost(self, call: Call) -> None:
        self._ports.trace.sometimes("call-lost-on-the-wire")
        self._deliver(self._peer, self._answer_to_lost(call))

    # A step of its own, so that a planted bug can override it.

    def _answer_to_lost(self, call: Call) -> Any:
        return lost(call)
