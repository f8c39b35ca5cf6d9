"""Short ways to write down histories of transactions."""

from __future__ import annotations

from typing import Any

from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome

__all__ = ["concurrent", "micros", "one_after_another"]


def micros(text: str) -> list[list[Any]]:
    """`"ax1 ry[1,2] rz- wx3"` as micro-operations: append 1 to x, read [1, 2] from y, nothing from z, write 3 to x."""
    return [_micro(part) for part in text.split()]


def _micro(text: str) -> list[Any]:
    name = {"a": "append", "w": "w", "r": "r"}[text[0]]
    value = text[2:]
    if value == "-":
        return [name, text[1], None]
    if value.startswith("["):
        return [name, text[1], [int(part) for part in value[1:-1].split(",") if part]]
    return [name, text[1], int(value)]


def concurrent(*transactions: str) -> History:
    """All of them invoked before any completes. A prefix `fail:` or `info:` says how one ends."""
    history = History()
    parts = [_parts(text) for text in transactions]
    rows = [_invoke(history, process, body) for process, (_, body) in enumerate(parts)]
    for row, (outcome, body) in zip(rows, parts, strict=True):
        _complete(history, row, outcome, body)
    return history


def one_after_another(*transactions: str) -> History:
    """Each completes before the next is invoked. A prefix `pN:` says which process runs one, else each has its own."""
    history = History()
    for number, text in enumerate(transactions):
        process, rest = (int(text[1]), text[3:]) if text[0] == "p" else (100 + number, text)
        outcome, body = _parts(rest)
        _complete(history, _invoke(history, process, body), outcome, body)
    return history


def _parts(text: str) -> tuple[str, list[list[Any]]]:
    head, colon, rest = text.partition(":")
    return (head, micros(rest)) if colon else ("ok", micros(text))


def _invoke(history: History, process: int, body: list[list[Any]]) -> int:
    asked = [[name, key, None if name == "r" else value] for name, key, value in body]
    return history.invoke(Operation(process, "txn", None, asked), history.next_index, process, "")


def _complete(history: History, row: int, outcome: str, body: list[list[Any]]) -> None:
    result = Outcome("ok", body) if outcome == "ok" else Outcome("fail" if outcome == "fail" else "info", None, "e")
    history.complete(row, result, history.next_index)
