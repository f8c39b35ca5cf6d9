"""A first guess at the order of the writes, which costs linear time and is nearly always right for a correct store.

The writes of each key are put in the order in which their transactions completed, or in that order as far as reads and
sessions allow. When all dependencies that follow are without a cycle, the history is possible and no search is needed;
otherwise nothing has been shown.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from faultline.checkers.isolation.committed import INITIAL, Committed
from faultline.checkers.isolation.polygraph import Arc, Dependency, Level, arcs_of

__all__ = ["is_possible_as_guessed"]


def is_possible_as_guessed(
    committed: Committed, completed: Sequence[int], level: Level, *, session_order: bool
) -> bool:
    """Whether one of two simple orders of the writes shows that `level` is kept."""
    size = len(committed.transactions)
    given = list(_given(committed, session_order))
    reads_first = list(arcs_of("serializability", size, given))
    positions = (completed, _topological(size, reads_first, completed))
    return any(
        position is not None and _is_acyclic(level, size, (*given, *_following(committed, position)))
        for position in positions
    )


def _given(committed: Committed, session_order: bool) -> Iterator[Dependency]:
    for number, (key, writer) in committed.reads_from():
        if writer != INITIAL:
            yield Dependency("wr", writer, number, key)
    if session_order:
        for session in committed.sessions:
            yield from (Dependency("so", before, after) for before, after in pairwise(session))


def _following(committed: Committed, position: Sequence[int]) -> Iterator[Dependency]:
    """What follows when writes are ordered by `position`: neighbours suffice, the rest is their transitive closure."""
    next_writer: dict[tuple[Any, int], int] = {}
    writers: dict[Any, list[int]] = {}
    for number in committed.numbers():
        for key in committed.transactions[number].writes:
            writers.setdefault(key, []).append(number)
    for key, numbers in writers.items():
        numbers.sort(key=position.__getitem__)
        for before, after in pairwise((INITIAL, *numbers)):
            next_writer[key, before] = after
            if before != INITIAL:
                yield Dependency("ww", before, after, key)
    for number, (key, writer) in committed.reads_from():
        after_that = next_writer.get((key, writer), number)
        if after_that != number:
            yield Dependency("rw", number, after_that, key)


def _topological(size: int, arcs: Iterable[Arc], priority: Sequence[int]) -> list[int] | None:
    """Positions that respect `arcs`, earliest `priority` first; None when the arcs have a cycle."""
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
