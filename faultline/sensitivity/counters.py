"""Anomalies of counters: `increment`, which answers the new value, `read`, and `generate`, which draws a new
identifier.

- `lost-write`, drawn from acknowledged increments × moments after that: all later answers are less by the amount;
- `duplicate-write`, drawn from the same: all later answers are more by the amount;
- `stale-read`, drawn from reads that began after an increment had been acknowledged: the read lacks the amount of the
  last such;
- `duplicate-id`, drawn from draws after another had been answered: the draw answers the identifier of that.

A counter that forgets draws the same identifiers again: for `generate`, `lost-write` is drawn from the acknowledged
draws, and from the moment on one less was drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.sensitivity import Anomaly, Answer, Insertion
from faultline.sensitivity.moments import Moments, drawn

__all__ = ["counters", "identifiers", "sessions_on_counters"]

_NO_MOMENT = "Nothing had been acknowledged when a fault began or ended."


class _Increment(NamedTuple):
    """An acknowledged operation that counts `amount`, the rows of its counter, and the moments after it."""

    rows: Sequence[int]
    row: int
    amount: int
    moments: Sequence[int]


def counters(record: RunRecord) -> Sequence[Anomaly]:
    """Return the anomalies of counters all of whose reads are up to date."""
    return (*_counted(record, (-1, 1)), _stale(record, lambda _history, _read, _row: True))


def sessions_on_counters(record: RunRecord) -> Sequence[Anomaly]:
    """Return the anomalies of counters whose reads may be old, unless the client itself knew a newer value."""

    def is_own(history: History, read: int, row: int) -> bool:
        return history.process[read] == history.process[row]

    return (*_counted(record, (-1,)), _stale(record, is_own))


def identifiers(record: RunRecord) -> Sequence[Anomaly]:
    """Return the anomalies of identifiers that are drawn from a counter."""
    history = record.history
    rows = [row for row in range(len(history)) if history.outcome[row] == "ok"]
    order = sorted(rows, key=history.complete_index.__getitem__)
    first = history.complete_index[order[0]] if order else 0

    def insert(row: int, chance: int) -> Insertion:
        before = [other for other in order if history.complete_index[other] < history.invoke_index[row]]
        return Insertion({row: Answer("ok", history.result[drawn(before, chance)])}, range(len(history)))

    late = [row for row in rows if history.invoke_index[row] > first]
    again = Anomaly("duplicate-id", late, insert, "No two identifiers were drawn one after the other.")
    return (*_counted(record, (-1,)), again)


def _counted(record: RunRecord, signs: Sequence[int]) -> tuple[Anomaly, ...]:
    """Return the anomaly that makes all answers after a moment less, or more."""
    history, moments = record.history, Moments(record.history)
    places = [
        _Increment(rows, row, _amount(history, row), due)
        for rows in history.rows_by_key().values()
        for row in rows
        if history.f[row] in ("increment", "generate")
        and _is_number(history, row)
        and (due := moments.between(history.complete_index[row]))
    ]

    def shifted(sign: int) -> Callable[[_Increment, int], Insertion]:
        return lambda place, chance: _shifted(history, place, drawn(place.moments, chance), sign * place.amount)

    names = {-1: "lost-write", 1: "duplicate-write"}
    return tuple(Anomaly(names[sign], places, shifted(sign), _NO_MOMENT) for sign in signs)


def _shifted(history: History, place: _Increment, moment: int, by: int) -> Insertion:
    changes = {
        row: Answer("ok", history.result[row] + by)
        for row in place.rows
        if history.invoke_index[row] > moment and _is_number(history, row)
    }
    return Insertion(changes, place.rows)


def _stale(record: RunRecord, knows: Callable[[History, int, int], bool]) -> Anomaly:
    """Return the anomaly of a read without the last increment it must know that was acknowledged before it began."""
    history, by_key = record.history, record.history.rows_by_key()

    def insert(read: int, _chance: int) -> Insertion | None:
        rows = by_key[history.key[read]]
        known = [
            row
            for row in rows
            if history.f[row] == "increment"
            and _is_number(history, row)
            and history.complete_index[row] < history.invoke_index[read]
            and knows(history, read, row)
        ]
        if not known:
            return None
        last = max(known, key=lambda row: history.result[row])
        return Insertion({read: Answer("ok", history.result[last] - _amount(history, last) or None)}, rows)

    reads = [row for row in range(len(history)) if history.f[row] == "read" and _is_number(history, row)]
    return Anomaly("stale-read", reads, insert, "No read began after an increment that it must know.")


def _amount(history: History, row: int) -> int:
    value = history.value[row]
    return value if type(value) is int else 1


def _is_number(history: History, row: int) -> bool:
    answer: Any = history.result[row]
    return history.outcome[row] == "ok" and type(answer) is int
