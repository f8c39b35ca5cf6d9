"""Anomalies of scans of ranges of keys that are written and deleted.

- `lost-write`, drawn from acknowledged writes that stood at a moment: later scans lack the key, or have the value
  before;
- `stale-read`, drawn from scanned values that were acknowledged before the scan began, of keys that had been written
  before: the scan has the value before;
- `skipped-element`, drawn from scanned values that were acknowledged before the scan: the scan lacks the key;
- `duplicate-element`, drawn from scanned keys: the scan has the key twice;
- `reordered`, drawn from scans of two keys: two neighbours change places;
- `resurrected-element`, drawn from keys in the range of a scan that had been deleted before: the scan has the deleted
  value.

A write stands until another change of its key begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.sensitivity import Anomaly, Answer, Insertion
from faultline.sensitivity.moments import NEVER, Moments, drawn

__all__ = ["scanned_keys"]

_CHANGES = ("write", "delete")


class _Found(NamedTuple):
    """A key in the answer of a scan, by its place, and the row that wrote its value."""

    scan: int
    place: int
    write: int


def scanned_keys(record: RunRecord) -> Sequence[Anomaly]:
    """Return the anomalies of scans that have every key that existed throughout."""
    history = record.history
    keys = _Keys(history)
    found = [
        _Found(scan, place, keys.writes[key, value])
        for scan in keys.scans
        for place, (key, value) in enumerate(history.result[scan])
        if (key, value) in keys.writes
    ]
    return (
        _lost(history, keys),
        _one_scan("stale-read", history, found, keys.aged),
        _one_scan("skipped-element", history, found, keys.skipped),
        _one_scan(
            "duplicate-element", history, found, lambda items, each: [*items[: each.place + 1], *items[each.place :]]
        ),
        _one_scan("reordered", history, found, _exchanged),
        _resurrected(history, keys),
    )


class _Keys:
    """The writes and deletions by key, and the scans."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.by_key = {key: rows for key, rows in history.rows_by_key().items() if key is not None}
        self.writes = {
            (key, history.value[row]): row
            for key, rows in self.by_key.items()
            for row in rows
            if history.f[row] == "write"
        }
        self.scans = [row for row in range(len(history)) if history.f[row] == "scan" and history.outcome[row] == "ok"]

    def before(self, row: int) -> int | None:
        """Return the last change of the key that had been acknowledged before the one in `row` began, if it was a
        write."""
        history = self.history
        older = [
            other
            for other in self.by_key[history.key[row] or ""]
            if history.f[other] in _CHANGES and _ended(history, other) < history.invoke_index[row]
        ]
        last = max(older, key=history.complete_index.__getitem__, default=None)
        return None if last is None or history.f[last] == "delete" else last

    def is_known(self, each: _Found) -> bool:
        """Return whether the value that was found had been acknowledged before the scan began."""
        return _ended(self.history, each.write) < self.history.invoke_index[each.scan]

    def without(self, items: list[Any], each: _Found) -> list[Any]:
        """Return the answer as it was before the write: with an older value, or without the key."""
        older, key = self.before(each.write), items[each.place][0]
        old = [] if older is None else [[key, self.history.value[older]]]
        return [*items[: each.place], *old, *items[each.place + 1 :]]

    def aged(self, items: list[Any], each: _Found) -> list[Any] | None:
        """Return the answer with the value before."""
        return self.without(items, each) if self.is_known(each) and self.before(each.write) is not None else None

    def skipped(self, items: list[Any], each: _Found) -> list[Any] | None:
        """Return the answer without the key."""
        return [*items[: each.place], *items[each.place + 1 :]] if self.is_known(each) else None

    def deleted(self, scan: int) -> list[int]:
        """Return the writes in the range of the scan whose deletion was certainly the last change before it."""
        return [write for key in self._absent(scan) for write in self._deleted_write(key, scan)]

    def _absent(self, scan: int) -> Iterator[str]:
        start, end = self.history.value[scan]
        there = {key for key, _ in self.history.result[scan]}
        return (key for key in self.by_key if key not in there and key >= start and (end is None or key < end))

    def _deleted_write(self, key: str, scan: int) -> Iterator[int]:
        history, begin = self.history, self.history.invoke_index[scan]
        changes = [row for row in self.by_key[key] if history.f[row] in _CHANGES and history.invoke_index[row] < begin]
        last = max(changes, default=None)
        if last is not None and history.f[last] == "delete" and _ended(history, last) < begin:
            write = self.before(last)
            if write is not None:
                yield write


def _ended(history: History, row: int) -> int:
    return history.complete_index[row] if history.outcome[row] == "ok" else NEVER


def _one_scan(
    name: str, history: History, places: Sequence[_Found], change: Callable[[list[Any], _Found], list[Any] | None]
) -> Anomaly:
    def insert(place: _Found, _chance: int) -> Insertion | None:
        items = change(list(history.result[place.scan]), place)
        return None if items is None else Insertion({place.scan: Answer("ok", items)}, range(len(history)))

    return Anomaly(name, places, insert, "No scan had such a key.")


def _exchanged(items: list[Any], each: _Found) -> list[Any] | None:
    """Return the answer with a key and the next one exchanged."""
    if each.place + 1 == len(items):
        return None
    return [*items[: each.place], items[each.place + 1], items[each.place], *items[each.place + 2 :]]


def _resurrected(history: History, keys: _Keys) -> Anomaly:
    def insert(scan: int, chance: int) -> Insertion | None:
        writes = keys.deleted(scan)
        if not writes:
            return None
        write = drawn(writes, chance)
        items = [*history.result[scan], [history.key[write], history.value[write]]]
        answer = Answer("ok", sorted(items, key=lambda item: str(item[0])))
        return Insertion({scan: answer}, range(len(history)))

    return Anomaly("resurrected-element", keys.scans, insert, "No scan lacked a key that had been deleted.")


def _lost(history: History, keys: _Keys) -> Anomaly:
    moments = Moments(history)

    def insert(write: int, chance: int) -> Insertion | None:
        until = _changed_again(history, keys, write)
        due = moments.between(history.complete_index[write], until)
        if not due:
            return None
        moment, written = drawn(due, chance), (history.key[write], history.value[write])
        changes = {}
        for scan in keys.scans:
            items = list(history.result[scan])
            at = next((number for number, item in enumerate(items) if tuple(item) == written), None)
            if at is not None and history.invoke_index[scan] > moment:
                changes[scan] = Answer("ok", keys.without(items, _Found(scan, at, write)))
        return Insertion(changes, range(len(history))) if changes or until == NEVER else None

    writes = [row for row in keys.writes.values() if history.outcome[row] == "ok"]
    return Anomaly("lost-write", writes, insert, "No acknowledged write stood when a fault began or ended.")


def _changed_again(history: History, keys: _Keys, write: int) -> int:
    """Return when the next change of the key that did not fail began."""
    end = history.complete_index[write]
    begins = [
        history.invoke_index[row]
        for row in keys.by_key[history.key[write] or ""]
        if row != write and history.f[row] in _CHANGES and history.outcome[row] != "fail"
    ]
    return min((begin for begin in begins if begin > end), default=NEVER)
