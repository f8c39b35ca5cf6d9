"""Descriptions of operations: `wrote 7 to k3`, `appended 18 to k0 and read [1, 2] from k1`.

An operation is described in two lengths: as the label of a bar, and as the predicate of a sentence. A transaction is
described by its steps, with the answers of its reads, because they are its evidence: cut short they would prove
nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from faultline.harness.history import Row
from faultline.reports.service_descriptions import service_answer, service_attempt, service_predicate, stored_value
from faultline.reports.text import clipped, value_text

__all__ = ["operation_label", "predicate", "transaction_parts"]

_VALUE = 120
"""The characters of a value that a sentence shows: a list of some dozen elements, the balances of some accounts."""
_PARTS = 12
_WORDS = {
    "write": ("wrote", "write", "to"),
    "w": ("wrote", "write", "to"),
    "append": ("appended", "append", "to"),
    "add": ("added", "add", "to"),
    "enqueue": ("enqueued", "enqueue", "into"),
}
"""Operations that put a value somewhere: the verb in the past, the verb of an attempt, the word before the key."""
_TAKING = {"read": "read", "dequeue": "dequeued", "drain": "drained"}
"""Operations whose point is the answer."""


def operation_label(row: Row, with_key: bool = False, limit: int = 22) -> str:
    """Return the label of the operation on its bar: `write 9`, `read → 7`, `cas 3→5 ✗`, `write 4 ?`."""
    if (parts := transaction_parts(row)) is not None:
        told = clipped(", ".join(_terse(part, limit) for part in parts), 2 * limit)
        return f"{told}{'' if row.outcome == 'ok' else _answer(row, limit)}"
    key = f"{_short(row.key, 12)}: " if with_key and row.key is not None else ""
    return f"{key}{_call(row, limit)}{_answer(row, limit)}"


def _terse(part: Sequence[Any], limit: int) -> str:
    """Return a part of a transaction in the notation of the field: `r x [1 2]`, `append y 3`."""
    return " ".join(_short(field, limit) for field in part if field is not None)


def _call(row: Row, limit: int) -> str:
    if row.f == "cas" and isinstance(row.value, list | tuple) and len(row.value) == 2:
        return f"cas {_short(row.value[0], limit // 2)}→{_short(row.value[1], limit // 2)}"
    value = stored_value(row)
    return _short(row.f, limit) if value is None else f"{_short(row.f, limit)} {_short(value, limit)}"


def _short(value: Any, limit: int) -> str:
    return clipped(value_text(value, 4 * limit), limit)


def _answer(row: Row, limit: int) -> str:
    if row.outcome == "fail":
        return " ✗"
    if row.outcome == "info":
        return " ?"
    if (told := service_answer(row)) is not None:
        return f" → {told}"
    tells = row.f == "read" or row.result not in (
        None,
        row.value,
    )  # A write whose answer is the written value tells no more than the write itself.
    return f" → {_short(row.result, limit)}" if tells else ""


def predicate(row: Row) -> str:
    """Return the predicate of the operation, done or tried, without time and place: `wrote 7 to k3`."""
    key = "" if row.key is None else value_text(row.key, 40)
    if (parts := transaction_parts(row)) is not None:
        return _transaction(parts, row.outcome == "ok")
    return _done(row, key) if row.outcome == "ok" else f"tried to {_infinitive(row, key)}"


def transaction_parts(row: Row) -> list[Sequence[Any]] | None:
    """Return the steps of a transaction, with the answers of its reads if it certainly happened; None for others."""
    parts = row.result if row.outcome == "ok" and isinstance(row.result, list | tuple) else row.value
    if row.f != "txn" or not isinstance(parts, list | tuple) or not parts:
        return None
    whole = all(isinstance(part, list | tuple) and part and isinstance(part[0], str) for part in parts)
    return list(parts) if whole else None


def _transaction(parts: Sequence[Sequence[Any]], done: bool) -> str:
    told = [_part(part, done) for part in parts[:_PARTS]]
    if len(parts) > _PARTS:
        told.append(f"{len(parts) - _PARTS} things more")
    words = told[0] if len(told) == 1 else f"{', '.join(told[:-1])} and {told[-1]}"
    return f"{words}, in one transaction" if done else f"tried in one transaction to {words}"


def _part(part: Sequence[Any], done: bool) -> str:
    name, fields = part[0], [value_text(field, _VALUE) for field in part[1:]]
    if name in _WORDS and len(fields) == 2:
        past, infinitive, preposition = _WORDS[name]
        return f"{past if done else infinitive} {fields[1]} {preposition} {fields[0]}"
    if name == "r" and len(fields) == 2:
        return f"read {fields[1]} from {fields[0]}" if done else f"read {fields[0]}"
    return " ".join(["did" if done else "do", value_text(name, 40), *fields])


def _done(row: Row, key: str) -> str:
    if (told := service_predicate(row)) is not None:
        return told
    if row.f in _TAKING and (row.value is None or row.f == "read"):
        return f"{_TAKING[row.f]} {value_text(row.result, _VALUE)}{_of(' from ', key)}"
    answer = "" if row.result in (None, row.value) else f" and got {value_text(row.result, _VALUE)}"
    if row.f in _WORDS:
        past, _, preposition = _WORDS[row.f]
        got = "" if row.f == "write" else answer
        return f"{past} {value_text(row.value, _VALUE)}{_of(f' {preposition} ', key)}{got}"
    if row.f == "cas" and isinstance(row.value, list | tuple) and len(row.value) == 2:
        return f"changed {key or 'the register'} from {value_text(row.value[0])} to {value_text(row.value[1])}"
    return f"did {_generic(row, key)}{answer}"


def _infinitive(row: Row, key: str) -> str:
    if row.f == "read":
        return f"read {key or 'the register'}"
    if row.f in _WORDS:
        _, infinitive, preposition = _WORDS[row.f]
        return f"{infinitive} {value_text(row.value, _VALUE)}{_of(f' {preposition} ', key)}"
    if row.f == "cas" and isinstance(row.value, list | tuple) and len(row.value) == 2:
        return f"change {key or 'the register'} from {value_text(row.value[0])} to {value_text(row.value[1])}"
    return service_attempt(row) or f"do {_generic(row, key)}"


def _generic(row: Row, key: str) -> str:
    argument = "" if row.value is None else f" {value_text(row.value, _VALUE)}"
    return f"{value_text(row.f, 40)}{_of(' on ', key)}{argument}"


def _of(preposition: str, key: str) -> str:
    return preposition + key if key else ""
