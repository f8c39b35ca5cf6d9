"""Making certificates of transactions: steps that break a rule, a cycle, or an order.

Whatever is proposed here is looked at by `verify` before it is taken, so that this module need not be trusted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise, permutations, product
from typing import Any, Literal

import msgspec

from faultline.checkers.porcupine.budget import Budget
from faultline.checkers.transactions.certificates import (
    Contradiction,
    Edge,
    Place,
    ProvedTransaction,
    TransactionCertificate,
)
from faultline.checkers.transactions.columns import FAIL, INFO, NEVER, OK, TransactionColumns
from faultline.checkers.transactions.component import Step
from faultline.checkers.transactions.edges import EdgeKind
from faultline.checkers.transactions.exact import order_of
from faultline.checkers.transactions.inference import Inference
from faultline.checkers.transactions.judgement import cycles_against
from faultline.checkers.transactions.levels import INTERNAL, LOST_UPDATE
from faultline.checkers.transactions.proved import Transactions
from faultline.checkers.transactions.rules import breaks
from faultline.checkers.transactions.verify import fault_of, holds
from faultline.harness.verdict import CheckResult, Verdict

__all__ = ["certificate_of", "proved_transactions"]

_DEPENDENCIES: tuple[Literal["wr", "ww", "rw"], ...] = ("wr", "ww", "rw")

_USES_MAX = 10_000
"""The pairs of uses that are tried for one edge."""

_OUTCOMES = {OK: "ok", INFO: "info", FAIL: "fail"}


def proved_transactions(columns: TransactionColumns) -> tuple[ProvedTransaction, ...]:
    """Return the transactions in the history's words, as they come back from a file."""
    transactions = [
        (
            columns.micro_operations(t),
            _OUTCOMES[int(columns.outcome[t])],
            int(columns.process[t]),
            int(columns.invoke[t]),
            None if columns.complete[t] >= NEVER else int(columns.complete[t]),
            int(columns.rows[t]),
        )
        for t in range(len(columns))
    ]
    return msgspec.json.decode(msgspec.json.encode(transactions), type=tuple[ProvedTransaction, ...])


def certificate_of(
    kind: str,
    level: str,
    inference: Inference,
    proved: Sequence[ProvedTransaction],
    result: CheckResult,
    limit: Budget,
) -> TransactionCertificate | None:
    """Return a certificate of `result`, which passes `proved` or refutes it; None when none is found."""
    number_of = {each.row: t for t, each in enumerate(proved)}
    if result.verdict is Verdict.PASS:
        order = None if inference.committed is None else order_of(level, inference.committed(), limit)
        found = [] if order is None else [TransactionCertificate(order=tuple(number_of[row] for row in order))]
        return next((each for each in found if not fault_of(kind, level, proved, each)), None)
    transactions = Transactions(kind, level, proved)
    for contradiction in _contradictions(transactions):
        if breaks(transactions, contradiction):
            return TransactionCertificate(contradiction=contradiction)
    drawing = _Drawing(inference.columns, transactions)
    for cycle in sorted(cycles_against(inference, level, limit), key=lambda each: len(each.steps)):
        made = TransactionCertificate(cycle=tuple(map(drawing.edge, cycle.steps)))
        if not fault_of(kind, level, proved, made):
            return made
    for finding in result.findings:
        members = tuple(sorted(number_of[row] for row in finding.operations))
        for made in (TransactionCertificate(cycle=drawing.cycle(members)), TransactionCertificate(core=members)):
            if not fault_of(kind, level, proved, made):
                return made
    return None


def _contradictions(these: Transactions) -> Iterator[Contradiction]:
    """Yield what may break a rule, rule by rule of each read."""
    longest: dict[Any, Place] = {}
    updated: dict[tuple[Any, Any], tuple[Place, Place]] = {}
    reads = [(t, s) for t, each in enumerate(these.all) for s in range(len(each.steps)) if these.is_answer((t, s))]
    for read in reads:
        seen, key = these.seen(read), these.key(read)
        yield from (Contradiction(rule, (read,)) for rule in ("garbage-read", "duplicate-elements", INTERNAL))
        for value in seen:
            write = these.writers.get((key, value))
            if write is not None and (write[0] == read[0] or these.all[write[0]].outcome == "fail"):
                yield Contradiction("future-read" if write[0] == read[0] else "aborted-read", (write, read))
        if seen and (key, seen[-1]) in these.writers:
            yield Contradiction("intermediate-read", (these.writers[key, seen[-1]], read))
        if these.is_list:
            yield Contradiction("incompatible-order", (longest.setdefault(key, read), read))
            longest[key] = max(longest[key], read, key=lambda place: len(these.seen(place)))
        write = next(filter(these.is_write, these.after(read)), None)
        if write is not None and these.is_external(read):
            before = updated.setdefault((key, tuple(seen)), (read, write))
            yield Contradiction(LOST_UPDATE, (*before, read, write))


class _Drawing:
    """Edges of cycles, each with the steps that justify it."""

    def __init__(self, columns: TransactionColumns, these: Transactions) -> None:
        self._columns, self._these = columns, these
        self._of_key: dict[Any, list[Place]] = {}
        self._ends = [NEVER if each.return_ is None else each.return_ for each in these.all]
        for t, each in enumerate(these.all):
            for s in range(len(each.steps)):
                self._of_key.setdefault(these.key((t, s)), []).append((t, s))

    def edge(self, step: Step) -> Edge:
        """Return `step` of a cycle; its steps justify nothing where none do."""
        if step.kind in (EdgeKind.PROCESS, EdgeKind.REALTIME):
            return Edge(step.source, "process" if step.kind == EdgeKind.PROCESS else "realtime")
        columns, these = self._columns, self._these
        reason = (int(columns.owner[step.reason]), int(step.reason - columns.start[columns.owner[step.reason]]))
        of_key = self._of_key[these.key(reason)]
        kind: Literal["ww", "wr", "rw"] = "wr" if step.kind & EdgeKind.WR else "ww" if step.kind & EdgeKind.WW else "rw"
        firsts = [reason] if kind == "rw" else [p for p in of_key if p[0] == step.source and these.is_write(p)]
        seconds = [reason] if kind != "rw" else [p for p in of_key if p[0] == step.target and these.is_write(p)]
        for because in self._justified(kind, of_key, firsts[::-1], seconds[::-1]):
            edge = Edge(step.source, kind, because)
            if holds(these, edge, step.target):
                return edge
        return Edge(step.source, kind)

    def cycle(self, members: Sequence[int]) -> tuple[Edge, ...] | None:
        """Return a shortest cycle among a few transactions, all of whose edges are drawn; None without one."""
        drawn = {(a, b): self._between(a, b) for a, b in permutations(members, 2)}
        known = {pair: edge for pair, edge in drawn.items() if edge is not None}
        paths = [[edge.source, b] for (_, b), edge in known.items()]
        for _ in members:
            for path in paths:
                if path[-1] == path[0]:
                    return tuple(known[pair] for pair in pairwise(path))
            # One path to each end from each start is enough for a shortest one.
            longer = {(path[0], b): [*path, b] for path in paths for a, b in known if a == path[-1]}
            paths = list(longer.values())
        return None

    def _between(self, a: int, b: int) -> Edge | None:
        """Return an edge from `a` to `b`, in the order of the level before others; None when there is none."""
        these = self._these
        order = these.level.order
        if order in ("process", "realtime") and these.precedes(a, b, order):
            return Edge(a, "realtime" if order == "realtime" else "process")
        steps = [(t, s) for t in (a, b) for s in range(len(these.all[t].steps))]
        for kind, first, second in product(_DEPENDENCIES, steps, steps):
            if (first[0], second[0]) == (a, b) and these.key(first) == these.key(second):
                for because in self._justified(kind, self._of_key[these.key(first)], [first], [second]):
                    edge = Edge(a, kind, because)
                    if holds(these, edge, b):
                        return edge
        return None

    def _justified(
        self, kind: str, of_key: Sequence[Place], firsts: Sequence[Place], seconds: Sequence[Place]
    ) -> Iterator[tuple[Place, ...]]:
        """Yield what may justify an edge from one of `firsts` to one of `seconds`."""
        these = self._these
        for first, second in product(firsts, seconds):
            yield first, second
            if these.is_list and kind == "ww":
                reads = sorted(filter(these.is_answer, of_key), key=lambda place: -len(these.seen(place)))
                yield from ((first, second, read) for read in reads[:1])
            elif kind != "wr":
                yield from ((first, second, read) for read in of_key if read[0] == second[0])
                earlier = [place for place in of_key if these.value(place) == these.value(first)]
                later = [place for place in of_key if these.value(place) == these.value(second)]
                # In real time the use that returned first and the one that was called last do, or none.
                earlier.sort(key=lambda place: self._ends[place[0]])
                later.sort(key=lambda place: -these.all[place[0]].call)
                yield from ((first, second, *uses) for uses in islice(product(earlier, later), _USES_MAX))
