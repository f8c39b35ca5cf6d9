"""A linear monitor for sets, value by value.

A value is in the set between its one successful add and its one successful remove, so every operation that saw it must
fit between them, and every one that missed it must fit before or behind (Lee & Mathur, OOPSLA 2025, section on sets).
With `first` the earliest return and `last` the latest call of those that saw it:

- the add must be called before `first`, the remove must return after `last`;
- a miss must be called before `first` or return after `last`, and when the value stays, only the former will do.

These conditions suffice: early misses, the add, those that saw the value, the remove and late misses can be placed in
this order, each as early as its call allows.

An add that was told "already there" saw the value, a remove that was told "not there" missed it. An add whose answer is
not known counts as successful when it is the only one. Values for which that is not so (added or removed twice,
answers missing) are judged as registers or searched, and only they: values are independent (Horn & Kroening's
P-compositionality).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from faultline.checkers.linearizability.certificates import Contradiction
from faultline.checkers.linearizability.data_types import UNKNOWN, Call
from faultline.checkers.linearizability.decision import Decision, hand_over, illegal, legal
from faultline.checkers.porcupine.model import PENDING, Operation

__all__ = ["Decide", "monitor_set"]

Decide = Callable[[Sequence[Sequence[Operation[Call, Any]]]], list[Decision]]
"""Decides the operations on each of some values when the monitor cannot."""


class _Value:
    """The operations on one value, sorted by what they tell.

    `first` is the earliest return and `last` the latest call of the operations in `saw`, which holds all that saw the
    value but the add and the remove. `is_hard`: the value needs the search.
    """

    __slots__ = ("add", "first", "is_hard", "last", "missed", "pending_add", "pending_remove", "remove", "saw")

    def __init__(self) -> None:
        self.add: int | None = None
        self.remove: int | None = None
        self.pending_add: int | None = None
        self.pending_remove: int | None = None
        self.first: float = PENDING
        self.last: float = -PENDING
        self.saw: list[int] = []
        self.missed: list[int] = []
        self.is_hard = False


def monitor_set(operations: Sequence[Operation[Call, Any]], decide: Decide | None = None) -> Decision:
    """Decide a history of add, remove and contains; give hard values to `decide`, or hand over the whole."""
    values = _sorted_out(operations)
    if values is None:
        return hand_over("reads of the whole set tie its values together")
    moments: list[float] = [0] * len(operations)
    placed: list[int] = []
    hard = _positions(operations, [value for value, found in values.items() if found.is_hard])
    if hard and decide is None:
        return hand_over(f"{next(iter(hard))!r} is added or removed more than once, or an answer is missing")
    parts = [[operations[position] for position in positions] for positions in hard.values()]
    answers = dict(zip(hard, decide(parts))) if decide is not None and hard else {}
    for value, found in values.items():
        if found.is_hard:
            order = _arranged(operations, hard[value], answers[value], moments)
        else:
            order = _placed(operations, value, found, found.remove, moments)
            if isinstance(order, Decision) and found.pending_remove is not None:
                # Without the pending remove the value stays; with it, more misses fit behind. Nothing else can help.
                order = _placed(operations, value, found, found.pending_remove, moments)
        if isinstance(order, Decision):
            return order
        placed += order
    # Orders of values are merged by moments: each operation happens at its call, or with the one before it.
    placed.sort(key=moments.__getitem__)
    return legal(placed)


def _sorted_out(operations: Sequence[Operation[Call, Any]]) -> dict[Hashable, _Value] | None:
    """Sort the operations by value and by what each of them tells; None when a read ties the values together.

    This loop is half of the monitor's time, so it is one function.
    """
    values: dict[Hashable, _Value] = {}
    for position, operation in enumerate(operations):
        f, value = operation.input
        answer, return_ = operation.output, operation.return_
        found = values.get(value)
        if found is None:
            found = values[value] = _Value()
        if f == "contains":
            sees = answer
        elif f == "read":
            return None
        elif answer is False:
            # An add that changed nothing saw the value, a remove that changed nothing missed it. One that never
            # returned has no answer to believe.
            sees = f == "add"
            found.is_hard = found.is_hard or return_ == PENDING
        elif f == "add":
            # Only one add that changed something, or may have, leaves no question which it was.
            found.is_hard = found.is_hard or found.add is not None or found.pending_add is not None
            if return_ == PENDING:
                found.pending_add = position
            else:
                found.add = position
            continue
        else:
            # A pending remove beside another leaves open which of the two took the value out; an acknowledged one
            # that does not tell if it changed anything may have missed the value.
            found.is_hard = found.is_hard or found.remove is not None or found.pending_remove is not None
            if return_ == PENDING:
                found.pending_remove = position
            else:
                found.is_hard = found.is_hard or answer is not True
                found.remove = position
            continue
        if return_ == PENDING:
            continue
        if answer is UNKNOWN:
            found.is_hard = True
        if not sees:
            found.missed.append(position)
            continue
        found.saw.append(position)
        if return_ < found.first:
            found.first = return_
        if operation.call > found.last:
            found.last = operation.call
    return values


def _positions(operations: Sequence[Operation[Call, Any]], values: Sequence[Hashable]) -> dict[Hashable, list[int]]:
    """Return the positions of the operations on each of `values`."""
    positions: dict[Hashable, list[int]] = {value: [] for value in values}
    for position, operation in enumerate(operations if values else ()):
        if operation.input[1] in positions:
            positions[operation.input[1]].append(position)
    return positions


def _arranged(
    operations: Sequence[Operation[Call, Any]], positions: Sequence[int], answer: Decision, moments: list[float]
) -> list[int] | Decision:
    """Return the order of a value's operations that `answer` found, with their `moments`, or the refusal."""
    order, core = ([positions[index] for index in indexes] for indexes in (answer.order, answer.core))
    if not answer.is_legal:
        return Decision(answer.legality, "monitor", tuple(order), core=tuple(core), reason=answer.reason)
    moment = float("-inf")
    for position in order:
        moment = moments[position] = max(moment, operations[position].call)
    return order


def _placed(
    operations: Sequence[Operation[Call, Any]],
    value: Hashable,
    found: _Value,
    remove: int | None,
    moments: list[float],
) -> list[int] | Decision:
    """Return the order of the operations on one value, of which `remove` takes it out (None: the value stays)."""
    is_seen = bool(found.saw) or remove is not None
    add = found.add if found.add is not None else found.pending_add if is_seen else None
    if add is None:
        if is_seen:
            saw = [*found.saw, *([] if remove is None else [remove])]
            reason = f"{value!r} was seen in the set and was never added"
            return illegal(saw[:1], reason, Contradiction("seen while out", (saw[0],)))
        for miss in found.missed:
            moments[miss] = operations[miss].call
        return found.missed
    begin, end = min(found.first, operations[add].return_), max(found.last, operations[add].call)
    if remove is not None:
        begin, end = min(begin, operations[remove].return_), max(end, operations[remove].call)
    if operations[add].call > begin or (remove is not None and operations[remove].return_ < end):
        return _refused(operations, value, found, (add, remove), None)
    early: list[int] = []
    late: list[int] = []
    # The moments grow from kind to kind; within one, each operation happens at its call if that is not too early.
    moment: float = operations[add].call
    for miss in found.missed:
        call = operations[miss].call
        if call <= begin:
            early.append(miss)
            moments[miss] = call
            moment = max(moment, call)
        elif remove is None or operations[miss].return_ < end:
            return _refused(operations, value, found, (add, remove), miss)
        else:
            late.append(miss)
    moments[add] = moment
    for position in found.saw:
        moments[position] = max(moment, operations[position].call)
    moment = max(moment, end)
    for miss in late:
        moments[miss] = max(moment, operations[miss].call)
    if remove is None:
        return [*early, add, *found.saw]
    moments[remove] = moment
    return [*early, add, *found.saw, remove, *late]


def _refused(
    operations: Sequence[Operation[Call, Any]],
    value: Hashable,
    found: _Value,
    ends: tuple[int, int | None],
    miss: int | None,
) -> Decision:
    """Return why the operations on one value, added and removed by `ends`, cannot be placed; `miss` if that cannot."""
    add, remove = ends
    saw = [add, *found.saw, *([] if remove is None else [remove])]
    first = min(saw, key=lambda position: operations[position].return_)
    last = max(saw, key=lambda position: operations[position].call)
    if operations[add].call > operations[first].return_:
        reason = f"{value!r} was seen in the set before the add of it began"
        return illegal([add, first], reason, Contradiction("seen while out", (first,)))
    if miss is None:
        assert remove is not None, "without a remove only a miss, or an early sight, is refused"
        reason = f"{value!r} was seen in the set after it had been removed"
        return illegal([add, remove, last], reason, Contradiction("seen while out", (last, remove)))
    core = [each for each in (add, first, last, miss, remove, found.pending_remove) if each is not None]
    reason = f"{value!r} was missed although it was in the set all the time"
    # A remove that never returned saw nothing; that it was called after the miss suffices without it.
    is_seen_later = last in (*found.saw, found.remove) and operations[last].call > operations[miss].return_
    return illegal(core, reason, Contradiction("missed while in", (miss, first, *[last][: int(is_seen_later)])))
