"""Anomalies of bookings of two things by one guest, and of pairs of a cause and its effect: two halves that belong
together.

Bookings:

- `lost-write`, drawn from booked days × moments after the acknowledgement: the day is free, until a guest asks for it;
- `half-transaction`, drawn from the same: the second thing is free;
- `double-grant`, drawn from requests for a day that another guest had: the guest who asked has it too;
- `fractured-read`, drawn from looks at booked days: the second thing is free in that answer.

Pairs:

- `lost-write`, drawn from acknowledged writes that stood at a moment: later reads have the one before;
- `fractured-read`, drawn from reads of an effect: the cause is the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.sensitivity import Anomaly, Answer, Insertion
from faultline.sensitivity.moments import NEVER, Moments, drawn

__all__ = ["bookings", "causal_pairs"]

_NO_MOMENT = "Nothing had been acknowledged when a fault began or ended."


class _Day(NamedTuple):
    """A booked day: its rows, in order of invocation, and the moments after the booking was acknowledged."""

    rows: Sequence[int]
    moments: Sequence[int]


def bookings(record: RunRecord) -> Sequence[Anomaly]:
    """Return the anomalies of days with two things that are booked together."""
    history, moments = record.history, Moments(record.history)
    by_day = history.rows_by_key()
    days = [
        _Day(rows, due)
        for rows in by_day.values()
        if (end := _booked(history, rows)) != NEVER and (due := moments.between(end))
    ]
    named = [row for row in range(len(history)) if _owner(history, row) is not None]

    def lost(day: _Day, chance: int) -> Insertion:
        return Insertion(_booked_again(history, day.rows, drawn(day.moments, chance)), day.rows)

    def halved(day: _Day, chance: int) -> Insertion:
        moment = drawn(day.moments, chance)
        late = [row for row in day.rows if _owner(history, row) is not None and history.invoke_index[row] > moment]
        return Insertion({row: Answer("ok", [_owner(history, row), None]) for row in late}, day.rows)

    def granted(row: int, _chance: int) -> Insertion:
        guest = history.value[row]
        return Insertion({row: Answer("ok", [guest, guest])}, by_day[history.key[row]])

    def fractured(row: int, _chance: int) -> Insertion:
        return Insertion({row: Answer("ok", [_owner(history, row), None])}, by_day[history.key[row]])

    refused = [row for row in named if history.f[row] == "book" and _owner(history, row) != history.value[row]]
    looked = [row for row in named if history.f[row] == "bookings"]
    return (
        Anomaly("lost-write", days, lost, _NO_MOMENT),
        Anomaly("half-transaction", days, halved, _NO_MOMENT),
        Anomaly("double-grant", refused, granted, "No guest asked for a day that another guest had."),
        Anomaly("fractured-read", looked, fractured, "No guest looked at a day that was booked."),
    )


def _owner(history: History, row: int) -> Any:
    answer = history.result[row]
    return answer[0] if history.outcome[row] == "ok" and isinstance(answer, list) else None


def _booked(history: History, rows: Sequence[int]) -> int:
    """Return when the guest who has the day, or another one, got the answer."""
    return min((history.complete_index[row] for row in rows if _owner(history, row) is not None), default=NEVER)


def _booked_again(history: History, rows: Sequence[int], moment: int) -> dict[int, Answer]:
    """Return the answers after the day was forgotten: it is free until a guest asks for it."""
    late = [row for row in rows if history.invoke_index[row] > moment and history.outcome[row] == "ok"]
    owner, changes = None, {}
    for row in sorted(late, key=history.complete_index.__getitem__):
        if owner is None and history.f[row] == "book":
            owner = history.value[row]
        if owner != _owner(history, row):
            changes[row] = Answer("ok", [owner, owner])
    return changes


def causal_pairs(record: RunRecord) -> Sequence[Anomaly]:
    """Return the anomalies of pairs whose right half follows from the left."""
    history, moments = record.history, Moments(record.history)
    by_key = history.rows_by_key()
    writes = [row for row in range(len(history)) if history.f[row] == "write-pair" and history.outcome[row] == "ok"]
    reads = [row for row in range(len(history)) if history.f[row] == "read-pair" and history.outcome[row] == "ok"]

    def lost(row: int, chance: int) -> Insertion | None:
        until = _next(history, by_key[history.key[row]], row)
        due = moments.between(history.complete_index[row], until)
        if not due:
            return None
        moment, value = drawn(due, chance), history.value[row]
        changes = {
            read: Answer("ok", [_before(half) if half == value else half for half in history.result[read]])
            for read in by_key[history.key[row]]
            if history.f[read] == "read-pair"
            and history.outcome[read] == "ok"
            and history.invoke_index[read] > moment
            and value in history.result[read]
        }
        return Insertion(changes, by_key[history.key[row]]) if changes or until == NEVER else None

    def fractured(row: int, _chance: int) -> Insertion:
        right = history.result[row][1]
        return Insertion({row: Answer("ok", [_before(right), right])}, by_key[history.key[row]])

    effects = [row for row in reads if history.result[row][1] is not None]
    return (
        Anomaly("lost-write", writes, lost, _NO_MOMENT),
        Anomaly("fractured-read", effects, fractured, "No read saw an effect."),
    )


def _next(history: History, rows: Sequence[int], write: int) -> int:
    """Return when the next write of the pair began: it has one writer."""
    later = (row for row in rows if row > write and history.f[row] == "write-pair")
    return next((history.invoke_index[row] for row in later), NEVER)


def _before(value: int) -> int | None:
    return value - 1 if value > 1 else None
