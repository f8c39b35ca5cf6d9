"""The streams of watches: what each watcher was told, read from its drains.

The items of one watch are one `Stream`. Each state in it begins a `Span`, which lasts to the last thing that was told
before the next. The shape of drains and items stands in `watches`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from faultline.checkers.common.conclusion import Case
from faultline.checkers.common.shape import wrong_shape
from faultline.checkers.common.words import token, told
from faultline.harness.history import History
from faultline.harness.revisions import WHOLE_ENTRY

__all__ = ["Event", "KnownEvent", "Position", "Span", "Stream", "is_below", "is_drain", "known_events", "streams_of"]

Position = tuple[int, int]
"""The index of an entry, and the place of an event among those of the entry."""

_LENGTHS = {"state": 4, "event": 6, "upto": 2}
"""The number of parts of each kind of item."""


class Event(NamedTuple):
    """An event as one watcher was told it in the drain of `row`."""

    position: Position
    key: str
    value: Any
    is_deleted: bool
    row: int

    @property
    def identity(self) -> tuple[int, str]:
        return self.position[0], self.key

    @property
    def what(self) -> tuple[str, Any, bool]:
        return self.key, token(self.value), self.is_deleted


class KnownEvent(NamedTuple):
    """An event with the first and the last position that it may have, and the row that tells of it."""

    first: Position
    last: Position
    key: str
    row: int


@dataclass(slots=True)
class Span:
    """A stretch of a stream without a gap: from a state, with the events, up to the last position told."""

    row: int
    start: Position
    state: dict[str, Any]
    end: Position
    events: list[Event] = field(default_factory=list)


@dataclass(slots=True)
class Stream:
    """Everything that one watch of one client was told."""

    path: str
    spans: list[Span] = field(default_factory=list)
    last_row: int = 0
    last_news: int = 0
    disorder: list[Case] = field(default_factory=list)


def streams_of(checker: str, history: History, expected: str) -> list[Stream]:
    """Return the events that each watch was told, drain by drain.

    Raises UsageError of `checker` for a drain of another shape than `expected`.
    """
    streams: dict[tuple[int, str, int], Stream] = {}
    for row in range(len(history)):
        if history.f[row] != "drain" or history.outcome[row] != "ok":
            continue
        _expect_items(checker, history, row, expected)
        result, path = history.result[row], history.key[row] or ""
        stream = streams.setdefault((history.process[row], path, result["number"]), Stream(path))
        stream.last_row, stream.last_news = row, len(result["items"]) - 1
        for item in result["items"]:
            _take(stream, row, item)
    return list(streams.values())


def _expect_items(checker: str, history: History, row: int, expected: str) -> None:
    """Raise `UsageError` unless the drain in `row` answered the number of its watch and items of the known kinds."""
    if not is_drain(history.result[row]):
        raise wrong_shape(checker, history, row, f"answered {told(history.result[row])}", expected)


def is_drain(result: Any) -> bool:
    """Return whether `result` has the number of a watch, and items of the known kinds."""
    has_items = isinstance(result, dict) and "number" in result and isinstance(result.get("items"), list | tuple)
    return has_items and all(map(_is_item, result["items"]))


def _is_item(item: Any) -> bool:
    if not isinstance(item, list | tuple) or not item or len(item) != _LENGTHS.get(item[0]):
        return False
    return item[0] == "event" or (_is_position(item[1]) and (item[0] == "upto" or isinstance(item[2], dict)))


def _is_position(pair: Any) -> bool:
    return isinstance(pair, list | tuple) and len(pair) == 2


def _take(stream: Stream, row: int, item: list[Any]) -> None:
    """Add one item of a drain to its stream."""
    if item[0] == "state":
        start = _position(item[1])
        stream.spans.append(Span(row, start, item[2], start))
        return
    if not stream.spans:
        return
    span = stream.spans[-1]
    if item[0] == "upto":
        span.end = max(span.end, _position(item[1]))
        return
    _, index, ordinal, key, value, is_deleted = item
    event = Event((index, ordinal), key, value, is_deleted, row)
    if event.position <= span.end:
        stream.disorder.append(Case([list(span.end), list(event.position)], (span.row, row)))
    span.events.append(event)
    span.end = max(span.end, event.position)


def _position(pair: Any) -> Position:
    return pair[0], pair[1]


def known_events(history: History, events: list[Event]) -> list[KnownEvent]:
    """Return every event that a watcher was told of, or whose writer was told its index, in order."""
    known = {event.identity: KnownEvent(event.position, event.position, event.key, event.row) for event in events}
    for row in range(len(history)):
        is_change = history.f[row] in ("put", "delete", "attach") and history.outcome[row] == "ok"
        if is_change and type(history.result[row]) is int:
            index, key = history.result[row], history.key[row] or ""
            # A writer is told the entry alone, where its change may be any.
            known.setdefault((index, key), KnownEvent((index, 0), (index, WHOLE_ENTRY), key, row))
    return sorted(known.values())


def is_below(path: str, key: str) -> bool:
    """Return whether `key` is at or below `path`, by whole segments."""
    return key == path or key.startswith(f"{path}/")
