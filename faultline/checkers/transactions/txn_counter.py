"""Counters: transactions that increment them by positive amounts and read them.

A counter that only grows shows the order of its reads: between two reads of different values there was an increment, so
that the smaller one was read first (`rr`: an anti-dependency on that increment, and a dependency on it). A value does
not identify the increment, except in three places:

- a reader of 0 precedes every transaction that incremented the counter (`rw`);
- a reader of the sum of all increments that can have happened follows all of them (`wr`);
- a reader of a value precedes the transactions that read it as well and incremented the counter after that (`rw`).

Limits: increments between, which belong to neither of these, are in no order with the reads. Reads that come after an
increment of the same transaction draw no edges. A `rr` goes to the next larger value only, so that a cycle may be
reported with more anti-dependencies than the shortest one has.
"""

from __future__ import annotations

from itertools import pairwise

from faultline.checkers.transactions.columns import FAIL, OK, TransactionColumns, encode
from faultline.checkers.transactions.component import Step
from faultline.checkers.transactions.counter_anomalies import counter_anomalies
from faultline.checkers.transactions.counter_reads import CounterReads, find_counter_reads
from faultline.checkers.transactions.edges import DependencyEdges, EdgeKind, EdgeList
from faultline.checkers.transactions.inference import Inference, Reason
from faultline.checkers.transactions.observations import shown
from faultline.harness.history import History

__all__ = ["CounterWords", "counter_edges", "infer_counters"]

_RR = EdgeKind.RW | EdgeKind.WR


def infer_counters(history: History) -> Inference:
    """Return the inference on the order of transactions in a history of counters."""
    columns = encode(history, "inc")
    reads = find_counter_reads(columns)
    return Inference(
        columns, counter_edges(columns, reads), counter_anomalies(columns, reads), CounterWords(columns, reads)
    )


def counter_edges(columns: TransactionColumns, reads: CounterReads) -> DependencyEdges:
    """Return all rr, rw and wr edges. The reason of an edge is a read; of a wr edge through a hub, the source's
    increment."""
    edges = EdgeList(len(columns))
    for key, by_value in reads.external.items():
        amounts = reads.amounts.get(key, {})
        total = sum(amount for transaction, amount in amounts.items() if columns.outcome[transaction] != FAIL)
        values = [value for value in sorted(by_value) if 0 <= value <= total]
        readers = {value: [(int(columns.owner[read]), read) for read in by_value[value]] for value in values}
        for smaller, larger in pairwise(values):
            edges.add_hub(readers[smaller], readers[larger], _RR)
        for value in values:
            updating = [pair for pair in readers[value] if pair[0] in amounts]
            first = [(t, -1) for t in amounts if columns.outcome[t] == OK]
            following = first if value == 0 else updating
            if following:
                edges.add_hub(readers[value], following, EdgeKind.RW)
        _last_reads(edges, columns, amounts, total, readers)
    return edges.finish()


def _last_reads(
    edges: EdgeList,
    columns: TransactionColumns,
    amounts: dict[int, int],
    total: int,
    readers: dict[int, list[tuple[int, int]]],
) -> None:
    """Draw the edges from all writers to the readers of the sum of all that others can have added."""
    seen_all = [
        (reader, read)
        for value, pairs in readers.items()
        for reader, read in pairs
        if value == total - amounts.get(reader, 0)
    ]
    adders = [transaction for transaction in amounts if columns.outcome[transaction] != FAIL]
    if len(adders) * len(seen_all) <= len(adders) + len(seen_all):
        for adder in adders:
            for reader, read in seen_all:
                edges.add(adder, reader, EdgeKind.WR, read)
    elif seen_all:
        key = int(columns.key[seen_all[0][1]])
        edges.add_hub([(adder, _increment(columns, adder, key)) for adder in adders], seen_all, EdgeKind.WR)


def _increment(columns: TransactionColumns, transaction: int, key: int) -> int:
    steps = range(int(columns.start[transaction]), int(columns.start[transaction + 1]))
    return next(step for step in steps if columns.key[step] == key and not columns.is_read[step])


class CounterWords:
    """The words for edges that `counter_edges` drew."""

    def __init__(self, columns: TransactionColumns, reads: CounterReads) -> None:
        self._columns = columns
        self._reads = reads

    def reason(self, step: Step, source: str, target: str) -> Reason:
        """Return why `step.source`, called `source`, precedes `step.target`, called `target`, by a rr, rw or wr
        edge."""
        number = int(self._columns.key[step.reason])
        key = self._columns.keys[number]
        if not step.kind & EdgeKind.RW:
            seen = self._value(step.target, number)
            return Reason(f"{target} read {seen} from {key}, all that {source} and others can have added", key)
        seen = self._value(step.source, number)
        if step.kind & EdgeKind.WR:
            more = self._value(step.target, number)
            return Reason(f"{source} read {seen} from {key} and {target} read {more}, and {key} only grows", key)
        if seen == "0":
            return Reason(f"{source} read 0 from {key}, to which {target} added", key)
        return Reason(f"{source} read {seen} from {key}, and so did {target} before it added to it", key)

    def _value(self, transaction: int, key: int) -> str:
        return shown(self._reads.base[self._reads.external_of[transaction, key]])
