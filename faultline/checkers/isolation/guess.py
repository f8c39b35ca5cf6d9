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

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from faultline.checkers.isolation.closure import Graph
from faultline.checkers.isolation.committed import INITIAL, Committed
from faultline.checkers.isolation.polygraph import Dependency, Level, Polygraph, Precedence, arcs_of, polygraph_of
from faultline.checkers.isolation.serial_run import SerialRun
from faultline.harness.history import OPEN

__all__ = ["deadlines", "guessed_order"]

_Rank = Callable[[Any, int], tuple[int, int]]
"""The sort key of the writers of a key, given the key and the writer."""


def deadlines(committed: Committed) -> list[int]:
    """Return the latest time each transaction can take effect: its own end, or that of the first to read from it.

    One that did not complete comes after all others, the initial one before.
    """
    completed = _completed(committed)
    latest = list(completed)
    for number, (_, writer) in sorted(committed.reads_from(), key=lambda item: -completed[item[0]]):
        latest[writer] = min(latest[writer], latest[number] - 1)
    return latest


def guessed_order(committed: Committed, level: Level, precedence: Precedence) -> list[int] | None:
    """Return the order of transactions that one of the guesses gives if it shows that `level` is kept, else None.

    Snapshot isolation may be kept without one: then some are missing.
    """
    polygraph = polygraph_of(committed, precedence)
    begun = [transaction.invoked for transaction in committed.transactions]
    latest = deadlines(committed)
    for priority in (latest, begun):
        run = SerialRun(polygraph, polygraph.known, priority)
        if run.succeeds():
            return polygraph.transactions_in(run.order)
    for rank in _ranks(committed, polygraph, (_completed(committed), latest, begun)):
        following = list(_following(committed, rank))
        if _in_order(level, polygraph, following) is not None:
            return polygraph.transactions_in(_in_order("serializability", polygraph, following) or ())
    return None


def _completed(committed: Committed) -> list[int]:
    after_all = max((max(each.invoked, each.completed) for each in committed.transactions), default=0) + 1
    ends = [each.completed if each.completed != OPEN else after_all + each.row for each in committed.transactions[1:]]
    return [-1, *ends]


def _ranks(committed: Committed, polygraph: Polygraph, orders: Sequence[Sequence[int]]) -> Iterator[_Rank]:
    """Yield sort keys for the writers of a key: the latest current version, and each of `orders` as far as what is
    known allows."""
    begun = orders[-1]
    current: dict[tuple[Any, int], int] = {}
    for number, read in committed.reads_from():
        current[read] = max(current.get(read, 0), begun[number])
    yield lambda key, number: (max(begun[number], current.get((key, number), -1)), begun[number])
    graph = Graph(polygraph.nodes)
    graph.add(arcs_of("serializability", polygraph, (known for known in polygraph.known if known.kind != "rw")))
    for order in orders:
        position = _topological(graph, [*order, *[-1] * (polygraph.nodes - polygraph.size)])
        if position is not None:
            yield partial(_placed, position)


def _placed(position: Sequence[int], _key: Any, number: int) -> tuple[int, int]:
    return position[number], 0


def _following(committed: Committed, rank: _Rank) -> Iterator[Dependency]:
    """Yield the dependencies of writes ordered by `rank`: neighbours suffice, the rest is their transitive closure."""
    next_writer: dict[tuple[Any, int], int] = {}
    writers: dict[Any, list[int]] = {}
    for number in committed.numbers():
        for key in committed.transactions[number].writes:
            writers.setdefault(key, []).append(number)
    for key, numbers in writers.items():
        chain = committed.chains.get(key, [])
        rest = sorted(set(numbers).difference(chain), key=partial(rank, key))
        for before, after in pairwise((INITIAL, *chain, *rest)):
            next_writer[key, before] = after
            if before != INITIAL:
                yield Dependency("ww", before, after, key)
    for number, (key, writer) in committed.reads_from():
        after_that = next_writer.get((key, writer), number)
        if after_that != number:
            yield Dependency("rw", number, after_that, key)


def _topological(graph: Graph, priority: Sequence[int]) -> list[int] | None:
    """Return positions that respect `graph`, earliest `priority` first; None when it has a cycle."""
    order = graph.order(priority)
    position = [0] * len(order)
    if len(order) < len(graph.after):
        return None
    for place, node in enumerate(order):
        position[node] = place
    return position


def _in_order(level: Level, polygraph: Polygraph, dependencies: Iterable[Dependency]) -> list[int] | None:
    """Return the nodes of the graph of `level` in an order that respects `dependencies`; None when it has a cycle."""
    graph = Graph(polygraph.nodes + (polygraph.size if level == "snapshot-isolation" else 0))
    graph.add(arcs_of(level, polygraph, polygraph.known))
    graph.add(arcs_of(level, polygraph, dependencies))
    order = graph.order()
    return order if len(order) == len(graph.after) else None
