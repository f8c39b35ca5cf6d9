"""Anomalies of watches: the events that watchers get, in items of `drain`, and the answers of `list`.

- `skipped-event`, drawn from events that watchers got: the watcher does not get it;
- `duplicate-event`, drawn from the same: the watcher gets it twice;
- `reordered`, drawn from drains with two events: two neighbours change places;
- `lost-write`, drawn from acknowledged writes: no watcher gets it, and no list or beginning has it;
- `stale-read`, drawn from lists that have a value: the list lacks one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.sensitivity import Anomaly, Answer, Insertion
from faultline.sensitivity.moments import drawn

__all__ = ["watched_keys"]

_NO_EVENT = "No watcher got an event."


class _Told(NamedTuple):
    """An item of a drain, by its place."""

    row: int
    place: int


def watched_keys(record: RunRecord) -> Sequence[Anomaly]:
    """Return the anomalies of watchers that get every change once, in order."""
    history = record.history
    drains = _answered(history, "drain")
    told = [
        _Told(row, place)
        for row in drains
        for place, item in enumerate(history.result[row]["items"])
        if item[0] == "event"
    ]
    events = set(told)
    neighbours = [each for each in told if _Told(each.row, each.place + 1) in events]
    lists = [row for row in _answered(history, "list") if history.result[row]["values"]]
    written = [row for row in _answered(history, "put") if type(history.result[row]) is int]
    return (
        _items("skipped-event", history, told, lambda items, place: [*items[:place], *items[place + 1 :]]),
        _items("duplicate-event", history, told, lambda items, place: [*items[: place + 1], *items[place:]]),
        _items(
            "reordered",
            history,
            neighbours,
            lambda items, place: [*items[:place], items[place + 1], items[place], *items[place + 2 :]],
        ),
        Anomaly("lost-write", written, lambda row, _chance: _forgotten(history, row), "No write was acknowledged."),
        Anomaly("stale-read", lists, lambda row, chance: _lacking(history, row, chance), "No list had a value."),
    )


def _answered(history: History, f: str) -> list[int]:
    return [row for row in range(len(history)) if history.f[row] == f and history.outcome[row] == "ok"]


def _items(
    name: str, history: History, places: Sequence[_Told], change: Callable[[list[Any], int], list[Any]]
) -> Anomaly:
    """Return the items of one drain, changed at one place."""

    def insert(place: _Told, _chance: int) -> Insertion:
        return Insertion({place.row: _drained(history, place.row, change)(place.place)}, range(len(history)))

    return Anomaly(name, places, insert, _NO_EVENT)


def _drained(history: History, row: int, change: Callable[[list[Any], int], list[Any]]) -> Callable[[int], Answer]:
    answer = history.result[row]
    return lambda place: Answer("ok", {**answer, "items": change(list(answer["items"]), place)})


def _lacking(history: History, row: int, chance: int) -> Insertion:
    answer = history.result[row]
    lacked = drawn(sorted(answer["values"]), chance)
    values = {key: value for key, value in answer["values"].items() if key != lacked}
    return Insertion({row: Answer("ok", {**answer, "values": values})}, range(len(history)))


def _forgotten(history: History, write: int) -> Insertion:
    """Return the insertion in which the write never happened."""
    key, value = history.key[write], history.value[write]
    changes = {}
    for row in _answered(history, "list"):
        answer = history.result[row]
        if answer["values"].get(key) == value:
            changes[row] = Answer("ok", {**answer, "values": _before(history, write, answer["values"])})
    for row in _answered(history, "drain"):
        answer = history.result[row]
        items = [_without(history, write, item) for item in answer["items"]]
        if items != list(answer["items"]):
            changes[row] = Answer("ok", {**answer, "items": [item for item in items if item]})
    return Insertion(changes, range(len(history)))


def _without(history: History, write: int, item: list[Any]) -> list[Any]:
    """Return an item of a drain without the write; None where it had only that."""
    key, value = history.key[write], history.value[write]
    if item[0] == "event" and item[1] == history.result[write] and item[3] == key:
        return []
    if item[0] == "state" and item[2].get(key) == value:
        return [item[0], item[1], _before(history, write, item[2]), *item[3:]]
    return item


def _before(history: History, write: int, values: dict[str, Any]) -> dict[str, Any]:
    """Return `values` with the key's value before the write, as far as writers got answers."""
    key = history.key[write]
    older = [
        row
        for row in (*_answered(history, "put"), *_answered(history, "delete"))
        if history.key[row] == key and type(history.result[row]) is int and history.result[row] < history.result[write]
    ]
    last = max(older, key=history.result.__getitem__, default=None)
    kept = {name: value for name, value in values.items() if name != key}
    if last is None or history.f[last] == "delete" or key is None:
        return kept
    return {**kept, key: history.value[last]}
