"""A run of transactions one by one, which shows that an order exists, and that what was read fits it.

Each transaction runs as soon as all that must precede it have run, and never over a version with a read to come; among
those that may run the earliest comes first. When all could run, the history is serializable, and snapshot isolated. A
run that gets stuck says nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import Any

from faultline.checkers.isolation.polygraph import Dependency, Polygraph

__all__ = ["SerialRun"]


class SerialRun:
    """A run on a store that knows the writer of each key's current version, earliest `priority` first.

    `known` are the dependencies to respect. A barrier of real time is run like a transaction that neither reads nor
    writes. `order` has both as far as they were run.
    """

    def __init__(self, polygraph: Polygraph, known: Iterable[Dependency], priority: Sequence[int]) -> None:
        self.polygraph = polygraph
        self.priority = [*priority, *[-1] * (polygraph.nodes - polygraph.size)]
        self.current = {key: writers[0] for key, writers in polygraph.writers.items()}
        self.waits = [0] * polygraph.nodes
        self.after: list[list[int]] = [[] for _ in range(polygraph.nodes)]
        self.reads: list[list[tuple[Any, int]]] = [[] for _ in range(polygraph.size)]
        self.writes: list[list[Any]] = [[] for _ in range(polygraph.size)]
        self.unread: dict[tuple[Any, int], int] = {}
        self.parked: dict[Any, list[int]] = {}
        self.heap: list[tuple[int, int]] = []
        self.order: list[int] = []
        for _, source, target, _ in known:
            self.after[source].append(target)
            self.waits[target] += 1
        for version, readers in polygraph.readers.items():
            self.unread[version] = len(readers)
            for reader in readers:
                self.reads[reader].append(version)
        for key, writers in polygraph.writers.items():
            for writer in writers[1:]:
                self.writes[writer].append(key)

    def succeeds(self) -> bool:
        """Return whether every transaction could be run."""
        for number in range(1, self.polygraph.nodes):
            self._ready(number, 0)
        while self.heap:
            number = heapq.heappop(self.heap)[1]
            blocked = self._blocked_by(number) if number < self.polygraph.size else None
            if blocked is not None:
                self.parked.setdefault(blocked, []).append(number)
                continue
            self.order.append(number)
            if number < self.polygraph.size:
                self._apply(number)
            for target in self.after[number]:
                self._ready(target, 1)
        return len(self.order) == self.polygraph.nodes - 1

    def _ready(self, number: int, fulfilled: int) -> None:
        self.waits[number] -= fulfilled
        if not self.waits[number]:
            heapq.heappush(self.heap, (self.priority[number], number))

    def _blocked_by(self, number: int) -> Any:
        """Return a version that the transaction would overwrite although others have yet to read it."""
        for key in self.writes[number]:
            version = (key, self.current[key])
            if self.unread.get(version, 0) > (version in self.reads[number]):
                return version
        return None

    def _apply(self, number: int) -> None:
        for version in self.reads[number]:
            self.unread[version] -= 1
            if self.unread[version] <= 1:
                self._wake(version)
        for key in self.writes[number]:
            self._wake((key, self.current[key]))
            self.current[key] = number

    def _wake(self, version: tuple[Any, int]) -> None:
        for parked in self.parked.pop(version, ()):
            self._ready(parked, 0)
