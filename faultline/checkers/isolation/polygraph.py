"""The dependencies that any order of the writes must respect, and the writes whose order is open.

A *polygraph* (Papadimitriou, "The Serializability of Concurrent Database Updates", 1979) has known dependencies, and
for each two writers of a key a choice which of them came first. A choice adds dependencies: the write-write dependency,
and read-write dependencies from all readers of the earlier version to the later writer.

A history is serializable when the choices can be made such that no dependencies form a cycle. It is snapshot isolated
when they can be made such that every cycle has two read-write dependencies in a row (Fekete et al., TODS 2005; Cerone &
Gotsman, PODC 2016). The second becomes the first by doubling the nodes, one for having *arrived* at a transaction by a
read-write dependency, from which only others lead on: then forbidden cycles of either level are just cycles.

Real time is a chain of *barriers*, nodes without a transaction: one for each completion, reached from the transaction
that completed and from the barrier before it, and leading to the transactions that were invoked after it.

Lists show the order of all writes that were read. Only their unread appends are open, so that one polygraph serves
lists and registers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from faultline.checkers.isolation.committed import INITIAL, Committed
from faultline.harness.history import OPEN

__all__ = ["Arc", "Dependency", "Level", "Polygraph", "Precedence", "arcs_of", "polygraph_of"]

Level = Literal["snapshot-isolation", "serializability"]

Precedence = Literal["none", "session", "realtime"]
"""The transactions that come before others whatever they read and wrote: earlier ones of the same session, or all that
had completed before."""

Arc = tuple[int, int]
"""An arc of the graph that must not have a cycle."""


class Dependency(NamedTuple):
    """`target` depends on `source`: it read its write (wr), overwrote it (ww), overwrote what it had read (rw), or
    followed in its session (so) or in real time (rt)."""

    kind: Literal["wr", "ww", "rw", "so", "rt"]
    source: int
    target: int
    key: Any = None


@dataclass(slots=True)
class Polygraph:
    """The known dependencies, and for each key the writers whose order is open.

    Transactions are 0 … `size` - 1, the barriers of real time `size` … `nodes` - 1. `writers` has, by key, the writer
    known to be first of them all (the initial transaction, or the last one that was read), and then the others.
    `readers` has the readers of each version, by key and writer.
    """

    size: int
    nodes: int
    known: list[Dependency] = field(default_factory=list)
    writers: dict[Any, list[int]] = field(default_factory=dict)
    readers: dict[tuple[Any, int], list[int]] = field(default_factory=dict)

    def transactions_in(self, nodes: Iterable[int]) -> list[int]:
        """Return those of `nodes` that are transactions other than the initial one."""
        return [node for node in nodes if INITIAL < node < self.size]

    def brought_by(self, key: Any, first: int, second: int) -> Iterator[Dependency]:
        """Yield the dependencies that follow when `first` wrote `key` before `second` did."""
        if first != INITIAL:
            yield Dependency("ww", first, second, key)
        for reader in self.readers.get((key, first), ()):
            if reader != second:
                yield Dependency("rw", reader, second, key)


def polygraph_of(committed: Committed, precedence: Precedence, punctual: Sequence[int] = ()) -> Polygraph:
    """Return the polygraph of `committed`, in which transactions that are `punctual` respect real time among each
    other, whether that is part of the level or not."""
    timed = committed.numbers() if precedence == "realtime" else punctual
    pairs, barriers = _in_real_time(committed, timed)
    if precedence == "session":
        pairs += [Dependency("so", *pair) for session in committed.sessions for pair in pairwise(session)]
    size = len(committed.transactions)
    polygraph = Polygraph(size, size + barriers, pairs)
    for number in committed.numbers():
        for key in committed.transactions[number].writes:
            polygraph.writers.setdefault(key, [INITIAL]).append(number)
    for number in committed.numbers():
        for key, writer in dict.fromkeys(committed.transactions[number].reads):
            polygraph.readers.setdefault((key, writer), []).append(number)
            if writer != INITIAL:
                polygraph.known.append(Dependency("wr", writer, number, key))
    for key, chain in committed.chains.items():
        for first, second in pairwise((INITIAL, *chain)):
            polygraph.known += polygraph.brought_by(key, first, second)
        ordered = {INITIAL, *chain}
        unread = [number for number in polygraph.writers[key] if number not in ordered]
        polygraph.writers[key] = [chain[-1], *unread]
        polygraph.known += [Dependency("ww", chain[-1], number, key) for number in unread]
    return polygraph


def _in_real_time(committed: Committed, timed: Sequence[int]) -> tuple[list[Dependency], int]:
    """Return the dependencies of real time among the transactions `timed`, and the number of barriers."""
    transactions, size = committed.transactions, len(committed.transactions)
    done = [number for number in timed if transactions[number].completed != OPEN]
    done.sort(key=lambda number: transactions[number].completed)
    ends = [transactions[number].completed for number in done]
    pairs = [(number, size + place) for place, number in enumerate(done)]
    pairs += [(size + place, size + place + 1) for place in range(len(done) - 1)]
    for number in timed:
        place = bisect_left(ends, transactions[number].invoked) - 1
        pairs += [(size + place, number)] if place >= 0 else []
    return [Dependency("rt", before, after) for before, after in pairs], len(done)


def arcs_of(level: Level, polygraph: Polygraph, dependencies: Iterable[Dependency]) -> Iterator[Arc]:
    """Yield dependencies as arcs. For snapshot isolation node n + nodes is n reached by a read-write dependency."""
    size, nodes = polygraph.size, polygraph.nodes
    for kind, source, target, _ in dependencies:
        if level == "serializability":
            yield source, target
        elif kind == "rw":
            yield source, target + nodes
        else:
            yield source, target
            if source < size:
                yield source + nodes, target
