"""Dependencies between transactions: their kinds, and a whole graph of them as arrays.

The kinds are Adya's (*Weak Consistency*, MIT 1999, chapter 3), and two orders that clients can see:

- `ww`: the target overwrote a write of the source;
- `wr`: the target read a write of the source;
- `rw`: the target overwrote a version that the source read (an *anti-dependency*: the source missed the target);
- predicate `rw`: the target changed the set of objects that the source's condition selected;
- `process`: the same client ran the source before the target;
- `realtime`: the source had completed before the target was invoked.

A `ww` or `rw` edge that is only known thanks to the process or real-time order carries that order's flag as well, so
that it counts against models that promise the order, and not against others.

An edge that is `rw` and `wr` at once stands for one of each in a row, over an unknown transaction: between two reads of
different values there was a write (Elle calls it `rr`).

A *hub* is an extra node without a transaction. When every one of many readers precedes every one of many writers, all
pairs would be quadratically many edges; instead the readers point to a hub, and the hub to the writers by a `link`,
which adds nothing to the kind of the step before it. Hubs never make a transaction its own predecessor (`add_hub`).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from faultline.checkers.transactions.columns import Booleans, Integers

__all__ = ["DependencyEdges", "EdgeKind", "EdgeList"]


class EdgeKind(enum.IntFlag):
    """The reason why one transaction must precede another. Flags, so that a set of kinds is one small integer."""

    WW = 1
    WR = 2
    RW = 4
    PREDICATE_RW = 8
    PROCESS = 16
    REALTIME = 32
    LINK = 64


@dataclass(frozen=True, slots=True)
class DependencyEdges:
    """A dependency graph: nodes below `transactions` are transactions, those from there on are hubs.

    `reason` is a number from which the module that drew the edge makes its words; for an edge to a hub it belongs to
    the reader, for a link to the writer."""

    transactions: int
    nodes: int
    source: Integers
    target: Integers
    kind: Integers
    reason: Integers

    def __len__(self) -> int:
        return len(self.source)

    def only(self, kept: Booleans) -> DependencyEdges:
        """Return the same graph with the edges that are marked in `kept`, one entry for each edge."""
        columns = (self.source[kept], self.target[kept], self.kind[kept], self.reason[kept])
        return DependencyEdges(self.transactions, self.nodes, *columns)


class EdgeList:
    """A collector of edges, single or by the array."""

    def __init__(self, transactions: int) -> None:
        self._transactions = transactions
        self._nodes = transactions
        self._parts: list[tuple[Integers, Integers, Integers, Integers]] = []
        self._single: list[tuple[int, int, int, int]] = []

    def add(self, source: int, target: int, kind: EdgeKind, reason: int) -> None:
        """Add one edge, unless it leads from a transaction to itself."""
        if source != target:
            self._single.append((source, target, int(kind), reason))

    def add_all(self, source: Integers, target: Integers, kind: EdgeKind, reason: Integers) -> None:
        """Add many edges of one kind, without those from a transaction to itself."""
        kept = source != target
        kinds = np.full(int(kept.sum()), int(kind), dtype=np.int64)
        self._parts.append((source[kept], target[kept], kinds, reason[kept]))

    def add_hub(
        self, readers: Sequence[tuple[int, int]], writers: Sequence[tuple[int, int]], kind: EdgeKind = EdgeKind.RW
    ) -> None:
        """Let every reader precede every writer but itself. Both are pairs of a transaction and the reason of its edge.

        If exactly one transaction is on both sides it gets a hub of its own, without itself. Two such transactions do
        precede each other, so that the path from one through the hub to itself adds nothing false.
        """
        both = {reader for reader, _ in readers} & {writer for writer, _ in writers}
        if len(readers) * len(writers) <= 4:
            for reader, reason in readers:
                for writer, _ in writers:
                    self.add(reader, writer, kind, reason)
        elif len(both) == 1:
            self._hub([pair for pair in readers if pair[0] not in both], writers, kind)
            alone = [pair for pair in readers if pair[0] in both][:1]
            self._hub(alone, [pair for pair in writers if pair[0] not in both], kind)
        else:
            self._hub(readers, writers, kind)

    def _hub(self, readers: Iterable[tuple[int, int]], writers: Iterable[tuple[int, int]], kind: EdgeKind) -> None:
        hub = self._nodes
        self._nodes += 1
        self._single += [(reader, hub, int(kind), reason) for reader, reason in readers]
        self._single += [(hub, writer, int(EdgeKind.LINK), reason) for writer, reason in writers]

    def finish(self) -> DependencyEdges:
        """Return the graph."""
        single = np.array(self._single, dtype=np.int64).reshape(-1, 4)
        columns = [np.concatenate([*(part[i] for part in self._parts), single[:, i]]) for i in range(4)]
        return DependencyEdges(self._transactions, self._nodes, *columns)
