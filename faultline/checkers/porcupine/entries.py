"""A history as the doubly linked list that the search lifts entries out of and puts them back into.

Wing & Gong (1993) walk over the calls that no earlier return forbids; Lowe (2017) keeps the history in a linked list so
that taking an operation out, and putting it back when the search returns, costs the same whatever the length.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar, cast

from faultline.checkers.porcupine.model import PENDING, Event, EventKind, Operation

__all__ = ["Entry", "lift", "link", "operations_of_events", "unlift"]

Input = TypeVar("Input")
Output = TypeVar("Output")


class Entry(Generic[Input, Output]):
    """A call (`operation` is set, `match` is its return or None when pending) or a return (`operation` is None)."""

    __slots__ = ("id", "match", "next", "operation", "previous")

    def __init__(self, entry_id: int, operation: Operation[Input, Output] | None) -> None:
        self.id = entry_id
        self.operation = operation
        self.match: Entry[Input, Output] | None = None
        self.previous: Entry[Input, Output] | None = None
        self.next: Entry[Input, Output] | None = None


def link(operations: Sequence[Operation[Input, Output]]) -> Entry[Input, Output]:
    """Return the head, a sentinel, of the list of calls and returns in order of time; at equal times calls first."""
    calls = [Entry(number, operation) for number, operation in enumerate(operations)]
    timed: list[tuple[float, int, Entry[Input, Output]]] = []
    for entry, operation in zip(calls, operations, strict=True):
        timed.append((operation.call, 0, entry))
        if operation.return_ != PENDING:
            entry.match = Entry(entry.id, None)
            timed.append((operation.return_, 1, entry.match))
    timed.sort(key=lambda item: item[:2])
    return _chain(entry for _, _, entry in timed)


def _chain(entries: Iterable[Entry[Input, Output]]) -> Entry[Input, Output]:
    head: Entry[Input, Output] = Entry(-1, None)
    last = head
    for entry in entries:
        last.next, entry.previous = entry, last
        last = entry
    return head


def lift(call: Entry[Input, Output]) -> None:
    """Take a call and its return out of the list; both keep their neighbours, so that `unlift` can undo it."""
    _take_out(call)
    if call.match is not None:
        _take_out(call.match)


def unlift(call: Entry[Input, Output]) -> None:
    """Put back what `lift` took out. Lifts must be undone in the opposite order."""
    if call.match is not None:
        _put_back(call.match)
    _put_back(call)


def _take_out(entry: Entry[Input, Output]) -> None:
    entry.previous.next = entry.next  # type: ignore[union-attr]  # only the head has no predecessor
    if entry.next is not None:
        entry.next.previous = entry.previous


def _put_back(entry: Entry[Input, Output]) -> None:
    entry.previous.next = entry  # type: ignore[union-attr]  # only the head has no predecessor
    if entry.next is not None:
        entry.next.previous = entry


def operations_of_events(events: Sequence[Event[Input, Output]]) -> list[Operation[Input, Output]]:
    """Return the operations of an event history, in order of their calls, with positions as times.

    A call without a return is a pending operation, whose output is UNKNOWN. Metadata are those of the return, or else
    of the call. Raises ValueError for a return without a call and for an id that is called or returns twice.
    """
    calls: dict[int, tuple[int, Event[Input, Output]]] = {}
    returns: dict[int, tuple[int, Event[Input, Output]]] = {}
    for position, event in enumerate(events):
        seen = calls if event.kind is EventKind.CALL else returns
        if event.id in seen or (seen is returns and event.id not in calls):
            raise ValueError(f"event {position}: operation {event.id} has no call before it, or the same event twice")
        seen[event.id] = (position, event)
    return [_operation(position, event, returns.get(event.id)) for position, event in calls.values()]


def _operation(
    position: int, call: Event[Input, Output], returned: tuple[int, Event[Input, Output]] | None
) -> Operation[Input, Output]:
    given = cast(Input, call.value)
    if returned is None:
        return Operation(call.client_id, given, position, metadata=call.metadata)
    end, answer = returned
    metadata = call.metadata if answer.metadata is None else answer.metadata
    return Operation(call.client_id, given, position, cast(Output, answer.value), end, metadata)
