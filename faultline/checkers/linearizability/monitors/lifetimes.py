"""Lifetimes of values in a container: what the queue and the stack monitor have in common.

When every value is put in once, an operation that takes it out names the one that put it in, and a history falls apart
into *lifetimes*: the interval in which the value went in, and the one in which it came out. A value must be in before
it is out, so the former is cut at the return of the latter, which in turn begins no earlier than the former (Lee &
Mathur, OOPSLA 2025, call such a history tuned). Between the two intervals, when they do not touch, the value is
certainly inside; an operation that found the container empty needs a moment at which no value is.

A value whose insertion was not confirmed was inserted if it came out, and else may be left away. A removal whose answer
was not seen may have taken any value; the monitors decide with all of them left away (if that is legal, so is the
history) and with as many as could help (if that is illegal, so is the history).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

from faultline.checkers.linearizability.certificates import Contradiction
from faultline.checkers.linearizability.data_types import UNKNOWN, Call
from faultline.checkers.linearizability.decision import Decision, hand_over, illegal
from faultline.checkers.porcupine.model import PENDING, Operation

__all__ = [
    "NEVER",
    "Container",
    "Lifetime",
    "Lifetimes",
    "empty_moments",
    "read_container",
    "stretched",
    "with_guessed_removals",
]

NEVER = -1
"""The position of the removal of a value that stayed inside."""


class Lifetime(NamedTuple):
    """The intervals of time in which a value went in and came out, and the positions of the two operations."""

    put_call: float
    put_return: float
    take_call: float
    take_return: float
    put: int
    take: int

    def operations(self) -> list[int]:
        """Return the positions of its operations."""
        return [self.put] if self.take == NEVER else [self.put, self.take]


class Lifetimes:
    """Many lifetimes as columns, in which no object is made for a value."""

    __slots__ = ("put", "put_call", "put_return", "take", "take_call", "take_return")

    def __init__(self, flat: list[Any]) -> None:
        """Take the six numbers of one lifetime after those of another."""
        self.put_call: list[float] = flat[0::6]
        self.put_return: list[float] = flat[1::6]
        self.take_call: list[float] = flat[2::6]
        self.take_return: list[float] = flat[3::6]
        self.put: list[int] = flat[4::6]
        self.take: list[int] = flat[5::6]

    @classmethod
    def of(cls, lifetimes: Iterable[Lifetime]) -> Lifetimes:
        """Return the columns of single lifetimes."""
        return cls(list(chain.from_iterable(lifetimes)))

    def __len__(self) -> int:
        return len(self.put)

    def __getitem__(self, number: int) -> Lifetime:
        return Lifetime(*(column[number] for column in self._columns()))

    def __iter__(self) -> Iterator[Lifetime]:
        return map(Lifetime._make, zip(*self._columns(), strict=True))

    def _columns(self) -> tuple[list[Any], ...]:
        return self.put_call, self.put_return, self.take_call, self.take_return, self.put, self.take


class Container(NamedTuple):
    """A history taken apart: lifetimes, positions of removals that found nothing, and of those without an answer."""

    lifetimes: Lifetimes
    empties: list[int]
    unanswered: list[int]
    end: float


def read_container(operations: Sequence[Operation[Call, Any]], put: str) -> Container | Decision:
    """Take apart a history in which the function `put` inserts; decide at once if it is illegal or of another kind."""
    puts: dict[Hashable, int] = {}
    takes: dict[Hashable, int] = {}
    empties: list[int] = []
    unanswered: list[int] = []
    for position, operation in enumerate(operations):
        (f, value), answer = operation.input, operation.output
        if f == put:
            if value is None or puts.setdefault(value, position) != position:
                return hand_over(f"{value!r} is put in twice" if value is not None else "None is a value")
        elif answer is UNKNOWN:
            if operation.return_ != PENDING:
                return hand_over("a removal that returned has no known answer")
            unanswered.append(position)
        elif operation.return_ == PENDING:
            return hand_over("a removal that never returned has an answer")
        elif answer is None:
            empties.append(position)
        elif takes.setdefault(answer, position) != position:
            return _taken_twice([takes[answer], position], operations, answer, put)
    return _joined(operations, puts, takes, empties, unanswered)


def _taken_twice(takes: list[int], operations: Sequence[Operation[Call, Any]], value: Hashable, put: str) -> Decision:
    puts = [position for position, operation in enumerate(operations) if operation.input == (put, value)]
    if len(puts) > 1:
        return hand_over(f"{value!r} is put in twice")
    last = max(takes, key=lambda position: operations[position].return_)
    reason = f"{value!r} is put in once and taken out twice"
    return illegal([*puts, *takes], reason, Contradiction("taken too often", (last,)))


def _joined(
    operations: Sequence[Operation[Call, Any]],
    puts: dict[Hashable, int],
    takes: dict[Hashable, int],
    empties: list[int],
    unanswered: list[int],
) -> Container | Decision:
    if not takes.keys() <= puts.keys():
        value, take = next((value, take) for value, take in takes.items() if value not in puts)
        reason = f"{value!r} is taken out and was never put in"
        return illegal([take], reason, Contradiction("taken too often", (take,)))
    flat: list[float] = []
    for value, put in puts.items():
        begun, taken_at = operations[put], takes.get(value, NEVER)
        call, put_return = begun.call, begun.return_
        if taken_at == NEVER:
            if put_return != PENDING:
                flat += call, put_return, PENDING, PENDING, put, NEVER
            continue
        taken = operations[taken_at]
        take_call, take_return = taken.call, taken.return_
        if take_return < call:
            reason = f"{value!r} is taken out before it is put in"
            return illegal([put, taken_at], reason, Contradiction("taken too often", (taken_at,)))
        # A value is in before it is out: the two intervals are cut to where that is possible (a tuned history).
        # Comparing here takes half the time of a call of min or max, and this loop is most of a monitor's.
        if take_return < put_return:
            put_return = take_return
        if take_call < call:
            take_call = call
        flat += call, put_return, take_call, take_return, put, taken_at
    finished = filter(PENDING.__ne__, map(attrgetter("return_"), operations))
    end = max(max(map(attrgetter("call"), operations), default=0), max(finished, default=0))
    return Container(Lifetimes(flat), empties, unanswered, end + 1)


def stretched(container: Container, operations: Sequence[Operation[Call, Any]]) -> Lifetimes:
    """Return the lifetimes when every value that stayed might have been taken by the earliest unanswered removal.

    That is more freedom than the removals have together, so a history that is illegal even so is illegal.
    """
    if not container.unanswered:
        return container.lifetimes
    earliest = min(operations[position].call for position in container.unanswered)
    return Lifetimes.of(
        lifetime._replace(take_call=max(lifetime.put_call, earliest), take_return=container.end)
        if lifetime.take == NEVER
        else lifetime
        for lifetime in container.lifetimes
    )


def with_guessed_removals(
    container: Container, operations: Sequence[Operation[Call, Any]], newest_first: bool
) -> Lifetimes:
    """Return the lifetimes when removals without an answer took the values that stayed, one each, in order of call."""
    stayed = [lifetime for lifetime in container.lifetimes if lifetime.take == NEVER]
    stayed.sort(key=lambda lifetime: lifetime.put_call, reverse=newest_first)
    removals = sorted(container.unanswered, key=lambda position: operations[position].call)
    guessed = {
        lifetime.put: lifetime._replace(
            take_call=max(lifetime.put_call, operations[removal].call), take_return=container.end, take=removal
        )
        for lifetime, removal in zip(stayed, removals, strict=False)
    }
    return Lifetimes.of(guessed.get(lifetime.put, lifetime) for lifetime in container.lifetimes)


def empty_moments(
    lifetimes: Lifetimes, operations: Sequence[Operation[Call, Any]], empties: Sequence[int]
) -> dict[int, float] | tuple[int, list[Lifetime]]:
    """Return for each of `empties` a moment at which nothing need be inside; or one without, and what is inside then.

    A value is certainly inside after its put returned and before its take is called. Such open intervals are merged;
    an operation that begins within a merged one can still be placed at its end.
    """
    if not empties:
        return {}
    times = enumerate(zip(lifetimes.put_return, lifetimes.take_call, strict=True))
    inside = [number for number, (begin, end) in times if begin < end]
    inside.sort(key=lifetimes.put_return.__getitem__)
    starts: list[float] = []
    ends: list[float] = []
    reached = -PENDING
    for number in inside:
        begin, end = lifetimes.put_return[number], lifetimes.take_call[number]
        if begin >= reached:
            starts.append(begin)
            ends.append(end)
            reached = end
        elif end > reached:
            ends[-1] = reached = end
    moments: dict[int, float] = {}
    for position in empties:
        moment: float = operations[position].call
        found = bisect_right(starts, moment) - 1
        if found >= 0 and starts[found] < moment < ends[found]:
            moment = ends[found]
        if moment > operations[position].return_:
            return position, _cover([lifetimes[number] for number in inside], operations[position])
        moments[position] = moment
    return moments


def _cover(inside: Sequence[Lifetime], empty: Operation[Call, Any]) -> list[Lifetime]:
    """Return few lifetimes that together cover the whole of `empty`, each reaching further than the one before."""
    cover: list[Lifetime] = []
    moment: float = empty.call
    best: Lifetime | None = None
    # The usual greedy cover: of all that begin before the covered part ends, the one that reaches furthest.
    for lifetime in inside:
        while lifetime.put_return >= moment and best is not None and best.take_call > moment:
            cover.append(best)
            moment, best = best.take_call, None
        if moment > empty.return_:
            return cover
        if best is None or lifetime.take_call > best.take_call:
            best = lifetime
    return [*cover, best] if best is not None else cover
