"""Anomalies of queues: `enqueue` of elements that are never used twice, `dequeue` and `drain`, without a promise of
order.

- `lost-write`, drawn from acknowledged elements × moments before they came out: it does not come out any more: a
  dequeue finds the queue empty, a drain has the others;
- `duplicate-element`, drawn from elements that came out: the first that found the queue empty afterwards gets it
  again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.sensitivity import Anomaly, Answer, Insertion
from faultline.sensitivity.moments import NEVER, Moments

__all__ = ["queues"]

_TAKING = ("dequeue", "drain")


class _Element(NamedTuple):
    """An element, the rows of its queue, the row that got it if one did, and the moments at which it was in the
    queue."""

    rows: Sequence[int]
    element: Any
    taken: int | None
    moments: Sequence[int] = ()


def queues(record: RunRecord) -> Sequence[Anomaly]:
    """Return the anomalies of queues that are drained in the end."""
    history, moments = record.history, Moments(record.history)
    lost: list[_Element] = []
    again: list[_Element] = []
    for rows in history.rows_by_key().values():
        takers = {element: row for row in rows for element in _taken(history, row)}
        again += [_Element(rows, element, row) for element, row in takers.items()]
        for row in rows:
            if history.f[row] != "enqueue" or history.outcome[row] != "ok":
                continue
            taken = takers.get(history.value[row])
            until = NEVER if taken is None else history.invoke_index[taken]
            if due := moments.between(history.complete_index[row], until):
                lost.append(_Element(rows, history.value[row], taken, due))
    return (
        Anomaly(
            "lost-write",
            lost,
            lambda place, _chance: _not_delivered(history, place),
            "No acknowledged element was in a queue when a fault began or ended.",
        ),
        Anomaly(
            "duplicate-element",
            again,
            lambda place, _chance: _delivered_again(history, place),
            "No element came out of a queue.",
        ),
    )


def _taken(history: History, row: int) -> list[Any]:
    """Return the elements that the operation in `row` got out of the queue."""
    if history.f[row] not in _TAKING or history.outcome[row] != "ok" or history.result[row] is None:
        return []
    return list(history.result[row]) if history.f[row] == "drain" else [history.result[row]]


def _not_delivered(history: History, place: _Element) -> Insertion:
    if place.taken is None:
        return Insertion({}, place.rows)
    others = [element for element in _taken(history, place.taken) if element != place.element]
    answer = others if history.f[place.taken] == "drain" else None
    return Insertion({place.taken: Answer("ok", answer)}, place.rows)


def _delivered_again(history: History, place: _Element) -> Insertion:
    """Return the second delivery, or no change where no client found the queue empty afterwards."""
    assert place.taken is not None
    end = history.complete_index[place.taken]
    for row in place.rows:
        found_nothing = history.f[row] in _TAKING and history.outcome[row] == "ok" and not _taken(history, row)
        if found_nothing and history.invoke_index[row] > end:
            answer = [place.element] if history.f[row] == "drain" else place.element
            return Insertion({row: Answer("ok", answer)}, place.rows)
    return Insertion({}, place.rows)
