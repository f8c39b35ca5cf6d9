"""Anomalies of growing sets and lists: `add` or `append` of elements that are never used twice, and `read` of all.

- `lost-write`, drawn from acknowledged elements × moments after that: no later read has the element;
- `duplicate-element`, drawn from the same: every later read has the element twice;
- `stale-read`, drawn from reads of elements acknowledged before they began: the read has nothing from such an element
  on;
- `reordered`, drawn from reads with two elements that cannot be exchanged: lists: two neighbours change places; sets:
  the read has the later one without the earlier one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.sensitivity import Anomaly, Answer, Insertion
from faultline.sensitivity.moments import Moments, drawn

__all__ = ["carts", "lists", "ordered_lists", "sequential_sets", "sets"]

_ADDING = ("add", "append")
_NO_PAIR = "No read saw two elements whose order is known."


class _Object(NamedTuple):
    """One set or list: all rows, the additions by element, and the answer of each read, by row."""

    rows: Sequence[int]
    additions: dict[Any, int]
    reads: dict[int, list[Any]]


class _Objects:
    """The sets or lists of a run, each computed when it is asked for."""

    def __init__(self, record: RunRecord) -> None:
        self.history, self.moments = record.history, Moments(record.history)
        self._rows = record.history.rows_by_key()
        self._known: dict[str | None, _Object] = {}

    def of(self, row: int) -> _Object:
        """Return the object that the operation in `row` is about."""
        history, key = self.history, self.history.key[row]
        if key not in self._known:
            rows = self._rows[key]
            self._known[key] = _Object(
                rows,
                {history.value[row]: row for row in rows if history.f[row] in _ADDING},
                {
                    row: list(history.result[row] or ())
                    for row in rows
                    if history.f[row] == "read" and history.outcome[row] == "ok"
                },
            )
        return self._known[key]

    def successful(self, *functions: str) -> list[int]:
        """Return the rows of these functions that were answered."""
        columns = zip(self.history.f, self.history.outcome, strict=True)
        return [row for row, (f, outcome) in enumerate(columns) if outcome == "ok" and f in functions]


def sets(record: RunRecord) -> Sequence[Anomaly]:
    """Return the anomalies of sets all of whose reads are up to date."""
    objects = _Objects(record)
    return (*_kept(objects), _stale(objects, _acknowledged_before))


def lists(record: RunRecord) -> Sequence[Anomaly]:
    """Return the anomalies of lists all of whose reads are up to date."""
    objects = _Objects(record)
    return (*_kept(objects), _stale(objects, _acknowledged_before), _exchanged(objects))


def ordered_lists(record: RunRecord) -> Sequence[Anomaly]:
    """Return the anomalies of lists that may be read at servers that lag behind."""
    objects = _Objects(record)
    return (*_kept(objects), _exchanged(objects))


def sequential_sets(record: RunRecord) -> Sequence[Anomaly]:
    """Return the anomalies of sets that may be read at servers that lag behind, while no client goes back."""
    objects = _Objects(record)
    lost, _ = _kept(objects)
    return (lost, _stale(objects, _seen_before), _without_earlier(objects))


def carts(record: RunRecord) -> Sequence[Anomaly]:
    """Return the anomalies of sets of which only the end is promised."""
    return _kept(_Objects(record))


def _kept(objects: _Objects) -> tuple[Anomaly, Anomaly]:
    """Return the anomalies of elements that are lost, and of elements that appear twice."""
    return (
        _from_a_moment("lost-write", objects, _without),
        _from_a_moment("duplicate-element", objects, lambda seen, element: [*seen, element]),
    )


def _from_a_moment(name: str, objects: _Objects, changed: Callable[[list[Any], Any], list[Any]]) -> Anomaly:
    """Return the anomaly that `changed` all reads that begin after a moment and had the element."""
    history = objects.history

    def insert(row: int, chance: int) -> Insertion | None:
        one, element = objects.of(row), history.value[row]
        due = objects.moments.between(history.complete_index[row])
        if not due:
            return None
        moment = drawn(due, chance)
        changes = {
            read: Answer("ok", changed(seen, element))
            for read, seen in one.reads.items()
            if history.invoke_index[read] > moment and element in seen
        }
        return Insertion(changes, one.rows)

    missing = "Nothing had been acknowledged when a fault began or ended."
    return Anomaly(name, objects.successful(*_ADDING), insert, missing)


def _without(seen: list[Any], element: Any) -> list[Any]:
    return [other for other in seen if other != element]


def _one_read(
    name: str,
    objects: _Objects,
    choices: Callable[[_Object, int], Sequence[Any]],
    change: Callable[[_Object, list[Any], Any], list[Any]],
    missing: str,
) -> Anomaly:
    """Return the anomaly of a read in which `change` is made with one of its `choices`."""

    def insert(row: int, chance: int) -> Insertion | None:
        one = objects.of(row)
        due = choices(one, row)
        if not due:
            return None
        return Insertion({row: Answer("ok", change(one, one.reads[row], drawn(due, chance)))}, one.rows)

    return Anomaly(name, objects.successful("read"), insert, missing)


def _stale(objects: _Objects, knows: Callable[[History, _Object, int, Any], bool]) -> Anomaly:
    """Return the anomaly of reads that miss an element they must know, and everything that was added after it."""
    history = objects.history

    def change(one: _Object, seen: list[Any], oldest: Any) -> list[Any]:
        if history.f[one.additions[oldest]] == "append":
            return seen[: seen.index(oldest)]
        since = history.complete_index[one.additions[oldest]]
        return [element for element in seen if _ended(history, one, element) < since]

    return _one_read(
        "stale-read",
        objects,
        lambda one, row: [element for element in one.reads[row] if knows(history, one, row, element)],
        change,
        "No read saw an element that it must know.",
    )


def _ended(history: History, one: _Object, element: Any) -> int:
    """Return when `element` had been added; an addition without an answer comes last."""
    row = one.additions.get(element)
    return history.complete_index[row] if row is not None and history.outcome[row] == "ok" else history.next_index


def _acknowledged_before(history: History, one: _Object, read: int, element: Any) -> bool:
    return element in one.additions and _ended(history, one, element) < history.invoke_index[read]


def _seen_before(history: History, one: _Object, read: int, element: Any) -> bool:
    """Return whether the same client had read it."""
    process = history.process[read]
    return element in one.additions and any(
        history.process[row] == process and element in seen for row, seen in one.reads.items() if row < read
    )


def _exchanged(objects: _Objects) -> Anomaly:
    """Return the list with two neighbours exchanged."""

    def change(_one: _Object, seen: list[Any], number: int) -> list[Any]:
        return [*seen[:number], seen[number + 1], seen[number], *seen[number + 2 :]]

    return _one_read("reordered", objects, lambda one, row: range(len(one.reads[row]) - 1), change, _NO_PAIR)


def _without_earlier(objects: _Objects) -> Anomaly:
    """Return the set without an element that was acknowledged before the addition of a kept one began."""
    return _one_read(
        "reordered",
        objects,
        lambda one, row: list(_earlier(objects.history, one, one.reads[row])),
        lambda _one, seen, element: _without(seen, element),
        _NO_PAIR,
    )


def _earlier(history: History, one: _Object, seen: list[Any]) -> Iterator[Any]:
    """Yield the elements that were acknowledged before the addition of a neighbour began."""
    ordered = sorted((element for element in seen if element in one.additions), key=lambda e: one.additions[e])
    for element, later in pairwise(ordered):
        if _ended(history, one, element) < history.invoke_index[one.additions[later]]:
            yield element
