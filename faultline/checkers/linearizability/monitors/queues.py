"""A near-linear monitor for queues into which every value is put once.

One value must leave before another when it certainly came in before it, or certainly left before it. A history is a
queue's exactly when no two values demand both orders (Henzinger, Sezgin & Vafeiadis, "Aspect-oriented linearizability
proofs", CONCUR 2013; Lee & Mathur, OOPSLA 2025): both relations are interval orders, and a longer circle of interval
orders always has a short cut. So one sweep suffices: in order of enqueues, remember the latest dequeue call among the
values that had certainly come in; a dequeue that returned before that call overtook.

A dequeue that found nothing needs a moment at which no value is certainly inside, independently of the rest. Dequeues
whose answer was not seen: see `lifetimes`; when neither extreme nor one guess decides, the search does.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from faultline.checkers.linearizability.certificates import Contradiction
from faultline.checkers.linearizability.data_types import Call
from faultline.checkers.linearizability.decision import Decision, hand_over, illegal, legal
from faultline.checkers.linearizability.monitors.lifetimes import (
    NEVER,
    Container,
    Lifetime,
    Lifetimes,
    empty_moments,
    read_container,
    stretched,
    with_guessed_removals,
)
from faultline.checkers.linearizability.monitors.native_containers import arrange_natively
from faultline.checkers.porcupine.model import Operation

__all__ = ["monitor_queue"]


def monitor_queue(operations: Sequence[Operation[Call, Any]]) -> Decision:
    """Decide a history of enqueue and dequeue. Needs hashable values, each enqueued once."""
    container = read_container(operations, "enqueue")
    if isinstance(container, Decision):
        return container
    decided = _decide(container.lifetimes, container, operations)
    if decided.is_legal or not container.unanswered:
        return decided
    at_best = _decide(stretched(container, operations), container, operations)
    if at_best.is_illegal:
        return at_best
    guessed = _decide(with_guessed_removals(container, operations, newest_first=False), container, operations)
    if guessed.is_legal:
        return guessed
    return hand_over("which values the dequeues without an answer took has to be searched")


def _decide(lifetimes: Lifetimes, container: Container, operations: Sequence[Operation[Call, Any]]) -> Decision:
    moments = empty_moments(lifetimes, operations, container.empties)
    natively = (
        None
        if isinstance(moments, tuple)
        else arrange_natively(lifetimes, container, operations, moments, is_stack=False)
    )
    overtaken = _overtaken(lifetimes) if natively is None else natively[1]
    if overtaken:
        first, second = overtaken
        core = [*first.operations(), *second.operations(), *_optional([first, second], container, operations)]
        values = operations[first.put].input[1], operations[second.put].input[1]
        reason = f"{values[1]!r} was enqueued after {values[0]!r} and dequeued before it"
        return illegal(core, reason, Contradiction("overtaken", (first.put, second.put)))
    if isinstance(moments, tuple):
        empty, inside = moments
        core = [position for lifetime in inside for position in lifetime.operations()]
        return illegal(
            [empty, *core, *_optional(inside, container, operations)],
            "a dequeue found nothing although something was in the queue all the time",
            Contradiction("never empty", (empty, *(lifetime.put for lifetime in inside))),
        )
    return legal(_arranged(lifetimes, moments, operations) if natively is None else natively[0])


def _optional(
    lifetimes: Sequence[Lifetime], container: Container, operations: Sequence[Operation[Call, Any]]
) -> list[int]:
    """Return the removals without an answer that may have taken one of `lifetimes`: the earliest, one for each."""
    stayed = sum(lifetime.take == NEVER for lifetime in lifetimes)
    return sorted(container.unanswered, key=lambda position: operations[position].call)[:stayed]


def _overtaken(lifetimes: Lifetimes) -> tuple[Lifetime, Lifetime] | None:
    """Return two values of which the first certainly came in before the second, and certainly left after it."""
    by_return = sorted(lifetimes, key=lambda lifetime: lifetime.put_return)
    last: Lifetime | None = None
    position = 0
    for lifetime in sorted(lifetimes, key=lambda lifetime: lifetime.put_call):
        while by_return[position].put_return < lifetime.put_call:
            if last is None or by_return[position].take_call > last.take_call:
                last = by_return[position]
            position += 1
        if last is not None and lifetime.take_return < last.take_call:
            return last, lifetime
    return None


def _arranged(lifetimes: Lifetimes, moments: dict[int, float], operations: Sequence[Operation[Call, Any]]) -> list[int]:
    """Return a linearization: the values before each moment of emptiness, in an order that both intervals allow."""
    cuts = sorted(set(moments.values()))
    parts: list[list[Lifetime]] = [[] for _ in range(len(cuts) + 1)]
    for lifetime in lifetimes:
        parts[bisect_left(cuts, lifetime.take_call)].append(lifetime)
    empties: dict[float, list[int]] = {}
    for position in sorted(moments, key=lambda position: operations[position].call):
        empties.setdefault(moments[position], []).append(position)
    order: list[int] = []
    for number, part in enumerate(parts):
        order += _interleaved(_first_come_first_served(part), cuts[number - 1] if number else float("-inf"))
        if number < len(cuts):
            order += empties[cuts[number]]
    return order


def _first_come_first_served(lifetimes: Sequence[Lifetime]) -> list[Lifetime]:
    """Return the lifetimes in an order in which they may both come and leave."""
    waits = {lifetime.put: 2 for lifetime in lifetimes}
    order: list[Lifetime] = []
    ready: list[Lifetime] = []
    queues = [_Frontier(lifetimes, 0, 1), _Frontier(lifetimes, 2, 3)]
    placed: set[int] = set()
    while len(order) < len(lifetimes):
        for queue in queues:
            for lifetime in queue.released(placed):
                waits[lifetime.put] -= 1
                if not waits[lifetime.put]:
                    ready.append(lifetime)
        order.append(ready.pop())
        placed.add(order[-1].put)
    return order


class _Frontier:
    """The lifetimes that no unplaced lifetime must precede, by one of their two intervals, as more are placed."""

    def __init__(self, lifetimes: Sequence[Lifetime], call: int, return_: int) -> None:
        self._call, self._return = call, return_
        self._by_call = sorted(lifetimes, key=lambda lifetime: lifetime[call])
        self._by_return = sorted(lifetimes, key=lambda lifetime: lifetime[return_])
        self._next, self._first = 0, 0

    def released(self, placed: set[int]) -> list[Lifetime]:
        """Return the lifetimes that have become free since the last call."""
        while self._first < len(self._by_return) and self._by_return[self._first].put in placed:
            self._first += 1
        earliest = self._by_return[self._first][self._return] if self._first < len(self._by_return) else 0
        begin = self._next
        while self._next < len(self._by_call) and self._by_call[self._next][self._call] <= earliest:
            self._next += 1
        return self._by_call[begin : self._next]


def _interleaved(lifetimes: Sequence[Lifetime], not_before: float) -> list[int]:
    """Return puts and takes of ordered lifetimes, each as early as possible; a put goes before a take."""
    placed: list[tuple[float, int, int, int]] = []
    put_at = take_at = not_before
    for number, lifetime in enumerate(lifetimes):
        put_at = max(put_at, lifetime.put_call)
        placed.append((put_at, 0, number, lifetime.put))
        take_at = max(take_at, put_at, lifetime.take_call)
        if lifetime.take != NEVER:
            placed.append((take_at, 1, number, lifetime.take))
    placed.sort()
    return [position for _, _, _, position in placed]
