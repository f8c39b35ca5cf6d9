"""Histories of transactions that are given as lists of micro-operations, with what their reads returned."""

from __future__ import annotations

from typing import Any

from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome

__all__ = ["overlapping", "successive"]

Body = list[list[Any]]


def overlapping(*transactions: Body | tuple[str, Body]) -> History:
    """All of them invoked before any completes; a pair says how one ends (`fail` or `info`)."""
    history = History()
    pairs = [_pair(transaction) for transaction in transactions]
    rows = [_invoke(history, process, body) for process, (_, body) in enumerate(pairs)]
    for row, (kind, body) in zip(rows, pairs, strict=True):
        _complete(history, row, kind, body)
    return history


def successive(*transactions: Body | tuple[str, Body]) -> History:
    """Each completes before the next is invoked, and each has a process of its own."""
    history = History()
    for process, transaction in enumerate(transactions):
        kind, body = _pair(transaction)
        _complete(history, _invoke(history, process, body), kind, body)
    return history


def _pair(transaction: Body | tuple[str, Body]) -> tuple[str, Body]:
    return transaction if isinstance(transaction, tuple) else ("ok", transaction)


def _invoke(history: History, process: int, body: Body) -> int:
    asked = [[*micro[:2], None] if micro[0] in ("r", "rp") else micro for micro in body]
    return history.invoke(Operation(process, "txn", None, asked), history.next_index, process, "")


def _complete(history: History, row: int, kind: str, body: Body) -> None:
    outcome = Outcome("ok", body) if kind == "ok" else Outcome("fail" if kind == "fail" else "info", None, "e")
    history.complete(row, outcome, history.next_index)
