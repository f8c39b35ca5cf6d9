"""Misreads, cycles and conflicts of transactions in words. The name of a transaction is T and its row in the
history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from faultline.checkers.common.words import told
from faultline.checkers.isolation.committed import INITIAL, Committed, Misread
from faultline.checkers.isolation.order import Edge
from faultline.harness.history import History

__all__ = ["Chain", "describe_edge", "edge_detail", "rows_of", "told_cycle", "told_misread", "transaction_name"]

Chain = tuple[int, ...]
"""The number of named transactions in between, when one knew of another through others."""

_MISREADS = {
    "garbage-read": "which was never written",
    "aborted-read": "which {writer} wrote, and {writer} certainly failed (G1a)",
    "intermediate-read": "which {writer} overwrote itself before it ended (G1b)",
    "future-read": "which it wrote itself only later",
    "internal": "although it had written another value to that key before",
}


def transaction_name(committed: Committed, number: int) -> str:
    """Return `T7`, after the row of the history; `the initial state` for the initial transaction."""
    return "the initial state" if number == INITIAL else f"T{committed.transactions[number].row}"


def told_misread(history: History, misread: Misread) -> str:
    """Return a read that no level allows, as a sentence."""
    why = _MISREADS[misread.anomaly].format(writer=f"T{misread.writer}")
    reader = f"T{misread.reader} (client {history.process[misread.reader]})"
    return f"{reader} read {told(misread.value)} from {told(misread.key)}, {why}."


def told_cycle(committed: Committed, cycle: Sequence[Edge], chains: Mapping[Edge, Chain]) -> str:
    """Return a cycle as a sentence: why each transaction comes before the next, and the last before the first."""
    because = "; ".join(describe_edge(committed, edge, chains.get(edge, ())) for edge in cycle)
    names = [transaction_name(committed, edge.source) for edge in cycle]
    return f"No order of {', '.join(names[:-1])} and {names[-1]} is possible: {because}."


def describe_edge(committed: Committed, edge: Edge, chain: Chain = ()) -> str:
    """Return why one transaction comes before another; `chain` leads from a forced edge's source to its reader."""
    source, target = transaction_name(committed, edge.source), transaction_name(committed, edge.target)
    key = told(edge.key)
    if edge.kind == "session":
        return f"{source} comes before {target} in their session"
    if edge.kind == "reads":
        return f"{source} comes before {target}, which read its write of {key}"
    if edge.kind == "initial":
        return f"{source} comes before all others"
    reader = transaction_name(committed, edge.reader)
    through = f" through {', '.join(transaction_name(committed, number) for number in chain)}" if chain else ""
    return (
        f"{source} comes before {target}, because {reader} knew of {source}{through} and read {key} from {target}, "
        f"though {source} wrote {key} too"
    )


def rows_of(committed: Committed, cycle: Sequence[Edge], chains: Mapping[Edge, Chain]) -> tuple[int, ...]:
    """Return the rows of all transactions of a cycle, in order of invocation."""
    numbers = {number for edge in cycle for number in (edge.source, edge.target, edge.reader, *chains.get(edge, ()))}
    rows = {row for number in numbers if number > INITIAL for row in committed.transactions[number].rows()}
    return tuple(sorted(rows))


def edge_detail(committed: Committed, edge: Edge, chain: Chain = ()) -> dict[str, Any]:
    """Return an edge as plain data for reports."""
    return {
        "from": committed.transactions[edge.source].row,
        "to": committed.transactions[edge.target].row,
        "kind": edge.kind,
        "key": None if edge.key is None else told(edge.key),
        "because": describe_edge(committed, edge, chain),
    }
