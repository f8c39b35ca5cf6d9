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
answers missing) go to the search, and only they: values are independent (Horn & Kroening's P-compositionality).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from faultline.checkers.linearizability.data_types import UNKNOWN, Call
from faultline.checkers.linearizability.decision import Decision, hand_over, illegal, legal
from faultline.checkers.porcupine.model import PENDING, Operation

__all__ = ["Decide", "monitor_set"]

Decide = Callable[[Sequence[Operation[Call, Any]]], Decision]
"""Decides the operations on one value when the monitor cannot."""


@dataclass(slots=True)
class _Value:
    """The positions of the operations on one value; `is_hard` when it needs the search."""

    add: int | None = None
    remove: int | None = None
    pending_remove: int | None = None
    pending_add: int | None = None
    saw: list[int] = field(default_factory=list)
    missed: list[int] = field(default_factory=list)
    is_hard: bool = False

    def looked(self, position: int, answer: Any, is_pending: bool) -> None:
        """Take in an operation that looks and changes nothing; one that never returned tells nothing."""
        if not is_pending:
            self.is_hard = self.is_hard or answer is UNKNOWN
            (self.saw if answer else self.missed).append(position)

    def added(self, position: int, is_pending: bool) -> None:
        """Take in an add that changed something, or may have; only one of them leaves no question which it was."""
        self.is_hard = self.is_hard or self.add is not None or self.pending_add is not None
        self.add, self.pending_add = (None, position) if is_pending else (position, None)

    def removed(self, position: int, answer: Any, is_pending: bool) -> None:
        """Take in a remove that changed something, or may have.

        A pending one beside another leaves open which of the two took the value out; an acknowledged one that does not
        tell if it changed anything may have missed the value.
        """
        self.is_hard = self.is_hard or self.remove is not None or self.pending_remove is not None
        if is_pending:
            self.pending_remove = position
        else:
            self.is_hard = self.is_hard or answer is not True
            self.remove = position


def monitor_set(operations: Sequence[Operation[Call, Any]], decide: Decide | None = None) -> Decision:
    """Decide a history of add, remove and contains; give hard values to `decide`, or hand over the whole."""
    if any(operation.input[0] == "read" for operation in operations):
        return hand_over("reads of the whole set tie its values together")
    values: dict[Hashable, list[int]] = {}
    for position, operation in enumerate(operations):
        values.setdefault(operation.input[1], []).append(position)
    placed: list[tuple[float, int]] = []
    moment_of: list[float] = [0.0] * len(operations)
    for value, positions in values.items():
        decided = _decide_value(operations, value, positions, decide)
        if not decided.is_legal:
            return decided
        # Orders of values are merged by moments: each operation happens at its call, or with the one before it.
        moment = float("-inf")
        for position in decided.order:
            moment = moment_of[position] = max(moment, operations[position].call)
            placed.append((moment, position))
    placed.sort(key=_moment)
    return legal([position for _, position in placed])


def _moment(item: tuple[float, int]) -> float:
    return item[0]


def _decide_value(
    operations: Sequence[Operation[Call, Any]], value: Hashable, positions: Sequence[int], decide: Decide | None
) -> Decision:
    found = _sorted_out(operations, positions)
    if found.is_hard:
        if decide is None:
            return hand_over(f"{value!r} is added or removed more than once, or an answer is missing")
        answer = decide([operations[position] for position in positions])
        order, core = ([positions[index] for index in indexes] for indexes in (answer.order, answer.core))
        return Decision(answer.legality, "monitor", tuple(order), core=tuple(core), reason=answer.reason)
    result = _placed(operations, value, found, found.remove)
    if result.is_legal or found.pending_remove is None:
        return result
    # Without the pending remove the value stays; with it, more misses fit behind. Nothing else can help.
    return _placed(operations, value, found, found.pending_remove)


def _sorted_out(operations: Sequence[Operation[Call, Any]], positions: Sequence[int]) -> _Value:
    """Sort the operations on one value by what each of them tells."""
    found = _Value()
    for position in positions:
        operation = operations[position]
        f, answer, is_pending = operation.input[0], operation.output, operation.return_ == PENDING
        if f == "contains":
            found.looked(position, answer, is_pending)
        elif answer is False:
            # An add that changed nothing saw the value, a remove that changed nothing missed it.
            found.looked(position, f == "add", is_pending)
            found.is_hard = found.is_hard or is_pending
        elif f == "add":
            found.added(position, is_pending)
        else:
            found.removed(position, answer, is_pending)
    return found


def _placed(operations: Sequence[Operation[Call, Any]], value: Hashable, found: _Value, remove: int | None) -> Decision:
    """Place the operations on one value, of which `remove` takes it out (None: the value stays)."""
    saw = [*found.saw, *([] if remove is None else [remove])]
    add = found.add if found.add is not None else found.pending_add if saw else None
    if add is None:
        if saw:
            return illegal(saw[:1], f"{value!r} was seen in the set and was never added")
        return legal(sorted(found.missed, key=lambda position: operations[position].call))
    first = min([add, *saw], key=lambda position: operations[position].return_)
    last = max([add, *saw], key=lambda position: operations[position].call)
    begin, end = operations[first].return_, float(operations[last].call)
    if operations[add].call > begin:
        return illegal([add, first], f"{value!r} was seen in the set before the add of it began")
    if remove is not None and operations[remove].return_ < end:
        return illegal([add, remove, last], f"{value!r} was seen in the set after it had been removed")
    for miss in found.missed:
        if operations[miss].call > begin and (remove is None or operations[miss].return_ < end):
            core = [add, first, last, miss, *([] if remove is None else [remove])]
            core += [] if found.pending_remove is None else [found.pending_remove]
            return illegal(core, f"{value!r} was missed although it was in the set all the time")
    return legal(_in_order(operations, add, remove, found, begin))


def _in_order(
    operations: Sequence[Operation[Call, Any]], add: int, remove: int | None, found: _Value, begin: float
) -> list[int]:
    """Return misses that can come first, the add, those that saw the value, the remove, the other misses."""

    def call(position: int) -> float:
        return operations[position].call

    early = [miss for miss in found.missed if call(miss) <= begin]
    late = [miss for miss in found.missed if call(miss) > begin]
    end = [] if remove is None else [remove]
    return [*sorted(early, key=call), add, *sorted(found.saw, key=call), *end, *sorted(late, key=call)]
