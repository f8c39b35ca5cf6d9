"""The singular update queue between threads: many callers, one consumer thread that alone touches the state.

*Problem.* Threads that change shared state need locks, and a lock that is held during a disk write stops all of them.

*Idea.* Callers put requests into a queue and get a future at once; one thread takes them in order, runs the handler and
completes the future. The state belongs to that thread, so it needs no lock. A full queue holds its callers up, or
refuses them (`when_full`). The kinds of queue stand in `work_queues`.

The nodes of Faultline's systems run in one thread of control and use `patterns.data_replication.singular_update_queue`,
which keeps the order and the bound and needs no thread. This is the same pattern for programs that have threads. It is
an example, since no code of a node may depend on the scheduler of a machine.

`ThreadedUpdateQueue` polls, as printed: every `poll_ms` the consumer checks whether it was shut down. `Mailbox` is the
variant of Akka: no thread of its own, an executor runs it when there is work. `RequestChannel` is the variant of Go:
each request carries the channel for its own answer.

*Invariants.* SUQ-I1 at most one handler is active, always in the same thread. SUQ-I2 first in, first out. SUQ-I3 each
future is completed exactly once. SUQ-I4 after its handler. SUQ-I5 the queue never exceeds its capacity. SUQ-I6 the
state is touched by its owner only (`require_owner`).

*Tolerates.* Handlers that raise: their future fails, and the next request runs. Shutdown at any moment, before the
start and in the middle of a submission too: an accepted request is executed, or its future fails. Callers that cancel
or stop waiting: a request that has begun is finished, so that a retry needs an idempotent receiver.

*Does not tolerate.* Handlers that never return. Consumers that wait for each other's full queues would never wake up.
That is found before it happens: the consumer that would close the circle gets `WouldDeadlock` (also, rarely, at the
moment at which another consumer of the circle is just being woken up).

*Workloads.* None: the systems run on the queue of `patterns`. *Checkers.* The unit tests.

*Planted bugs.* SUQ-M1, SUQ-M4, SUQ-M6 and SUQ-M7, as variants in tests/test_threaded_update_queue_bugs.py.

Sources: Patterns of Distributed Systems ch. 13 and the article of 25 August 2020 (poll time 300 ms there, 2 ms in the
book). Deviations: shutdown before the start wins, and futures of accepted requests do not hang (the printed code sets
its flag in the thread and leaves them).
"""

from __future__ import annotations

import enum
import queue
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Generic, TypeVar

from update_queue.work_queues import CAPACITY, BoundedWorkQueue, QueueFull, QueueShutDown, WorkQueue

__all__ = [
    "POLL_MS",
    "Mailbox",
    "NotTheOwner",
    "RequestChannel",
    "ThreadedUpdateQueue",
    "WhenFull",
    "WouldDeadlock",
]

POLL_MS = 2
"""The time for which the consumer waits for work before it checks whether it was shut down."""

Request = TypeVar("Request")
Result = TypeVar("Result")

_here = threading.local()
"""In the thread of a consumer, its queue."""

_waiting = threading.Lock()
"""Held while a consumer decides to wait for another queue's room."""


class WhenFull(enum.Enum):
    """The treatment of callers by a full queue."""

    WAIT = "wait"
    REFUSE = "refuse"


class WouldDeadlock(RuntimeError):
    """The consumers would wait for each other's full queues for ever; the request was not accepted."""


class NotTheOwner(AssertionError):
    """State of an update queue was touched by another thread than its consumer."""


class ThreadedUpdateQueue(Generic[Request, Result]):
    """A queue in front of one handler, run by one thread that `start` starts."""

    def __init__(
        self,
        handler: Callable[[Request], Result],
        work: WorkQueue[tuple[Request, Future[Result]]] | None = None,
        *,
        when_full: WhenFull = WhenFull.WAIT,
        poll_ms: int = POLL_MS,
    ) -> None:
        self.work = BoundedWorkQueue[tuple[Request, Future[Result]]]() if work is None else work
        self._handler = handler
        self._when_full = when_full
        self._poll_s = poll_ms / 1_000
        self._shut_down = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._consume, daemon=True)
        self._waits_for: ThreadedUpdateQueue[object, object] | None = None

    def start(self) -> None:
        """Start the consumer; after a shutdown it ends at once."""
        self._thread.start()

    def submit(self, request: Request) -> Future[Result]:
        """Queue `request`, and return the future of its result, at once unless the queue is full and callers wait.

        Raises `QueueShutDown`, `QueueFull` when callers are refused, `WouldDeadlock`.
        """
        if self._shut_down.is_set():
            raise QueueShutDown("the queue was shut down")
        future: Future[Result] = Future()
        self._put((request, future))
        if self._ended.is_set():
            # It was accepted while the consumer ended, which will not look at the queue again.
            self._fail_what_waits()
        return future

    def shutdown(self) -> None:
        """Accept nothing more. The consumer ends within a poll; waiting requests fail, the running one is finished."""
        self._shut_down.set()
        # A consumer that was never started cannot fail the waiting requests itself.
        if self._thread.ident is None:
            self._end()

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait until the consumer has ended; return False when it has not within the time."""
        return self._ended.wait(timeout_s)

    def require_owner(self) -> None:
        """Raise `NotTheOwner` unless called by the consumer: for the state's own methods to call."""
        if threading.get_ident() != self._thread.ident:
            raise NotTheOwner("only the consumer of the queue may touch this state")

    def _consume(self) -> None:
        _here.consumer = self
        while not self._shut_down.is_set():
            try:
                request, future = self.work.get(self._poll_s)
            except queue.Empty:
                continue
            self._handle(request, future)
        self._end()

    def _handle(self, request: Request, future: Future[Result]) -> None:
        _complete(self._handler, request, future)

    def _end(self) -> None:
        self._ended.set()
        self._fail_what_waits()

    def _fail_what_waits(self) -> None:
        while True:
            try:
                _, future = self.work.get(0)
            except queue.Empty:
                return
            if future.set_running_or_notify_cancel():
                future.set_exception(QueueShutDown("the queue was shut down before the request ran"))

    def _put(self, item: tuple[Request, Future[Result]]) -> None:
        try:
            self.work.put(item, wait=False)
            return
        except QueueFull:
            if self._when_full is WhenFull.REFUSE:
                raise
        caller: ThreadedUpdateQueue[object, object] | None = getattr(_here, "consumer", None)
        if caller is None:
            self.work.put(item, wait=True)
            return
        # Under one lock for all queues: two consumers that looked at the same time would both see no circle, and close
        # it.
        with _waiting:
            self._refuse_circle(caller)
            caller._waits_for = self  # type: ignore[assignment]  # a queue of whatever requests
        try:
            self.work.put(item, wait=True)
        finally:
            caller._waits_for = None

    def _refuse_circle(self, caller: ThreadedUpdateQueue[object, object]) -> None:
        """Raise `WouldDeadlock` if `caller`, waiting for this queue, would wait for itself in the end."""
        queue_waited_for: ThreadedUpdateQueue[object, object] | None = self  # type: ignore[assignment]  # likewise
        while queue_waited_for is not None:
            if queue_waited_for is caller:
                raise WouldDeadlock("every consumer of the circle would wait for room in the queue of the next")
            queue_waited_for = queue_waited_for._waits_for


class Mailbox(Generic[Request, Result]):
    """An update queue without a thread of its own: an executor runs the consumer when there is work, never twice at
    once.
    """

    def __init__(self, handler: Callable[[Request], Result], executor: Executor, *, capacity: int = CAPACITY) -> None:
        self._handler = handler
        self._executor = executor
        self._capacity = capacity
        self._items: deque[tuple[Request, Future[Result]]] = deque()
        self._scheduled = False
        self._shut_down = False
        self._lock = threading.Lock()

    def submit(self, request: Request) -> Future[Result]:
        """Queue `request`, and return the future of its result. Raises `QueueFull` or `QueueShutDown`."""
        future: Future[Result] = Future()
        with self._lock:
            if self._shut_down:
                raise QueueShutDown("the mailbox was shut down")
            if len(self._items) >= self._capacity:
                raise QueueFull(f"{self._capacity} requests are waiting already")
            self._items.append((request, future))
            if not self._scheduled:
                self._scheduled = True
                self._executor.submit(self._run)
        return future

    def shutdown(self) -> None:
        """Accept nothing more and fail the waiting requests; the one that runs, if any, finishes."""
        with self._lock:
            self._shut_down = True
            left, self._items = self._items, deque()
        for _, future in left:
            if future.set_running_or_notify_cancel():
                future.set_exception(QueueShutDown("the mailbox was shut down before the request ran"))

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._items:
                    self._scheduled = False
                    return
                request, future = self._items.popleft()
            _complete(self._handler, request, future)


class RequestChannel(Generic[Request, Result]):
    """The variant of Go: one loop reads a shared channel, and each request carries the channel for its own answer.

    The answer is a completed future, so that an error travels like a result. Response channels are read in other
    threads, which send the answers on to clients: the loop never waits for a client.
    """

    def __init__(self, handler: Callable[[Request], Result], *, capacity: int = CAPACITY) -> None:
        self._handler = handler
        self._requests: queue.Queue[tuple[Request, queue.SimpleQueue[Future[Result]]] | None] = queue.Queue(capacity)
        self._loop = threading.Thread(target=self._serve, daemon=True)

    def start(self) -> None:
        """Start the loop."""
        self._loop.start()

    def put(self, request: Request) -> queue.SimpleQueue[Future[Result]]:
        """Send `request`, waiting for room, and return the channel on which the answer will come."""
        response: queue.SimpleQueue[Future[Result]] = queue.SimpleQueue()
        self._requests.put((request, response))
        return response

    def close(self) -> None:
        """End the loop after the requests that were sent before."""
        self._requests.put(None)
        self._loop.join()

    def _serve(self) -> None:
        while (item := self._requests.get()) is not None:
            request, response = item
            answer: Future[Result] = Future()
            _complete(self._handler, request, answer)
            response.put(answer)


def _complete(handler: Callable[[Request], Result], request: Request, future: Future[Result]) -> None:
    """Run the handler, unless the caller has cancelled, and complete the future with its result or its exception."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = handler(request)
    except Exception as error:
        future.set_exception(error)
    else:
        future.set_result(result)
