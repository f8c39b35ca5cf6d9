"""First guesses at the order of the writes: nearly linear in time, and nearly always right for a correct store.

A transaction took effect between its beginning and its end, and before the end of each reader of its writes: the
earliest of these ends is its *deadline*. The guesses are

- **a serial run**: the transactions run one by one, each as soon as the store holds the values that it read, and never
over a version with a read to come; among those that may run the earliest deadline, or beginning, comes first. When all
of them could be run, the history is serializable, and no further check is needed; - **an order of the writes of each
key**: by when a version was last seen to be current, which is when its last reader began, or its writer; by completion,
by deadline, or by beginning, as far as reads and sessions allow. When the dependencies that follow form no forbidden
cycle, the level is kept.

When no guess fits, the history is undecided. Guesses use the times of the history, which neither level includes, so
they fail on stores that let transactions see the past; the search does not."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from faultline.checkers.isolation.committed import INITIAL, Committed
from faultline.checkers.isolation.polygraph import Arc, Dependency, Level, arcs_of

__all__ = ["deadlines", "is_possible_as_guessed"]

_Rank = Callable[[Any, int], tuple[int, int]]
"""The sort key of the writers of a key, given the key and the writer."""


def deadlines(committed: Committed, completed: Sequence[int]) -> list[int]:
    """Return the latest time each transaction can take effect: its own end, or that of the first to read from it."""
    latest = list(completed)
    for number, (_, writer) in sorted(committed.reads_from(), key=lambda item: -completed[item[0]]):
        latest[writer] = min(latest[writer], latest[number] - 1)
    return latest


def is_possible_as_guessed(
    committed: Committed, completed: Sequence[int], level: Level, *, session_order: bool
) -> bool:
    """Return whether one of the guesses shows that `level` is kept."""
    begun = [-1, *(committed.transactions[number].row for number in committed.numbers())]
    latest = deadlines(committed, completed)
    if any(_SerialRun(committed, priority, session_order).succeeds() for priority in (latest, begun)):
        return True
    size = len(committed.transactions)
    given = list(_given(committed, session_order))
    return any(
        _is_acyclic(level, size, (*given, *_following(committed, rank)))
        for rank in _ranks(committed, given, (completed, latest, begun))
    )


def _ranks(committed: Committed, given: Sequence[Dependency], orders: Sequence[Sequence[int]]) -> Iterator[_Rank]:
    """Yield sort keys for the writers of a key: the latest current version, and each of `orders` as `given` allows."""
    begun = orders[-1]
    current: dict[tuple[Any, int], int] = {}
    for number, read in committed.reads_from():
        current[read] = max(current.get(read, 0), begun[number])
    yield lambda key, number: (max(begun[number], current.get((key, number), -1)), begun[number])
    reads_first = list(arcs_of("serializability", len(begun), given))
    for order in orders:
        position = _topological(len(begun), reads_first, order)
        if position is not None:
            yield partial(_placed, position)


def _placed(position: Sequence[int], _key: Any, number: int) -> tuple[int, int]:
    return position[number], 0


class _SerialRun:
    """A run of transactions one by one on a store that knows the writer of each key's current version."""

    def __init__(self, committed: Committed, priority: Sequence[int], session_order: bool) -> None:
        self.committed, self.priority, self.session_order = committed, priority, session_order
        self.current: dict[Any, int] = {}
        self.waits = [0] * len(committed.transactions)
        self.readers: dict[tuple[Any, int], list[int]] = {}
        self.unread: dict[tuple[Any, int], int] = {}
        self.parked: dict[Any, list[int]] = {}
        self.heap: list[tuple[int, int]] = []
        for number in committed.numbers():
            for key, writer in dict.fromkeys(committed.transactions[number].reads):
                self.readers.setdefault((key, writer), []).append(number)
                self.unread[key, writer] = self.unread.get((key, writer), 0) + 1
                self.waits[number] += writer != INITIAL
            self.waits[number] += session_order and committed.transactions[number].place > 0

    def succeeds(self) -> bool:
        """Return whether every transaction could be run."""
        for number in self.committed.numbers():
            self._ready(number, 0)
        done = 0
        while self.heap:
            number = heapq.heappop(self.heap)[1]
            blocked = self._blocked_by(number)
            if blocked is not None:
                self.parked.setdefault(blocked, []).append(number)
            else:
                self._run(number)
                done += 1
        return done == len(self.committed.transactions) - 1

    def _ready(self, number: int, fulfilled: int) -> None:
        self.waits[number] -= fulfilled
        if not self.waits[number]:
            heapq.heappush(self.heap, (self.priority[number], number))

    def _blocked_by(self, number: int) -> Any:
        """Return a version that the transaction would overwrite although others have yet to read it."""
        transaction = self.committed.transactions[number]
        for key in transaction.writes:
            version = (key, self.current.get(key, INITIAL))
            if self.unread.get(version, 0) > (version in transaction.reads):
                return version
        return None

    def _run(self, number: int) -> None:
        transaction = self.committed.transactions[number]
        for version in dict.fromkeys(transaction.reads):
            self.unread[version] -= 1
            if self.unread[version] <= 1:
                for parked in self.parked.pop(version, ()):
                    self._ready(parked, 0)
        for key in transaction.writes:
            for parked in self.parked.pop((key, self.current.get(key, INITIAL)), ()):
                self._ready(parked, 0)
            self.current[key] = number
            for reader in self.readers.get((key, number), ()):
                self._ready(reader, 1)
        session = self.committed.sessions[transaction.session]
        if self.session_order and transaction.place + 1 < len(session):
            self._ready(session[transaction.place + 1], 1)


def _given(committed: Committed, session_order: bool) -> Iterator[Dependency]:
    for number, (key, writer) in committed.reads_from():
        if writer != INITIAL:
            yield Dependency("wr", writer, number, key)
    if session_order:
        for session in committed.sessions:
            yield from (Dependency("so", before, after) for before, after in pairwise(session))


def _following(committed: Committed, rank: _Rank) -> Iterator[Dependency]:
    """Yield the dependencies of writes ordered by `rank`: neighbours suffice, the rest is their transitive closure."""
    next_writer: dict[tuple[Any, int], int] = {}
    writers: dict[Any, list[int]] = {}
    for number in committed.numbers():
        for key in committed.transactions[number].writes:
            writers.setdefault(key, []).append(number)
    for key, numbers in writers.items():
        numbers.sort(key=partial(rank, key))
        for before, after in pairwise((INITIAL, *numbers)):
            next_writer[key, before] = after
            if before != INITIAL:
                yield Dependency("ww", before, after, key)
    for number, (key, writer) in committed.reads_from():
        after_that = next_writer.get((key, writer), number)
        if after_that != number:
            yield Dependency("rw", number, after_that, key)


def _topological(size: int, arcs: Iterable[Arc], priority: Sequence[int]) -> list[int] | None:
    """Return positions that respect `arcs`, earliest `priority` first; None when the arcs have a cycle."""
    after, waits = _graph(size, arcs)
    heap = [(priority[node], node) for node in range(size) if not waits[node]]
    heapq.heapify(heap)
    position = [-1] * size
    placed = 0
    while heap:
        _, node = heapq.heappop(heap)
        position[node] = placed
        placed += 1
        for target in after[node]:
            waits[target] -= 1
            if not waits[target]:
                heapq.heappush(heap, (priority[target], target))
    return position if placed == size else None


def _is_acyclic(level: Level, size: int, dependencies: Iterable[Dependency]) -> bool:
    nodes = size if level == "serializability" else 2 * size
    after, waits = _graph(nodes, arcs_of(level, size, dependencies))
    ready = [node for node in range(nodes) if not waits[node]]
    placed = 0
    while ready:
        placed += 1
        for target in after[ready.pop()]:
            waits[target] -= 1
            if not waits[target]:
                ready.append(target)
    return placed == nodes


def _graph(size: int, arcs: Iterable[Arc]) -> tuple[list[list[int]], list[int]]:
    after: list[list[int]] = [[] for _ in range(size)]
    waits = [0] * size
    for source, target in arcs:
        after[source].append(target)
        waits[target] += 1
    return after, waits
