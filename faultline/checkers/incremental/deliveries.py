"""Queues while operations come and go: the incremental twin of `checkers.classic.queues`, but for losses.

The n-th delivery of an element to end needs n enqueues of it that had been called by then and have not failed. A
delivery that has none is certain to be wrong: the element came out without having been put in, or once too often.
That an element is lost is known at the end only, when the queue is found empty: that is left to the check afterwards.

An element is forgotten when it has come out as often as it went in and no enqueue of it is open. A further delivery is
then one of an element that is not there, which is wrong either way. So the state is the queue itself.
"""

from __future__ import annotations

from collections.abc import Hashable

from faultline.checkers.common.words import token
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome

__all__ = ["IncrementalQueues"]


class _Element:
    """An element: the calls of its enqueues that have not failed, by row, and the returns of its deliveries."""

    __slots__ = ("begins", "deliveries", "open")

    def __init__(self) -> None:
        self.begins: dict[int, int] = {}
        self.deliveries: list[tuple[int, int]] = []
        self.open = 0

    def first_without_enqueue(self) -> int | None:
        """Return the row of the first delivery that has no enqueue of its own; None when each has one."""
        begins = list(self.begins.values())
        for number, (end, row) in enumerate(self.deliveries):
            if number >= len(begins) or begins[number] > end:
                return row
        return None


class IncrementalQueues:
    """Enqueues, dequeues and drains of a queue for each key."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._elements: dict[tuple[str | None, Hashable], _Element] = {}
        self._open: dict[int, Operation] = {}
        self._now = 0

    @property
    def size(self) -> int:
        """The number of elements and open operations that are kept."""
        return len(self._elements) + len(self._open)

    def invoke(self, row: int, operation: Operation) -> None:
        """Take an invocation."""
        self._now += 1
        self._open[row] = operation
        if operation.f == "enqueue":
            element = self._elements.setdefault((operation.key, token(operation.value)), _Element())
            element.begins[row] = self._now
            element.open += 1

    def complete(self, row: int, outcome: Outcome) -> tuple[int, ...]:
        """Take a completion; return rows that show a wrong delivery, none without one."""
        self._now += 1
        operation = self._open.pop(row)
        if operation.f == "enqueue":
            return self._enqueued((operation.key, token(operation.value)), row, outcome)
        if outcome.kind != "ok" or outcome.value is None:
            return ()
        taken = outcome.value if operation.f == "drain" else [outcome.value]
        if not isinstance(taken, list | tuple):
            return ()
        for value in taken:
            place = (operation.key, token(value))
            element = self._elements.get(place)
            if element is None:
                return (row,)
            element.deliveries.append((self._now, row))
            if element.first_without_enqueue() is not None:
                return (*element.begins, row)
            self._forget(place, element)
        return ()

    def _enqueued(self, place: tuple[str | None, Hashable], row: int, outcome: Outcome) -> tuple[int, ...]:
        element = self._elements[place]
        element.open -= 1
        if outcome.kind == "fail":
            del element.begins[row]
            early = element.first_without_enqueue()
            if early is not None:
                return (early, row)
        self._forget(place, element)
        return ()

    def _forget(self, place: tuple[str | None, Hashable], element: _Element) -> None:
        if not element.open and len(element.deliveries) == len(element.begins):
            del self._elements[place]
