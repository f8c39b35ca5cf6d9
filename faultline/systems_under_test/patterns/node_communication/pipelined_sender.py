"""Both ends of a request pipeline that keeps order across retries: a sender that goes back, a receiver that refuses.

The sender numbers its requests when it first transmits them, 1, 2, 3 … within an *epoch*. The receiver executes only
the next number. It answers a number that it has executed from memory. It rejects a number that comes too early and
names the one that it expects, and the sender transmits again from there on, in order. So a lost request is never
overtaken, and no request is executed twice. (Raft reaches the same end in another way: each request names its
predecessor, as in the replicated log.)

Numbers must have no gaps. When the sender gives up a request with an unknown outcome, it gives up all that were
transmitted. It then begins a new epoch, in which the receiver expects 1 again. When requests in flight are lost, the
sender sends them again, which this order makes safe, or reports them (`OnLoss`).

Callers get promises. A request waits for a place, but no caller waits longer than the timeout (ten heartbeat
intervals). A transmitted request then fails with `FateUnknown`, and any other with `NotSent`. Messages that answer no
request, such as watch events, go to `on_event` and take up no place.

Sources: Patterns of Distributed Systems ch. 32 and the article of 20 August 2020; KIP-98, Kafka's idempotent producer,
whose producer id and epoch these are; Zab, in which a follower refuses a proposal that does not follow its last one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Any

import msgspec

from faultline.harness.world.ports import Clock, Timer, Timers
from faultline.systems_under_test.patterns.node_communication.request_pipeline import (
    Arrival,
    OutOfOrderResponse,
    RequestPipeline,
    SequenceGuard,
)
from faultline.systems_under_test.patterns.promise import Promise

__all__ = [
    "SAVED_RESPONSES_MAX",
    "FateUnknown",
    "NotSent",
    "OnLoss",
    "PipelinedSender",
    "SequenceRejected",
    "SequencedReceiver",
    "SequencedRequest",
    "SequencedResponse",
]

REQUEST_TIMEOUT_US = 1_000_000
"""Ten heartbeat intervals of 100 ms: the read timeout of the channel below."""

SAVED_RESPONSES_MAX = 5
"""The number of answers that a receiver keeps per sender: at least as many as may be in flight."""


class FateUnknown(Exception):
    """The request was transmitted and not answered: it may have been executed, or may still be."""


class NotSent(Exception):
    """The request waited for a place until its time was over; it was not and will not be executed."""


class OnLoss(Enum):
    """The treatment of requests in flight when the connection breaks."""

    GO_BACK = "go-back"
    """They are transmitted again, in order, over the next connection."""
    FAIL_ALL = "fail-all"
    """Their callers learn that the outcome is unknown."""


class SequencedRequest(msgspec.Struct, frozen=True, tag="sequenced-request"):
    """Request `sequence` of `sender` in `epoch`; `attempt` counts transmissions, so that old rejections are known."""

    sender: str
    epoch: int
    sequence: int
    attempt: int
    command: bytes


class SequencedResponse(msgspec.Struct, frozen=True, tag="sequenced-response"):
    """The answer to request `sequence`."""

    epoch: int
    sequence: int
    result: bytes


class SequenceRejected(msgspec.Struct, frozen=True, tag="sequence-rejected"):
    """Transmission `attempt` came too early, or from an epoch that is over: the receiver expects `expected` first."""

    epoch: int
    attempt: int
    expected: int


class _Request:
    """One request of the sender; `sequence` is 0 until it is transmitted."""

    __slots__ = ("command", "deadline_us", "promise", "sequence")

    def __init__(self, command: bytes, deadline_us: int) -> None:
        self.command = command
        self.deadline_us = deadline_us
        self.promise: Promise[bytes] = Promise()
        self.sequence = 0


class PipelinedSender:
    """The sender of commands to one peer, several at a time; `transmit` puts a message on the open connection.

    The owner tells of connections (`connected`, `disconnected`) and hands over their messages (`receive`). Connections
    have rising numbers, and messages of an old one are dropped. `hang_up` closes the current one.
    """

    def __init__(
        self,
        name: str,
        clock: Clock,
        timers: Timers,
        transmit: Callable[[SequencedRequest], None],
        hang_up: Callable[[], None],
        *,
        in_flight_max: int = 5,
        on_loss: OnLoss = OnLoss.GO_BACK,
        timeout_us: int = REQUEST_TIMEOUT_US,
        on_event: Callable[[Any], None] | None = None,
    ) -> None:
        self.epoch = 1
        self._name = name
        self._clock = clock
        self._timers = timers
        self._transmit = transmit
        self._hang_up = hang_up
        self._on_loss = on_loss
        self._timeout_us = timeout_us
        self._on_event = on_event
        self._pipeline = self._new_pipeline(in_flight_max)
        self._connection = 0
        self._is_connected = False
        self._next_sequence = 1
        self._attempt = 0
        self._went_back_at = 0
        self._waiting: deque[_Request] = deque()
        self._in_flight: deque[_Request] = deque()
        self._timer: Timer | None = None

    @property
    def in_flight(self) -> int:
        """The number of requests that are not answered on this connection."""
        return self._pipeline.in_flight(self._name)

    @property
    def waiting(self) -> int:
        """The number of requests that wait for a place, or to be transmitted again."""
        return len(self._waiting)

    def send(self, command: bytes) -> Promise[bytes]:
        """Send `command`, at once while there is a place, and return the promise of the answer."""
        request = _Request(command, self._clock.monotonic_us() + self._timeout_us)
        self._waiting.append(request)
        self._fill_places()
        self._arm()
        return request.promise

    def connected(self, connection: int) -> None:
        """Begin to use this connection, with all its places free."""
        self._connection = connection
        self._is_connected = True
        self._fill_places()

    def disconnected(self, connection: int) -> None:
        """Take back, or fail, the requests that were in flight on the connection that ended."""
        if connection != self._connection or not self._is_connected:
            return
        self._is_connected = False
        self._release_places()
        if self._on_loss is OnLoss.GO_BACK:
            self._take_back(list(self._in_flight))
        else:
            self._give_up_transmitted("the connection broke")

    def receive(self, connection: int, message: Any) -> None:
        """Handle a message that came over `connection`; one of an old connection is dropped."""
        if connection != self._connection or not self._is_connected:
            return
        if isinstance(message, SequencedResponse):
            self._handle_response(message)
        elif isinstance(message, SequenceRejected):
            self._handle_rejection(message)
        else:
            self._handle_event(message)

    def _fill_places(self) -> None:
        while self._is_connected and self._waiting and self._pipeline.has_room(self._name):
            request = self._waiting.popleft()
            if not request.sequence:
                request.sequence = self._next_sequence
                self._next_sequence += 1
            # Recorded first: the answer may come before `transmit` returns.
            self._pipeline.sent(self._name, request.sequence, self._clock.monotonic_us())
            self._in_flight.append(request)
            self._attempt += 1
            self._transmit(SequencedRequest(self._name, self.epoch, request.sequence, self._attempt, request.command))

    def _take_back(self, requests: list[_Request]) -> None:
        """Put `requests` before all that wait, in their order."""
        for request in requests:
            self._in_flight.remove(request)
        self._waiting.extendleft(reversed(requests))
        self._went_back_at = self._attempt + 1

    def _handle_response(self, response: SequencedResponse) -> None:
        if response.epoch != self.epoch:
            return
        try:
            if not self._pipeline.received(self._name, response.sequence, self._clock.monotonic_us()):
                return
        except OutOfOrderResponse:
            # After a protocol error no message of this connection can be trusted.
            self._hang_up()
            self.disconnected(self._connection)
            return
        request = self._in_flight.popleft()
        request.promise.complete(response.result)
        self._fill_places()
        self._arm()

    def _handle_rejection(self, rejection: SequenceRejected) -> None:
        # A rejection of a transmission from before the sender went back is old; acting on it would go back twice.
        if rejection.epoch != self.epoch or rejection.attempt < self._went_back_at:
            return
        if not any(request.sequence == rejection.expected for request in self._in_flight):
            # The receiver has forgotten what it executed, so nothing can be ordered after it.
            self._release_places()
            self._give_up_transmitted(f"the receiver went back to request {rejection.expected}")
        else:
            self._go_back(rejection.expected)
        self._fill_places()
        self._arm()

    def _handle_event(self, event: Any) -> None:
        if self._on_event is not None:
            self._on_event(event)

    def _give_up_transmitted(self, reason: str) -> None:
        """Fail all requests that were transmitted; the next one begins a new epoch."""
        # A gap in the numbers would block the receiver for good, so none of the transmitted requests can be saved
        # alone.
        transmitted = [request for request in (*self._in_flight, *self._waiting) if request.sequence]
        self._waiting = deque(request for request in self._waiting if not request.sequence)
        self._in_flight.clear()
        if transmitted:
            self.epoch += 1
            self._next_sequence = 1
        for request in transmitted:
            request.promise.fail(FateUnknown(f"{reason}; whether request {request.sequence} was executed is unknown"))

    def _time_is_over(self) -> None:
        self._timer = None
        now_us = self._clock.monotonic_us()
        oldest = self._in_flight[0] if self._in_flight else self._waiting[0]
        if oldest.deadline_us <= now_us and oldest.sequence:
            if self._is_connected:
                self._hang_up()
                self._is_connected = False
            self._release_places()
            self._give_up_transmitted("no answer in time")
        while self._waiting and self._waiting[0].deadline_us <= now_us:
            self._waiting.popleft().promise.fail(NotSent("no place became free in time"))
        self._arm()

    def _arm(self) -> None:
        """Set one timer, for the oldest request."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._in_flight or self._waiting:
            oldest = self._in_flight[0] if self._in_flight else self._waiting[0]
            left_us = max(0, oldest.deadline_us - self._clock.monotonic_us())
            self._timer = self._timers.after(left_us, self._time_is_over)

    # Each step below is a method of its own, so that a planted bug can override it.

    def _new_pipeline(self, in_flight_max: int) -> RequestPipeline:
        return RequestPipeline(in_flight_max)

    def _release_places(self) -> None:
        self._pipeline.reset(self._name)

    def _go_back(self, expected: int) -> None:
        """Transmit `expected` and all after it again, in order, within the limit."""
        self._pipeline.go_back(self._name, expected)
        self._take_back([request for request in self._in_flight if request.sequence >= expected])


class SequencedReceiver:
    """The receiver, which executes the requests of each sender in order and once, and keeps its last answers.

    `execute` runs a command; its answer must leave only when its effect is durable, and so must what this object knows.
    """

    def __init__(self, execute: Callable[[bytes], bytes], saved_responses_max: int = SAVED_RESPONSES_MAX) -> None:
        self._execute = execute
        self._saved_max = saved_responses_max
        self._guard = SequenceGuard()
        self._epochs: dict[str, int] = {}
        self._saved: dict[str, dict[int, SequencedResponse]] = {}

    def receive(self, request: SequencedRequest) -> SequencedResponse | SequenceRejected | None:
        """Return the answer; None for a request of an epoch that is over, which its sender has given up."""
        epoch = self._epochs.setdefault(request.sender, request.epoch)
        if request.epoch < epoch:
            return None
        if request.epoch > epoch:
            self._begin(request.sender, request.epoch)
        arrival = self._judge(request)
        if arrival is Arrival.NEXT:
            return self._perform(request)
        if arrival is Arrival.DUPLICATE:
            return self._saved.get(request.sender, {}).get(request.sequence)
        return SequenceRejected(request.epoch, request.attempt, self._guard.expected(request.sender))

    def _begin(self, sender: str, epoch: int) -> None:
        self._epochs[sender] = epoch
        self._guard.forget(sender)
        self._saved.pop(sender, None)

    def _judge(self, request: SequencedRequest) -> Arrival:
        return self._guard.arrived(request.sender, request.sequence)

    def _perform(self, request: SequencedRequest) -> SequencedResponse | None:
        response = SequencedResponse(request.epoch, request.sequence, self._execute(request.command))
        self._save(request.sender, response)
        return response

    def _save(self, sender: str, response: SequencedResponse) -> None:
        saved = self._saved.setdefault(sender, {})
        saved[response.sequence] = response
        if len(saved) > self._saved_max:
            del saved[min(saved)]
