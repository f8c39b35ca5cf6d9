"""Watches while operations come and go: the incremental twin of `checkers.watches`.

Certain at once is an event that does not come behind all that its watch was told before, one of a key that is not
watched, one of a value that no write had been called to put or whose write failed after all, one that another watch
told otherwise, one at another index than its writer was told, and one that a watch has passed over.

A watch has *passed* an entry when it was told of a later one, or that all of this one was told. An event of a passed
entry that is known from another watch or from its writer, and that the watch has not told, is missed: a later telling
would come too late. An event within an entry that is not passed may still come.

State: for each open watch two positions; the events of the ENTRIES_KEPT newest entries; the values of each key, until
there are more than VALUES_MAX. Left to the check afterwards are earlier entries and the values of such keys, watches
that have ended or that announced a gap since, lists, and whether a watch stalled.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Hashable, Iterator
from typing import Any

from faultline.checkers.common.words import token
from faultline.checkers.watch_streams import Position, is_below, is_drain
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome
from faultline.harness.revisions import WHOLE_ENTRY

__all__ = ["ENTRIES_KEPT", "VALUES_MAX", "IncrementalWatches"]

ENTRIES_KEPT = 10_000
"""The most entries whose events are kept."""

VALUES_MAX = 10_000
"""The most values of one key that are kept."""

_CHANGES = ("put", "attach", "delete")
_NEVER = 1 << 62


class _Watch:
    """A watch: where its span began, the last position told, and the last entry judged as passed."""

    __slots__ = ("end", "judged", "number", "path", "row", "start")

    def __init__(self, path: str, number: Any) -> None:
        self.path, self.number = path, number
        self.start: Position | None = None
        self.end = (-1, -1)
        self.judged = self.row = -1

    def begin(self, start: Position, row: int) -> None:
        """Begin a span at `start`, told by `row`."""
        self.start = self.end = start
        self.judged, self.row = start[0], row

    def has_passed(self) -> int:
        """Return the index of the last entry that was passed."""
        return self.end[0] if self.end[1] >= WHOLE_ENTRY else self.end[0] - 1


class _Event:
    """An event: what a watch told of it in `row`, None while only its writer did, and the watches that told it."""

    __slots__ = ("row", "watches", "what")

    def __init__(self, row: int) -> None:
        self.row = row
        self.what: Hashable = None
        self.watches: set[_Watch] = set()


class _Value:
    """A value of a key: the calls of its writes that have not failed, the indexes they were told, and its events.

    An open write has no index yet, and one of unknown outcome never gets one. `events` have a row for each index.
    """

    __slots__ = ("calls", "events", "first_told", "indexes")

    def __init__(self) -> None:
        self.calls: dict[int, int] = {}
        self.indexes: dict[int, int] = {}
        self.events: dict[int, int] = {}
        self.first_told = _NEVER

    def wrong_event(self) -> int | None:
        """Return the row of an event that no write explains; None when there is none."""
        if self.first_told < min(self.calls.values(), default=_NEVER):
            return next(iter(self.events.values()))
        if len(self.indexes) < len(self.calls):
            return None
        told = self.indexes.values()
        return next((row for index, row in self.events.items() if index not in told), None)


class IncrementalWatches:
    """Changes of keys, and the drains of watches."""

    name = "watches"

    def __init__(self, *, entries_kept: int = ENTRIES_KEPT, values_max: int = VALUES_MAX) -> None:
        self._entries_kept, self._values_max = entries_kept, values_max
        self._watches: dict[int, dict[str, _Watch]] = {}
        self._entries: dict[int, dict[str, _Event]] = {}
        self._indexes: list[int] = []
        self._forgotten = -1
        self._values: dict[str, dict[Hashable, _Value] | None] = {}
        self._open: dict[int, Operation] = {}
        self._now = 0

    @property
    def left(self) -> tuple[str, ...]:
        """The keys whose values are left to the check afterwards."""
        return tuple(key for key, values in self._values.items() if values is None)

    @property
    def size(self) -> int:
        """The number of entries, values, watches and open operations that are kept."""
        watches = sum(map(len, self._watches.values()))
        return len(self._open) + len(self._entries) + watches + sum(len(one or ()) for one in self._values.values())

    def invoke(self, row: int, operation: Operation) -> None:
        """Take an invocation."""
        self._now += 1
        self._open[row] = operation
        values = self._values.setdefault(operation.key or "", {})
        if operation.f not in ("put", "attach") or values is None:
            return
        values.setdefault(_written(operation), _Value()).calls[row] = self._now
        if len(values) > self._values_max:
            self._values[operation.key or ""] = None

    def complete(self, row: int, outcome: Outcome) -> tuple[int, ...]:
        """Take a completion; return the rows that show a wrong or missed event, none without one."""
        self._now += 1
        operation = self._open.pop(row)
        if outcome.kind == "info":
            # The process has retired: its watches tell nothing more.
            self._watches.pop(operation.process, None)
        if operation.f in _CHANGES:
            return self._changed(operation, row, outcome)
        if operation.f != "drain" or outcome.kind != "ok" or not is_drain(outcome.value):
            return ()
        watch = self._watch(operation, outcome.value["number"])
        for item in outcome.value["items"]:
            rows = self._told(watch, item, row)
            if rows:
                return rows
        rows = self._passed(watch, row)
        watch.row = row
        return rows

    def _changed(self, operation: Operation, row: int, outcome: Outcome) -> tuple[int, ...]:
        """Take the end of a put, an attach or a delete."""
        key, index = operation.key or "", outcome.value if outcome.kind == "ok" else None
        values = self._values[key]
        if operation.f != "delete" and values is not None:
            value = values[_written(operation)]
            if type(index) is int:
                value.indexes[row] = index
            elif outcome.kind == "fail":
                del value.calls[row]
            wrong = value.wrong_event()
            if wrong is not None:
                return (wrong, row)
        return self._known(index, key, row) if type(index) is int else ()

    def _watch(self, operation: Operation, number: Any) -> _Watch:
        watches, path = self._watches.setdefault(operation.process, {}), operation.key or ""
        if path not in watches or watches[path].number != number:
            watches[path] = _Watch(path, number)
        return watches[path]

    def _told(self, watch: _Watch, item: Any, row: int) -> tuple[int, ...]:
        """Take one item of a drain."""
        if item[0] == "state":
            rows = self._passed(watch, row)
            start = (item[1][0], item[1][1])
            if rows or (watch.start is not None and start < watch.end):
                return rows or (watch.row, row)
            watch.begin(start, row)
            return () if all(is_below(watch.path, key) for key in item[2]) else (row,)
        if watch.start is None:
            return ()
        if item[0] == "upto":
            watch.end = max(watch.end, (item[1][0], item[1][1]))
            return ()
        _, index, ordinal, key, value, is_deleted = item
        if (index, ordinal) <= watch.end:
            return (watch.row, row)
        watch.end = (index, ordinal)
        if not is_below(watch.path, key):
            return (row,)
        rows = () if is_deleted else self._valued(key, token(value), index, row)
        return rows or self._known(index, key, row, watch, (token(value), is_deleted))

    def _valued(self, key: str, value: Hashable, index: int, row: int) -> tuple[int, ...]:
        values = self._values.setdefault(key, {})
        if values is None:
            return ()
        known = values.get(value)
        if known is None:
            return (row,)
        known.events.setdefault(index, row)
        known.first_told = min(known.first_told, self._now)
        return () if known.wrong_event() is None else (*known.indexes, row)

    def _known(
        self, index: int, key: str, row: int, watch: _Watch | None = None, what: Hashable = None
    ) -> tuple[int, ...]:
        """Take an event that a watch told, or a writer; return rows that show that it is wrong or was missed."""
        if index <= self._forgotten:
            return ()
        if index not in self._entries:
            insort(self._indexes, index)
        entry = self._entries.setdefault(index, {})
        is_new = key not in entry
        event = entry.setdefault(key, _Event(row))
        if watch is not None:
            event.watches.add(watch)
            if event.what is None:
                event.what, event.row = what, row
            elif event.what != what:
                return (event.row, row)
        if is_new:
            for other in self._all_watches():
                has_to_tell = other.start is not None and other.start[0] < index <= other.judged
                if has_to_tell and is_below(other.path, key) and other not in event.watches:
                    return (other.row, row)
        if len(self._indexes) > self._entries_kept:
            self._forgotten = self._indexes.pop(0)
            del self._entries[self._forgotten]
        return ()

    def _all_watches(self) -> Iterator[_Watch]:
        return (watch for watches in self._watches.values() for watch in watches.values())

    def _passed(self, watch: _Watch, row: int) -> tuple[int, ...]:
        """Judge the entries that `watch` has passed by now; return the rows of an event that it did not tell."""
        if watch.start is None or watch.has_passed() <= watch.judged:
            return ()
        first, end = (bisect_right(self._indexes, index) for index in (watch.judged, watch.has_passed()))
        watch.judged = watch.has_passed()
        for index in self._indexes[first:end]:
            for key, event in self._entries[index].items():
                if watch not in event.watches and is_below(watch.path, key):
                    return (event.row, row)
        return ()


def _written(operation: Operation) -> Hashable:
    """Return the value that a put or an attach writes."""
    value = operation.value
    is_attached = operation.f == "attach" and isinstance(value, dict)
    written: Hashable = token(value.get("value") if is_attached else value)
    return written
