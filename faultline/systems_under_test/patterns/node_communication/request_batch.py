"""Request Batch: put several small requests into one message, so that they share the cost of sending and processing it.

*Problem.* A request of a few bytes costs nearly as much as one of a few thousand: a trip over the network (say 100 µs),
a wake-up of the receiver, a flush of its disk. Hundreds of small requests, one by one, leave a link of 1 Gbit/s idle.

*Idea.* `send` only queues a request (`BatchQueue`). The request gets a number and its caller a promise. The queue is
sent as one batch when its bytes exceed a limit, or when its oldest request has waited for the *linger*. The receiver
takes the batch apart, executes each request in order, as if it had come alone, and answers all of them in one message.
The numbers match each answer with its promise. A batch is a means of transport and not a transaction: a request that
fails stops no other.

                       size, or linger of the oldest
    send ──► queue ──────────────────────────────────► RequestBatch ──► one by one
    promise ◄── pending, by number ◄── BatchResponse ◄──┘

The book leaves three decisions open. A request that is larger than the batch size is refused when it is queued, because
at the head of the queue it would block all others. The queue is bounded, and a full queue blocks or refuses its callers
(`WhenFull`). Closing sends the queued requests, or fails them; no promise stays without an outcome.

A batch that was not answered is sent again as a whole, after a pause that doubles. The receiver may have executed a
part of it, so it must be an idempotent receiver, and must keep answers for all requests that can come again:
`saved_responses_min`, not five. With a linger of 0, Kafka's default, a request is sent at once while the link is free.
Batches then form by themselves while it is not free (a full request pipeline), and that is when they help.

There are two users in `consistent-core`: `BatchingClient`, for requests of clients and of servers that forward them
(`wire=channel`; there `deferred_answers` has the receiver, as its answers come later); and `BatchQueue` alone, by which
a leader (option `batch_linger_ms`) appends and flushes several commands as one.

*Invariants.* RB-I1 requests, answers and completed promises correspond one to one. RB-I2 requests are executed in the
order in which they were queued, and the final state is the same as without batches. RB-I3 no batch exceeds its size,
and no request waits longer than the linger while the link is free. RB-I4 at rest no promise is pending. RB-I5 each
request number of a client has exactly one effect.

*Tolerates.* Lost, late and repeated batches and answers; answers that come before `send` returned; answers to no
pending request; a receiver that dies in the middle of a batch; full queues.

*Does not tolerate.* A receiver without duplicate detection, or one that keeps too few answers. A crash of the sender,
which loses the queued requests: their callers know only that these were queued.

*Workloads.* `register` on `consistent-core` with `batch_linger_ms`; counters in the component's own transcripts.

*Checkers.* Linearizability and availability; invariant RB-I3 in runs.

*Planted bugs.* In `consistent-core`: `batch-without-linger-timer` (RB-M1), `oversize-blocks-batch` (RB-M3) and
`ack-batch-before-flush` (RB-M10); with `wire=channel`, `numbered-within-the-batch` (RB-M5) and
`batch-answered-by-position` (RB-M12). The others break the component's claims in
tests/planted_bugs/test_batch_bugs.py.

Deviations from the printed code: the promise is registered before the request can be sent, numbers are taken in one
step, times are microseconds throughout (the sample compares nanoseconds with milliseconds), the sender sleeps until
something is due, and a batch that failed leaves nothing pending.

Sources: Patterns of Distributed Systems ch. 31; the producer of Kafka (`batch.size` 16 KB, `linger.ms` 0); the group
flush of BookKeeper's log; Nagle (RFC 896), the same idea in TCP.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from faultline.harness.world.ports import Clock, Timer, Timers
from faultline.systems_under_test.patterns.data_replication.idempotent_receiver import (
    ClientSessions,
    RequestDiscarded,
    UnknownSession,
)
from faultline.systems_under_test.patterns.node_communication.batch_queue import (
    BatchLimits,
    BatchQueue,
    BatchQueueClosed,
    BatchQueueFull,
    OversizeRequest,
)
from faultline.systems_under_test.patterns.promise import Promise

__all__ = [
    "BatchFailed",
    "BatchReceiver",
    "BatchResponse",
    "BatchRetry",
    "BatchingClient",
    "NumberedRequest",
    "NumberedResponse",
    "RequestBatch",
    "RequestFailed",
    "saved_responses_min",
]


class BatchFailed(Exception):
    """The batch was not answered, however often it was sent; whether its requests were executed is unknown."""


class RequestFailed(Exception):
    """A request of a batch was refused by the receiver's code; the text is the error code of the answer."""


def saved_responses_min(in_flight_batches_max: int, limits: BatchLimits) -> int:
    """Return the number of answers per client that a receiver must keep: one for each request that can come again.

    A batch is sent again as a whole, so all requests of all batches in flight count.
    """
    return in_flight_batches_max * limits.requests_max


class NumberedRequest(msgspec.Struct, frozen=True):
    """One request: its number at its client, which is its correlation id, and the serialized command."""

    number: int
    command: bytes


class RequestBatch(msgspec.Struct, frozen=True, tag="request-batch"):
    """Requests that travel together; sent again, it keeps its number and its content."""

    number: int
    requests: list[NumberedRequest]


class NumberedResponse(msgspec.Struct, frozen=True):
    """The answer to one request: a result, or the code of its own error."""

    number: int
    error: str | None = None
    result: bytes = b""


class BatchResponse(msgspec.Struct, frozen=True, tag="batch-response"):
    """The answers to batch `number`, one per request, in its order."""

    number: int
    responses: list[NumberedResponse]


class BatchRetry(msgspec.Struct, frozen=True, kw_only=True):
    """The longest time for an answer, the most times a batch is sent (three retries), and the first pause."""

    response_timeout_us: int = 1_000_000
    attempts_max: int = 4
    backoff_us: int = 10_000


class _Attempts:
    """A batch on its way: how often it was sent, and the timer that decides when to stop waiting or to send again."""

    __slots__ = ("batch", "sent", "timer")

    def __init__(self, batch: RequestBatch) -> None:
        self.batch = batch
        self.sent = 0
        self.timer: Timer | None = None


_SERIALIZE = msgspec.msgpack.Encoder()


class BatchingClient:
    """The client's side: `send` returns the promise of an answer; `transmit` puts a batch on the channel.

    `transmit` may raise OSError, which counts as a failed attempt. `unknown_responses` counts answers to no pending
    request.
    """

    def __init__(
        self,
        clock: Clock,
        timers: Timers,
        limits: BatchLimits,
        transmit: Callable[[RequestBatch], None],
        *,
        retry: BatchRetry | None = None,
        link_is_free: Callable[[], bool] | None = None,
    ) -> None:
        self.unknown_responses = 0
        self._timers = timers
        self._transmit = transmit
        self._retry = BatchRetry() if retry is None else retry
        self._request_number = 0
        self._batch_number = 0
        self._pending: dict[int, Promise[bytes]] = {}
        self._on_the_way: dict[int, _Attempts] = {}
        self._queue = self._new_queue(clock, timers, limits, link_is_free)

    @property
    def pending(self) -> int:
        """The number of promises that are not completed."""
        return len(self._pending)

    def send(self, command: bytes) -> Promise[bytes]:
        """Queue `command`. Raises `OversizeRequest`, `BatchQueueFull`, `BatchQueueClosed`: then it is not executed."""
        request = NumberedRequest(self._next_request_number(), command)
        promise: Promise[bytes] = Promise()
        # Registered first: the answer may be there before this method returns.
        self._pending[request.number] = promise
        try:
            self._queue.add(request, len(_SERIALIZE.encode(request)))
        except (OversizeRequest, BatchQueueFull, BatchQueueClosed):
            del self._pending[request.number]
            raise
        return promise

    def link_freed(self) -> None:
        """Send the batch that is due, now that the link is free."""
        self._queue.send_due()

    def handle_response(self, response: BatchResponse) -> None:
        """Complete the promises of a batch; an answer to no pending batch is only counted."""
        attempts = self._on_the_way.pop(response.number, None)
        if attempts is None:
            self.unknown_responses += len(response.responses)
            return
        self._stop_waiting(attempts)
        for each in response.responses:
            self._complete(each)
        # Requests that the receiver left out of its answer must not stay pending for ever.
        self._fail_requests(attempts.batch, BatchFailed(f"batch {response.number} was answered without this request"))

    def handle_failure(self, batch_number: int, error: Exception) -> None:
        """Send a batch that was lost, or whose answer was, again after a pause, or give its requests up."""
        attempts = self._on_the_way.get(batch_number)
        if attempts is None:
            return
        self._stop_waiting(attempts)
        if attempts.sent < self._retry.attempts_max:
            pause_us = self._retry.backoff_us << (attempts.sent - 1)
            attempts.timer = self._timers.after(pause_us, lambda: self._attempt(attempts))
            return
        del self._on_the_way[batch_number]
        self._fail_requests(attempts.batch, BatchFailed(f"batch {batch_number}, sent {attempts.sent} times: {error}"))

    def close(self, *, flush: bool = True) -> None:
        """Accept nothing more. Send the queued requests, or (`flush` off) complete all promises with an error now."""
        if flush:
            self._queue.close()
            return
        unsent = self._queue.drain()
        self._queue.close()
        self._fail(unsent, BatchQueueClosed("closed before the request was sent"))
        for attempts in list(self._on_the_way.values()):
            self._stop_waiting(attempts)
            self._fail_requests(attempts.batch, BatchFailed("closed before an answer came"))
        self._on_the_way.clear()

    def _new_queue(
        self, clock: Clock, timers: Timers, limits: BatchLimits, link_is_free: Callable[[], bool] | None
    ) -> BatchQueue[NumberedRequest]:
        return BatchQueue(clock, timers, limits, self._send_batch, link_is_free=link_is_free)

    def _next_request_number(self) -> int:
        self._request_number += 1
        return self._request_number

    def _send_batch(self, requests: list[NumberedRequest]) -> None:
        self._batch_number += 1
        attempts = self._on_the_way[self._batch_number] = _Attempts(RequestBatch(self._batch_number, requests))
        self._attempt(attempts)

    def _attempt(self, attempts: _Attempts) -> None:
        number = attempts.batch.number
        attempts.sent += 1
        silence = TimeoutError("no answer in time")
        attempts.timer = self._timers.after(
            self._retry.response_timeout_us, lambda: self.handle_failure(number, silence)
        )
        try:
            self._transmit(attempts.batch)
        except OSError as error:
            self.handle_failure(number, error)

    def _stop_waiting(self, attempts: _Attempts) -> None:
        if attempts.timer is not None:
            attempts.timer.cancel()
            attempts.timer = None

    def _complete(self, response: NumberedResponse) -> None:
        promise = self._pending.pop(response.number, None)
        if promise is None:
            self.unknown_responses += 1
        elif response.error is None:
            promise.complete(response.result)
        else:
            promise.fail(RequestFailed(response.error))

    def _fail_requests(self, batch: RequestBatch, error: Exception) -> None:
        self._fail(batch.requests, error)

    def _fail(self, requests: list[NumberedRequest], error: Exception) -> None:
        for request in requests:
            promise = self._pending.pop(request.number, None)
            if promise is not None:
                promise.fail(error)


class BatchReceiver:
    """The server's side, which takes a batch apart, executes each request once and in order, and answers all of them.

    `execute` performs a command, or raises `RequestFailed` to refuse it. Any other exception is a bug of the server and
    ends the batch, as it would end a single request. Answers are to be sent after the effects are durable.
    """

    def __init__(self, sessions: ClientSessions[NumberedResponse], execute: Callable[[bytes], bytes]) -> None:
        self._sessions = sessions
        self._execute = execute

    def process(self, client_id: int, batch: RequestBatch) -> BatchResponse:
        """Return the answers to `batch` of `client_id`."""
        return BatchResponse(batch.number, [self._respond(client_id, request) for request in batch.requests])

    def _respond(self, client_id: int, request: NumberedRequest) -> NumberedResponse:
        try:
            response, _ = self._sessions.execute(client_id, request.number, lambda: self._perform(request))
        except UnknownSession:
            return NumberedResponse(request.number, "unknown-session")
        except RequestDiscarded:
            return NumberedResponse(request.number, "request-discarded")
        return response

    def _perform(self, request: NumberedRequest) -> NumberedResponse:
        try:
            return NumberedResponse(request.number, None, self._execute(request.command))
        except RequestFailed as error:
            return NumberedResponse(request.number, str(error))
