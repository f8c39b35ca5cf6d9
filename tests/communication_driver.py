"""The parts of stories of node communication: virtual time, a link of messages, a wire of bytes, a counting server.

Everything runs on the harness's own scheduler, so a story is the same every time. A link carries whole messages and
can be told which of them to lose; a wire carries bytes as TCP does: in order, in pieces of any size, until it is cut
(a reset), or goes mute (the peer died without a word).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faultline.harness.world.simulated.scheduler import Scheduler
from faultline.systems_under_test.patterns.data_replication.idempotent_receiver import ClientSessions, LastResponses
from faultline.systems_under_test.patterns.node_communication.batch_queue import BatchLimits
from faultline.systems_under_test.patterns.node_communication.pipelined_sender import (
    PipelinedSender,
    SequencedReceiver,
    SequencedRequest,
)
from faultline.systems_under_test.patterns.node_communication.request_batch import (
    BatchingClient,
    BatchReceiver,
    BatchRetry,
    RequestBatch,
    RequestFailed,
)
from faultline.systems_under_test.patterns.node_communication.socket_channel import SingleSocketChannel
from faultline.systems_under_test.patterns.node_communication.socket_listener import SocketListener
from faultline.systems_under_test.patterns.promise import Promise

ALICE = 1
MESSAGE_US = 100


class VirtualTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None

    def fire(self) -> None:
        callback, self.callback = self.callback, None
        if callback is not None:
            callback()


class VirtualTime:
    """The clock and the timers of all that take part in a story."""

    def __init__(self) -> None:
        self.scheduler = Scheduler()

    @property
    def now_us(self) -> int:
        return self.scheduler.now_us

    def monotonic_us(self) -> int:
        return self.scheduler.now_us

    def after(self, delay_us: int, callback: Callable[[], None]) -> VirtualTimer:
        timer = VirtualTimer(callback)
        self.scheduler.at(self.now_us + delay_us, timer.fire)
        return timer

    def at(self, time_us: int, action: Callable[[], Any]) -> None:
        self.scheduler.at(time_us, action)

    def pass_time(self, duration_us: int) -> None:
        end_us = self.now_us + duration_us
        self.scheduler.run(end_us)
        self.scheduler.now_us = end_us


class Crash(Exception):
    """The server dies in the middle of its work."""


class CountingServer:
    """Executes commands one by one and remembers them: `+` counts, `bad` is refused; a crash loses nothing durable."""

    def __init__(self, receiver_type: type[BatchReceiver] = BatchReceiver, saved_responses_max: int = 500) -> None:
        self.executed: list[bytes] = []
        self.crash_after: int | None = None
        sessions: Any = ClientSessions(LastResponses(saved_responses_max))
        sessions.register(ALICE)
        self.receiver = receiver_type(sessions, self.execute)

    def execute(self, command: bytes) -> bytes:
        if self.crash_after is not None and len(self.executed) >= self.crash_after:
            raise Crash
        if command == b"bad":
            raise RequestFailed("bad-request")
        self.executed.append(command)
        return str(len(self.executed)).encode()


class BatchStory:
    """A batching client and a counting server, with a link that takes `MESSAGE_US` for each message, one at a time."""

    def __init__(
        self,
        limits: BatchLimits | None = None,
        *,
        client_type: type[BatchingClient] = BatchingClient,
        receiver_type: type[BatchReceiver] = BatchReceiver,
        saved_responses_max: int = 500,
        **retry: int,
    ) -> None:
        self.time = VirtualTime()
        self.server = CountingServer(receiver_type, saved_responses_max)
        self.sent: list[tuple[int, RequestBatch]] = []
        self.lose_requests: Callable[[int], bool] = lambda number: False
        self.lose_responses: Callable[[int], bool] = lambda number: False
        self.refused_connections = 0
        self.link_is_free = True
        self._busy_until_us = 0
        self._attempts = 0
        self.client = client_type(
            self.time,
            self.time,
            BatchLimits() if limits is None else limits,
            self.transmit,
            retry=BatchRetry(**retry),
            link_is_free=lambda: self.link_is_free,
        )
        self.promises: list[Promise[bytes]] = []

    def send(self, *commands: bytes) -> list[Promise[bytes]]:
        promises = [self.client.send(command) for command in commands]
        self.promises += promises
        return promises

    def transmit(self, batch: RequestBatch) -> None:
        if self.refused_connections:
            self.refused_connections -= 1
            raise ConnectionRefusedError("the port is closed")
        self._attempts += 1
        attempt = self._attempts
        self.sent.append((self.time.now_us, batch))
        self._busy_until_us = max(self.time.now_us, self._busy_until_us) + MESSAGE_US
        self.time.at(self._busy_until_us, lambda: self._arrive(attempt, batch))

    def _arrive(self, attempt: int, batch: RequestBatch) -> None:
        if self.lose_requests(attempt):
            return
        try:
            response = self.server.receiver.process(ALICE, batch)
        except Crash:
            self.server.crash_after = None
            return
        if not self.lose_responses(attempt):
            self.time.at(self.time.now_us + MESSAGE_US, lambda: self.client.handle_response(response))

    def batches(self) -> list[list[bytes]]:
        return [[request.command for request in batch.requests] for _, batch in self.sent]


TRIP_US = 1_000
SERVICE_US = 100


class PipelineStory:
    """A pipelined sender and a receiver that serves one request at a time, a trip of a millisecond apart.

    What was transmitted arrives even when its connection has ended meanwhile, as bytes do that wait in a kernel.
    """

    def __init__(
        self,
        *,
        sender_type: type[PipelinedSender] = PipelinedSender,
        receiver_type: type[SequencedReceiver] = SequencedReceiver,
        saved_responses_max: int = 5,
        **options: Any,
    ) -> None:
        self.time = VirtualTime()
        self.executed: list[bytes] = []
        self.transmitted: list[tuple[int, int]] = []
        self.events: list[Any] = []
        self.lose: Callable[[SequencedRequest], bool] = lambda request: False
        self.holds_responses = False
        self.is_dead = False
        self.hang_ups = 0
        self.connection = 0
        self.unanswered: dict[int, int] = {}
        self.unanswered_max = 0
        self.held: list[tuple[int, Any]] = []
        self._busy_until_us = 0
        self.receiver = receiver_type(self.execute, saved_responses_max)
        self.sender = sender_type(
            "athens", self.time, self.time, self.transmit, self.hang_up, on_event=self.events.append, **options
        )
        self.connect()

    # -- the connection -----------------------------------------------------------------------------------------------

    def connect(self) -> None:
        self.connection += 1
        self.sender.connected(self.connection)

    def disconnect(self) -> None:
        self.sender.disconnected(self.connection)

    def hang_up(self) -> None:
        self.hang_ups += 1

    def transmit(self, request: SequencedRequest) -> None:
        self.transmitted.append((self.time.now_us, request.sequence))
        if not self.lose(request):
            connection = self.connection
            self.time.at(self.time.now_us + TRIP_US, lambda: self.arrive(connection, request))

    # -- the receiver's machine ---------------------------------------------------------------------------------------

    def execute(self, command: bytes) -> bytes:
        self.executed.append(command)
        return b"did " + command

    def arrive(self, connection: int, request: SequencedRequest) -> None:
        if self.is_dead:
            return
        self.unanswered[connection] = self.unanswered.get(connection, 0) + 1
        self.unanswered_max = max(self.unanswered_max, self.unanswered[connection])
        self._busy_until_us = max(self.time.now_us, self._busy_until_us) + SERVICE_US
        self.time.at(self._busy_until_us, lambda: self._serve(connection, request))

    def _serve(self, connection: int, request: SequencedRequest) -> None:
        response = self.receiver.receive(request)
        if self.holds_responses:
            self.held.append((connection, response))
        else:
            self.answer(connection, response)

    def answer(self, connection: int, response: Any) -> None:
        self.unanswered[connection] -= 1
        if response is not None and not self.is_dead:
            self.time.at(self.time.now_us + TRIP_US, lambda: self.sender.receive(connection, response))

    def release(self) -> None:
        self.holds_responses = False
        held, self.held = self.held, []
        for connection, response in held:
            self.answer(connection, response)

    # -- what callers do ----------------------------------------------------------------------------------------------

    def send(self, *commands: bytes) -> list[Promise[bytes]]:
        return [self.sender.send(command) for command in commands]


def outcome(promise: Promise[bytes]) -> bytes | str | None:
    """The value, the name of the error, or None while it is open."""
    if not promise.done:
        return None
    try:
        return promise.result()
    except Exception as error:
        return str(error) if isinstance(error, RequestFailed) else type(error).__name__


class ByteWire:
    """One direction of a connection: bytes in order, in pieces, with a delay; what is cut off never arrives."""

    def __init__(self, network: ByteNetwork, deliver: Callable[[bytes], None], ended: Callable[[], None]) -> None:
        self.network = network
        self.deliver = deliver
        self.ended = ended
        self.is_open = True
        self.written = b""
        self._arrives_us = 0

    def write(self, data: bytes) -> None:
        self.written += data
        time, piece = self.network.time, self.network.piece_bytes
        for start in range(0, len(data), piece):
            self._arrives_us = max(self._arrives_us, time.now_us + self.network.delay_us) + self.network.piece_us
            time.at(self._arrives_us, lambda part=data[start : start + piece]: self._arrive(part))

    def _arrive(self, part: bytes) -> None:
        if self.is_open and not self.network.is_mute:
            self.deliver(part)

    def close(self) -> None:
        """The other end hears of it, unless the network is mute."""
        time = self.network.time
        time.at(max(self._arrives_us, time.now_us + self.network.delay_us), lambda: self._end())

    def _end(self) -> None:
        if self.is_open and not self.network.is_mute:
            self.is_open = False
            self.ended()


class ByteNetwork:
    """Dials connections between channels and one listener. A reset ends a connection at the caller at once; at the
    listener too, or (`leaves_old_bytes`) only after the bytes that were under way have arrived there."""

    def __init__(self, time: VirtualTime, *, piece_bytes: int = 1_000, delay_us: int = 500) -> None:
        self.time = time
        self.piece_bytes = piece_bytes
        self.delay_us = delay_us
        self.piece_us = 0
        self.is_mute = False
        self.refuses = False
        self.listener: Any = None
        self.channel: Any = None
        self.connections: list[tuple[int, ByteWire, int, ByteWire]] = []
        self.dialled_us: list[int] = []

    def dial(self, attempt: int) -> None:
        self.dialled_us.append(self.time.now_us)
        self.time.at(self.time.now_us + self.delay_us, lambda: self._establish(attempt))

    def _establish(self, attempt: int) -> None:
        if self.is_mute:
            return
        if self.refuses:
            self.channel.lost(attempt)
            return
        to_listener = ByteWire(
            self, lambda data: self.listener.data_received(number, data), lambda: self.listener.lost(number)
        )
        to_channel = ByteWire(
            self, lambda data: self.channel.data_received(attempt, data), lambda: self.channel.lost(attempt)
        )
        number = self.listener.accepted(to_channel)
        self.connections.append((attempt, to_listener, number, to_channel))
        self.channel.opened(attempt, to_listener)

    def reset(self, *, leaves_old_bytes: bool = False) -> None:
        attempt, to_listener, number, to_channel = self.connections[-1]
        to_channel.is_open = False
        if not leaves_old_bytes:
            to_listener.is_open = False
            self.listener.lost(number)
        self.channel.lost(attempt)


class ChannelStory:
    """One channel, one listener, and a handler that answers `did …` and remembers what it handled."""

    def __init__(
        self,
        *,
        channel_type: type[SingleSocketChannel] = SingleSocketChannel,
        listener_type: type[SocketListener] = SocketListener,
        service_us: int = 0,
        piece_bytes: int = 1_000,
        **options: Any,
    ) -> None:
        self.time = VirtualTime()
        self.network = ByteNetwork(self.time, piece_bytes=piece_bytes)
        self.handled: list[bytes] = []
        self.errors: list[str] = []
        self.channel_errors: list[str] = []
        self.messages: list[bytes] = []
        self.service_us = service_us
        schedule = (lambda run: self.time.after(self.service_us, run)) if service_us else None
        self.listener = listener_type(
            self.time,
            self.time,
            self.handle,
            on_error=lambda peer, error: self.errors.append(f"{peer}: {type(error).__name__}: {error}"),
            schedule=schedule,
        )
        self.network.listener = self.listener
        self.channel = channel_type(
            "athens",
            self.time,
            self.time,
            self.dial,
            on_message=self.messages.append,
            on_error=lambda error: self.channel_errors.append(f"{type(error).__name__}: {error}"),
            **options,
        )

    def dial(self, attempt: int) -> None:
        self.network.dial(attempt)
        # The channel dials while it is being made, before a caller can hold it.
        self.time.at(self.time.now_us, lambda: setattr(self.network, "channel", self.channel))

    def handle(self, peer: str, request: bytes) -> bytes | None:
        self.handled.append(request)
        return None if request.startswith(b"no answer") else b"did " + request

    def connect(self) -> ChannelStory:
        self.time.pass_time(self.network.delay_us)
        return self
