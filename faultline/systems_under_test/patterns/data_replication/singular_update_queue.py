"""Singular update queue: any caller may submit a change, and one consumer executes all changes one by one, in order.

*Problem.* State that many callers change needs protection, and locks held during slow work stop all of them.

*Idea.* Callers put requests into a bounded queue and get a promise; a single consumer takes them one by one, runs the
handler and completes the promise. The state belongs to the consumer alone, so it needs no locks. A full queue refuses a
caller or lets it wait for room, as the caller chooses.

A node lives in one thread already. The part of the pattern that still matters is that a handler is never entered while
another one runs. A submission from inside a handler is only queued. The consumer runs at once by default; with
`schedule` (say, `lambda run: timers.after(0, run)`) it runs when the scheduler says, and only when there is work, like
an Akka mailbox. It does not poll, so the poll time of the printed code has no counterpart.

A handler must not wait for a remote answer: it sends, returns, and the answer comes back as a new request (SUQ-R12).
Follow-up work goes to another queue. Queues that feed each other in a circle cannot deadlock, as a full one refuses.

*Invariants.* SUQ-I1 at most one handler runs at a time. SUQ-I2 requests are handled in the order in which they were
accepted. SUQ-I3 each promise is completed exactly once, and SUQ-I4 after its handler has run. SUQ-I5 the queue never
holds more than its capacity.

*Tolerates.* A handler that raises: its promise fails, `on_error` gets the error, and the next request runs. A shutdown
with queued requests: their promises fail. A caller that stops waiting: its request is executed all the same.

*Does not tolerate.* A crash: queued requests are lost, and their clients get no answer. An accepted request is not yet
done.

*Workloads.* All: every message and timer of `consistent-core` passes through such a queue.

*Checkers.* Linearizability. A handler that raises ends the node, and the run reports it.

*Planted bugs.* `answered-when-queued` (SUQ-M3). The others cannot be seen from outside, because a node's queue is
drained before any other event: tests/planted_bugs/test_update_queue_bugs.py has a consumer that dies of an exception
(SUQ-M2), a queue without a bound (SUQ-M4), silently dropped requests (SUQ-M5), promises abandoned at shutdown (SUQ-M8)
and another order (SUQ-M9). SUQ-M1, SUQ-M6 and SUQ-M7 need threads: `examples/update_queue`.

For programs that have threads the same pattern stands in `examples/update_queue`, with the kinds of queues that
Kafka, ZooKeeper and Disruptor use; `wal_request_consumer` puts one in front of a write-ahead log.

Sources: Patterns of Distributed Systems ch. 13 and the article of 25 August 2020; the request queue of Kafka's broker,
Akka's mailboxes, Zookeeper's request processors.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from faultline.systems_under_test.patterns.promise import AlreadyCompleted, Promise

__all__ = ["AlreadyCompleted", "Promise", "QueueFull", "QueueShutDown", "SingularUpdateQueue", "crash"]

Request = TypeVar("Request")
Result = TypeVar("Result")


class QueueFull(Exception):
    """The queue holds as many requests as it may; nothing was accepted."""


class QueueShutDown(Exception):
    """The queue was shut down; the request was not and will not be executed."""


class SingularUpdateQueue(Generic[Request, Result]):
    """A bounded queue in front of one handler that is never entered twice at the same time."""

    __slots__ = ("_capacity", "_handler", "_on_error", "_queue", "_running", "_schedule", "_shut_down", "_waiting")

    def __init__(
        self,
        handler: Callable[[Request], Result],
        capacity: int = 100,
        *,
        schedule: Callable[[Callable[[], None]], object] | None = None,
        on_error: Callable[[Request, Exception], None] | None = None,
    ) -> None:
        """`capacity` counts requests that wait, not the one that runs. Raises ValueError when it is below 1."""
        if capacity < 1:
            raise ValueError(f"a queue holds at least one request, not {capacity}")
        self._handler = handler
        self._capacity = capacity
        self._schedule = schedule
        self._on_error = on_error
        self._queue: deque[tuple[Request, Promise[Result]]] = deque()
        self._waiting: deque[Callable[[], None]] = deque()
        self._running = False
        self._shut_down = False

    def __len__(self) -> int:
        """Return the number of requests that wait."""
        return len(self._queue)

    @property
    def has_room(self) -> bool:
        """True if `submit` would accept a request now."""
        return len(self._queue) < self._capacity and not self._shut_down

    def submit(self, request: Request) -> Promise[Result]:
        """Queue `request` and return the promise of its result. Raises `QueueFull` or `QueueShutDown`."""
        if self._shut_down:
            raise QueueShutDown("the queue was shut down")
        if len(self._queue) >= self._capacity:
            raise QueueFull(f"{self._capacity} requests are waiting already")
        promise: Promise[Result] = Promise()
        if self._running or self._schedule is not None:
            self._queue.append((request, promise))
            if not self._running:
                self._wake()
        else:
            self._run(request, promise)
        return promise

    def post(self, request: Request) -> None:
        """Queue `request` without interest in its result: like `submit`, without the promise.

        An error of the handler goes to `on_error`; without one it is lost, as with a promise that is not used. Raises
        `QueueFull` or `QueueShutDown`.
        """
        if self._running or self._queue or self._shut_down or self._schedule is not None:
            self.submit(request)
            return
        self._running = True
        try:
            self._handler(request)
        except Exception as error:
            if self._on_error is not None:
                self._on_error(request, error)
        finally:
            self._running = False
        if self._queue or self._waiting:
            self._drain()

    def when_room(self, callback: Callable[[], None]) -> None:
        """Call `callback` once there is room, at once if there is: the caller waits, first come first served.

        It is also called at shutdown; a `submit` then says so.
        """
        if self.has_room or self._shut_down:
            callback()
        else:
            self._waiting.append(callback)

    def shutdown(self) -> None:
        """Accept nothing more and fail the waiting requests; the one that runs, if any, finishes."""
        self._shut_down = True
        queue, self._queue = self._queue, deque()
        waiting, self._waiting = self._waiting, deque()
        for _, promise in queue:
            promise.fail(QueueShutDown("the queue was shut down before the request ran"))
        for callback in waiting:
            callback()

    def _wake(self) -> None:
        # Set already now, so that the consumer is scheduled once however many requests come meanwhile.
        self._running = True
        assert self._schedule is not None
        self._schedule(self._drain)

    def _run(self, request: Request, promise: Promise[Result]) -> None:
        """Handle a request that need not wait, then the requests that it led to."""
        self._running = True
        try:
            self._handle(request, promise)
            if self._queue or self._waiting:
                self._drain()
        finally:
            self._running = False

    def _drain(self) -> None:
        self._running = True
        try:
            while True:
                if self._waiting and self.has_room:
                    self._waiting.popleft()()
                if not self._queue:
                    break
                self._handle(*self._queue.popleft())
        finally:
            self._running = False

    def _handle(self, request: Request, promise: Promise[Result]) -> None:
        try:
            result = self._handler(request)
        except Exception as error:
            promise.fail(error)
            if self._on_error is not None:
                self._on_error(request, error)
        else:
            promise.complete(result)


def crash(_: object, error: Exception) -> None:
    """Raise `error`, for `on_error`: it ends the process, since swallowing it would leave half a change."""
    raise error
