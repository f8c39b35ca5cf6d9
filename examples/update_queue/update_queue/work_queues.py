"""Queues of work between threads, of the kinds that well-known systems put in front of their single consumer.

| kind | like | full |
|---|---|---|
| `BoundedWorkQueue` | the request queue of a Kafka broker: an array of fixed length with a lock | waits, or refuses |
| `RingWorkQueue` | the ring of LMAX Disruptor: slots made once, claimed and freed by counting | waits, or refuses |
| `UnboundedWorkQueue` | ZooKeeper's request processors, Kafka's response queue: grows with the backlog | never |

All keep the order in which items were accepted. An unbounded queue never pushes producers back, so a disk that is slow
for long fills the memory (SUQ-M4). It is for answers, whose number is bounded by that of the requests.

Sources: Patterns of Distributed Systems ch. 13, "Choice of the queue"; Thompson et al., "Disruptor" (2011).
"""

from __future__ import annotations

import queue
import threading
from typing import Generic, Protocol, TypeVar

__all__ = [
    "CAPACITY",
    "BoundedWorkQueue",
    "QueueFull",
    "QueueShutDown",
    "RingWorkQueue",
    "UnboundedWorkQueue",
    "WorkQueue",
]

CAPACITY = 100
"""The number of items that a bounded queue holds by default."""

Item = TypeVar("Item")


class QueueFull(Exception):
    """As many requests wait as the queue holds; this one was not accepted."""


class QueueShutDown(Exception):
    """The queue accepts nothing more; a request that waited was not executed."""


class WorkQueue(Protocol[Item]):
    """First in, first out, between any number of producers and one consumer."""

    def put(self, item: Item, *, wait: bool) -> None:
        """Accept `item`; when full, wait for room or raise `QueueFull`."""

    def get(self, timeout_s: float) -> Item:
        """Return the oldest item; raises `queue.Empty` when none comes within the time."""

    def __len__(self) -> int:
        """Return the number of items that wait."""


class BoundedWorkQueue(Generic[Item]):
    """At most `capacity` items; a producer waits for room, or is refused."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        if capacity < 1:
            raise ValueError(f"a queue holds at least one request, not {capacity}")
        self.capacity = capacity
        self._items: queue.Queue[Item] = queue.Queue(capacity)

    def put(self, item: Item, *, wait: bool) -> None:
        try:
            self._items.put(item, block=wait)
        except queue.Full as error:
            raise QueueFull(f"{self.capacity} requests are waiting already") from error

    def get(self, timeout_s: float) -> Item:
        return self._items.get(timeout=timeout_s) if timeout_s else self._items.get_nowait()

    def __len__(self) -> int:
        return self._items.qsize()


class UnboundedWorkQueue(Generic[Item]):
    """A queue that accepts every item."""

    def __init__(self) -> None:
        self._items: queue.SimpleQueue[Item] = queue.SimpleQueue()

    def put(self, item: Item, *, wait: bool) -> None:
        """Accept `item`; there is always room."""
        self._items.put(item)

    def get(self, timeout_s: float) -> Item:
        return self._items.get(timeout=timeout_s) if timeout_s else self._items.get_nowait()

    def __len__(self) -> int:
        return self._items.qsize()


class RingWorkQueue(Generic[Item]):
    """A ring of slots that are made once.

    Those from `_taken` up to `_claimed`, two counters that only grow, are taken.
    """

    def __init__(self, capacity: int = 128) -> None:
        if capacity < 1 or capacity & (capacity - 1):
            raise ValueError(f"the length of a ring is a power of two, not {capacity}")
        self.capacity = capacity
        self._slots: list[Item | None] = [None] * capacity
        self._claimed = 0
        self._taken = 0
        self._moved = threading.Condition()

    def put(self, item: Item, *, wait: bool) -> None:
        with self._moved:
            if not wait and not self._has_room():
                raise QueueFull(f"all {self.capacity} slots are taken")
            self._moved.wait_for(self._has_room)
            self._slots[self._claimed & (self.capacity - 1)] = item
            self._claimed += 1
            self._moved.notify_all()

    def get(self, timeout_s: float) -> Item:
        with self._moved:
            if not self._moved.wait_for(lambda: self._taken < self._claimed, timeout_s):
                raise queue.Empty
            slot = self._taken & (self.capacity - 1)
            item, self._slots[slot] = self._slots[slot], None
            self._taken += 1
            self._moved.notify_all()
        assert item is not None
        return item

    def __len__(self) -> int:
        return self._claimed - self._taken

    def _has_room(self) -> bool:
        return self._claimed - self._taken < self.capacity
