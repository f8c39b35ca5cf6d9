"""Sets that only grow while operations come and go: the incremental twin of `checkers.classic.set_full`.

An element is known from the return of its add, or of a read that contains it. A read that was called later and lacks
it is certain to be wrong in a linearizable set. One that repeats an element, or contains one that no add can have put
in by then, is wrong in any. Elements that become known are counted in order, so that a read is judged by counting:
those that it contains and that were known at its call must be as many as there were.

State per set: two numbers for each element. A read answers with all elements, so that is no more than an answer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable

from faultline.checkers.common.words import token, tokens
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome

__all__ = ["IncrementalSets"]

_NEVER = 1 << 62


class _Element:
    """An element: the calls of its adds that have not failed, by row, and the first returns that show it."""

    __slots__ = ("adds", "first_seen", "known", "row")

    def __init__(self) -> None:
        self.adds: dict[int, int] = {}
        self.first_seen = self.known = _NEVER
        self.row = -1


class _Set:
    def __init__(self) -> None:
        self.elements: dict[Hashable, _Element] = {}
        self.known: list[int] = []

    def know(self, element: _Element, row: int, now: int) -> None:
        if element.known == _NEVER:
            element.known, element.row = now, row
            self.known.append(now)


class IncrementalSets:
    """Adds to and reads of a set for each key; with `linearizable` a read must contain what was known at its call."""

    name = "set-full"

    def __init__(self, *, linearizable: bool) -> None:
        self._linearizable = linearizable
        self._sets: dict[str | None, _Set] = {}
        self._open: dict[int, tuple[_Set, Operation, int]] = {}
        self._now = 0

    def invoke(self, row: int, operation: Operation) -> None:
        """Take an invocation."""
        self._now += 1
        judged = self._sets.setdefault(operation.key, _Set())
        self._open[row] = judged, operation, self._now
        if operation.f == "add":
            judged.elements.setdefault(token(operation.value), _Element()).adds[row] = self._now

    def complete(self, row: int, outcome: Outcome) -> tuple[int, ...]:
        """Take a completion; return rows that show a wrong read, none without one."""
        self._now += 1
        judged, operation, call = self._open.pop(row)
        if operation.f == "add":
            return self._added(judged, judged.elements[token(operation.value)], row, outcome)
        answer = () if outcome.value is None else outcome.value
        if operation.f != "read" or outcome.kind != "ok" or not isinstance(answer, list | tuple):
            return ()
        return self._read(judged, tuple(tokens(answer)), row, call)

    def _added(self, judged: _Set, element: _Element, row: int, outcome: Outcome) -> tuple[int, ...]:
        if outcome.kind == "ok":
            judged.know(element, row, self._now)
        elif outcome.kind == "fail":
            del element.adds[row]
            # A read that saw it needs another add that had been called before that read returned.
            if element.first_seen < min(element.adds.values(), default=_NEVER):
                return (element.row, row)
        return ()

    def _read(self, judged: _Set, answer: tuple[Hashable, ...], row: int, call: int) -> tuple[int, ...]:
        if len(set(answer)) < len(answer):
            return (row,)
        were_known = 0
        for value in answer:
            element = judged.elements.get(value)
            if element is None or not element.adds:
                return (row,)
            were_known += element.known < call
            if element.first_seen == _NEVER:
                element.first_seen = self._now
            judged.know(element, row, self._now)
        if self._linearizable and were_known < bisect_left(judged.known, call):
            seen = frozenset(answer)
            missing = (one.row for value, one in judged.elements.items() if one.known < call and value not in seen)
            return (next(missing), row)
        return ()
