"""The queue in front of a request batch: it collects requests, and decides when they leave together.

A batch is sent when the queued bytes *exceed* its size (requests that fill it exactly still wait for the linger), when
as many requests wait as it may hold, or when the oldest has waited for the linger. It takes as many as fit from the
head, in order. The rest keep their order and their own linger. The queue is bounded. A full queue refuses its callers
or blocks them: in a node that only handles events this means that their requests wait outside the queue. A request that
fits into no batch is refused when it is queued, because at the head it would block all others.

No loop polls: one timer is set for the oldest request. All times are microseconds of the monotonic clock.

Sources: Patterns of Distributed Systems ch. 31; the accumulator of Kafka's producer (`batch.size`, `linger.ms`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Generic, Protocol, TypeVar

import msgspec

from faultline.harness.world.ports import Clock, Timer, Timers

__all__ = [
    "BATCH_SIZE_BYTES",
    "BatchLimits",
    "BatchQueue",
    "BatchQueueClosed",
    "BatchQueueFull",
    "OversizeRequest",
    "WhenFull",
    "within_size",
]

BATCH_SIZE_BYTES = 16 * 1024
"""The largest size of a batch: Kafka's default."""

Item = TypeVar("Item")


class OversizeRequest(ValueError):
    """The request is larger than the batch size; it was not queued, and will not be executed."""


class BatchQueueFull(Exception):
    """As many requests wait as are allowed; this one was not queued."""


class BatchQueueClosed(Exception):
    """The queue was closed; requests that had not been sent will not be executed."""


class WhenFull(Enum):
    """The fate of a request when the queue is full."""

    BLOCK = "block"
    """It waits outside the queue, in order: its caller is blocked."""
    REFUSE = "refuse"
    """Its caller gets `BatchQueueFull`."""


class BatchLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The largest batch in bytes and requests, the time a request lingers for others, and the number that may wait.

    A hundred requests wait at most, as in the book's sample; a batch can hold all of them when they are small.
    """

    size_bytes_max: int = BATCH_SIZE_BYTES
    requests_max: int = 100
    linger_us: int = 0
    queue_max: int = 100
    when_full: WhenFull = WhenFull.BLOCK

    def __post_init__(self) -> None:
        if self.size_bytes_max < 1 or self.requests_max < 1 or self.linger_us < 0:
            raise ValueError(f"a batch holds at least one request and one byte, and lingers for 0 or more us: {self}")
        if self.queue_max < self.requests_max:
            raise ValueError(f"a queue of {self.queue_max} never fills a batch of {self.requests_max} requests")


class _Sized(Protocol):
    """An item that carries data, such as a log entry."""

    @property
    def data(self) -> bytes: ...


SizedItem = TypeVar("SizedItem", bound=_Sized)


def within_size(items: list[SizedItem], size_bytes_max: int) -> list[SizedItem]:
    """Return the longest beginning of `items` whose data fit into `size_bytes_max`.

    It holds the first item in any case, since a later batch would be no larger.
    """
    left_bytes = size_bytes_max
    for count, item in enumerate(items):
        left_bytes -= len(item.data)
        if left_bytes < 0:
            return items[: max(1, count)]
    return items


class _Waiting(Generic[Item]):
    """One request in the queue, with its size, and since when it waits."""

    __slots__ = ("item", "queued_us", "size_bytes")

    def __init__(self, item: Item, size_bytes: int, queued_us: int) -> None:
        self.item = item
        self.size_bytes = size_bytes
        self.queued_us = queued_us


class BatchQueue(Generic[Item]):
    """The queue: it hands items to `transmit` in batches, when they exceed the size or the oldest has lingered.

    `link_is_free` says whether a batch may be sent now; the owner of the link calls `send_due` when it becomes free.
    When the linger is over, `on_due` is called in its place if it is given, so that an owner with an update queue can
    send it through there.
    """

    def __init__(
        self,
        clock: Clock,
        timers: Timers,
        limits: BatchLimits,
        transmit: Callable[[list[Item]], None],
        *,
        link_is_free: Callable[[], bool] | None = None,
        on_due: Callable[[], None] | None = None,
    ) -> None:
        self._clock = clock
        self._timers = timers
        self._limits = limits
        self._transmit = transmit
        self._link_is_free = link_is_free
        self._on_due = on_due
        self._queue: deque[_Waiting[Item]] = deque()
        self._blocked: deque[_Waiting[Item]] = deque()
        self._size_bytes = 0
        self._timer: Timer | None = None
        self._closed = False

    def __len__(self) -> int:
        """Return the number of items that are queued."""
        return len(self._queue)

    @property
    def blocked(self) -> int:
        """The number of callers that wait for room."""
        return len(self._blocked)

    def add(self, item: Item, size_bytes: int) -> None:
        """Queue `item`, and send what is due. Raises `OversizeRequest`, `BatchQueueFull`, `BatchQueueClosed`."""
        if self._closed:
            raise BatchQueueClosed("the queue was closed")
        self._refuse_oversize(size_bytes)
        waiting = _Waiting(item, size_bytes, self._clock.monotonic_us())
        if len(self._queue) < self._limits.queue_max:
            self._accept(waiting)
            self.send_due()
        elif self._limits.when_full is WhenFull.REFUSE:
            raise BatchQueueFull(f"{len(self._queue)} requests are waiting already")
        else:
            self._blocked.append(waiting)

    def send_due(self) -> None:
        """Send every batch that is due, while the link is free; then wait for the next to become due."""
        while self._is_due() and (self._link_is_free is None or self._link_is_free()):
            # Blocked callers move up before the batch is sent: sending may call back into this queue.
            batch = self._take()
            self._admit_blocked()
            self._transmit(batch)
        self._arm()

    def close(self) -> None:
        """Accept nothing more, and send the queued items as soon as the link is free, without lingering."""
        self._closed = True
        self.send_due()

    def drain(self) -> list[Item]:
        """Take out and return all items that were not sent, in order; blocked callers' requests are included."""
        items = [waiting.item for waiting in (*self._queue, *self._blocked)]
        self._queue.clear()
        self._blocked.clear()
        self._size_bytes = 0
        self._arm()
        return items

    def _is_due(self) -> bool:
        return bool(self._queue) and (self._closed or self._is_full() or self._has_lingered())

    def _is_full(self) -> bool:
        limits = self._limits
        return self._size_bytes > limits.size_bytes_max or len(self._queue) >= limits.requests_max

    def _has_lingered(self) -> bool:
        return self._clock.monotonic_us() - self._queue[0].queued_us >= self._limits.linger_us

    def _arm(self) -> None:
        """Set one timer, for the oldest request; a request that is due and waits for the link needs none."""
        if not self._queue:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        elif self._timer is None and not self._is_due():
            left_us = self._queue[0].queued_us + self._limits.linger_us - self._clock.monotonic_us()
            self._timer = self._timers.after(left_us, self._linger_is_over)

    def _linger_is_over(self) -> None:
        self._timer = None
        if self._on_due is not None:
            self._on_due()
        else:
            self.send_due()

    def _refuse_oversize(self, size_bytes: int) -> None:
        if size_bytes > self._limits.size_bytes_max:
            raise OversizeRequest(
                f"a request of {size_bytes} bytes does not fit into a batch of {self._limits.size_bytes_max} bytes:"
                " split it, or raise the batch size"
            )

    def _accept(self, waiting: _Waiting[Item]) -> None:
        self._queue.append(waiting)
        self._size_bytes += waiting.size_bytes

    def _admit_blocked(self) -> None:
        while self._blocked and len(self._queue) < self._limits.queue_max:
            self._accept(self._blocked.popleft())

    def _take(self) -> list[Item]:
        """Return the head of the queue, in order, up to the first request that does not fit."""
        limits, queue = self._limits, self._queue
        batch: list[Item] = []
        size_bytes = 0
        while queue and len(batch) < limits.requests_max:
            if size_bytes + queue[0].size_bytes > limits.size_bytes_max:
                break
            waiting = queue.popleft()
            size_bytes += waiting.size_bytes
            batch.append(waiting.item)
        self._size_bytes -= size_bytes
        return batch
