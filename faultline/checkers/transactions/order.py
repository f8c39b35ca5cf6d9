"""A quick proof that a history is free of cycles, and the regions where cycles can be.

The nodes of a graph without a cycle can be put in an order in which all edges run forward. A history has a good first
guess: the order of invocation. Let `e(t)` be the least number that is at least `t`'s invocation and more
than `e(s)` for every edge from `s` to `t`: the earliest moment at which `t` can have taken effect. It is found by
raising the targets of backward edges until none is left, and only raised targets need another look. In a history that
is in order, chains of such corrections are as short as the transactions overlap, so a few rounds over arrays suffice.

If the rounds end, the order by `e` is a serialization. It also respects real time exactly when `e(t)` is not past `t`'s
completion for any `t`: if it is, `t` depends on something invoked only after `t` had completed. So the real-time
edges, of which a history has quadratically many, are never drawn for a valid history.

The rounds are given up when they have looked again at as many edges as there are: around a cycle they never end. Then,
or if a completion is passed, every cycle still has to come back from its greatest `e` to its
least, by edges that run backward. So it lies within one *region*: one of the merged intervals which the backward edges
span. Only these regions are handed to the search for strongly connected components.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from faultline.checkers.transactions.columns import NEVER, Integers, TransactionColumns
from faultline.checkers.transactions.edges import DependencyEdges

__all__ = ["Regions", "raise_targets", "suspect_regions"]

_ROUNDS = 120
_VISITS_MIN = 10_000
"""The edges that the rounds may look at again in a small graph."""

_SHIFT = 10
"""The spacing of indices: room for 1024 corrections between two, more than the number of rounds."""


@dataclass(frozen=True, slots=True)
class Regions:
    """The places where cycles can be: for each node the number of its region, or -1; and the number of rounds."""

    of_node: Integers
    count: int
    rounds: int


def suspect_regions(columns: TransactionColumns, edges: DependencyEdges, realtime: bool) -> Regions:
    """Return the regions outside which no cycle runs; none at all if the history is in order.

    With `realtime`, cycles over the real-time order count too. The caller adds edges of the process order to `edges`.
    """
    earliest = np.zeros(edges.nodes, dtype=np.int64)
    earliest[: edges.transactions] = columns.invoke << _SHIFT
    rounds = raise_targets(earliest, edges.source, edges.target)
    back = np.flatnonzero(earliest[edges.source] >= earliest[edges.target])
    low, high = earliest[edges.target[back]], earliest[edges.source[back]]
    if realtime:
        closed = (np.minimum(columns.complete, NEVER) + 1) << _SHIFT
        own = earliest[: edges.transactions]
        late = np.flatnonzero(own >= closed)
        low, high = np.concatenate((low, closed[late])), np.concatenate((high, own[late]))
    return _merged(earliest, low, high, rounds)


def raise_targets(earliest: Integers, source: Integers, target: Integers) -> int:
    """Raise `earliest` of the targets of backward edges until none is left or the rounds are given up.

    Return the number of rounds. If no edge runs backward after that, the graph has no cycle.
    """
    order = np.argsort(source, kind="stable")
    source, target = source[order], target[order]
    bounds = np.searchsorted(source, np.arange(len(earliest) + 1))
    back = np.flatnonzero(earliest[source] >= earliest[target])
    visits = 0
    # Without a cycle no chain of corrections is longer than the number of nodes.
    rounds_max = min(_ROUNDS, len(earliest))
    for done in range(rounds_max):
        if not len(back) or visits > max(len(source), _VISITS_MIN):
            return done
        np.maximum.at(earliest, target[back], earliest[source[back]] + 1)
        raised = np.unique(target[back])
        candidates = _spans(bounds[raised], bounds[raised + 1])
        visits += len(candidates)
        back = candidates[earliest[source[candidates]] >= earliest[target[candidates]]]
    return rounds_max


def _spans(first: Integers, last: Integers) -> Integers:
    """Return the numbers from `first[i]` up to `last[i]` for every `i`, one after another."""
    lengths = last - first
    starts = np.cumsum(lengths) - lengths
    return np.repeat(first - starts, lengths) + np.arange(int(lengths.sum()))


def _merged(earliest: Integers, low: Integers, high: Integers, rounds: int) -> Regions:
    outside = np.full(len(earliest), -1, dtype=np.int64)
    if not len(low):
        return Regions(outside, 0, rounds)
    order = np.argsort(low, kind="stable")
    low, reach = low[order], np.maximum.accumulate(high[order])
    opens = np.concatenate(([True], low[1:] > reach[:-1]))
    begin = low[opens]
    end = reach[np.append(np.flatnonzero(opens)[1:] - 1, len(reach) - 1)]
    region = np.searchsorted(begin, earliest, side="right") - 1
    inside = (region >= 0) & (earliest <= end[np.maximum(region, 0)])
    return Regions(np.where(inside, region, outside), len(begin), rounds)
