"""A linear monitor for sets, value by value.

A value is in the set between its one successful add and its one successful remove, so everything that saw it must fit
between them, and everything that missed it must fit before or behind (Lee & Mathur, OOPSLA 2025, section on sets).
With `first` the earliest return and `last` the latest call of those who saw it:

- the add must be called before `first`, the remove must return after `last`;
- a miss must be called before `first` or return after `last`, and when the value stays, only the former will do.

An add that was told "already there" saw the value, a remove that was told "not there" missed it. An add whose answer is
not known counts as successful when it is the only one. Values for which that is not so (added or removed twice,
answers missing) go to the search, and only they: values are independent (Horn & Kroening's P-compositionality).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from faultline.checkers.linearizability.data_types import UNKNOWN, Call
from faultline.checkers.linearizability.monitors.result import MonitorResult, hand_over, illegal, legal
from faultline.checkers.porcupine.model import PENDING, CheckResult, Operation

__all__ = ["Decide", "monitor_set"]

Decide = Callable[[Sequence[Operation[Call, Any]]], MonitorResult]
"""Decides the operations on one value when the monitor cannot."""


@dataclass(slots=True)
class _Value:
    """The positions of what was done to one value; `is_hard` when it needs the search."""

    add: int | None = None
    remove: int | None = None
    pending_remove: int | None = None
    pending_add: int | None = None
    saw: list[int] = field(default_factory=list)
    missed: list[int] = field(default_factory=list)
    is_hard: bool = False


def monitor_set(operations: Sequence[Operation[Call, Any]], decide: Decide | None = None) -> MonitorResult:
    """Decide a history of add, remove and contains. Hard values are given to `decide`, or the whole is handed over."""
    if any(operation.input[0] == "read" for operation in operations):
        return hand_over("reads of the whole set tie its values together")
    values: dict[Hashable, list[int]] = {}
    for position, operation in enumerate(operations):
        values.setdefault(operation.input[1], []).append(position)
    placed: list[tuple[float, int]] = []
    moment_of: list[float] = [0.0] * len(operations)
    for value, positions in values.items():
        decided = _decide_value(operations, value, positions, decide)
        if decided.result is not CheckResult.OK:
            return decided
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
) -> MonitorResult:
    found = _sorted_out(operations, positions)
    if found.is_hard:
        if decide is None:
            return hand_over(f"{value!r} is added or removed more than once, or an answer is missing")
        answer = decide([operations[position] for position in positions])
        order, core = ([positions[index] for index in indexes] for indexes in (answer.order, answer.core))
        return MonitorResult(answer.result, tuple(order), tuple(core), answer.reason)
    result = _placed(operations, value, found, found.remove)
    if result.result is CheckResult.OK or found.pending_remove is None:
        return result
    return _placed(operations, value, found, found.pending_remove)


def _sorted_out(operations: Sequence[Operation[Call, Any]], positions: Sequence[int]) -> _Value:
    found = _Value()
    for position in positions:
        operation = operations[position]
        f, answer, is_pending = operation.input[0], operation.output, operation.return_ == PENDING
        if f == "contains":
            found.is_hard = found.is_hard or (answer is UNKNOWN and not is_pending)
            if not is_pending:
                (found.saw if answer else found.missed).append(position)
        elif answer is False:
            (found.saw if f == "add" else found.missed).append(position)
            found.is_hard = found.is_hard or is_pending
        elif f == "add":
            found.is_hard = found.is_hard or found.add is not None or found.pending_add is not None
            found.add, found.pending_add = (None, position) if is_pending else (position, None)
        elif is_pending:
            found.is_hard = found.is_hard or found.remove is not None or found.pending_remove is not None
            found.pending_remove = position
        else:
            found.is_hard = found.is_hard or answer is not True or found.pending_remove is not None
            found.is_hard = found.is_hard or found.remove is not None
            found.remove = position
    return found


def _placed(
    operations: Sequence[Operation[Call, Any]], value: Hashable, found: _Value, remove: int | None
) -> MonitorResult:
    """Place the operations on one value, of which `remove` takes it out (None: nobody does)."""
    saw = [*found.saw, *([] if remove is None else [remove])]
    add = found.add if found.add is not None else found.pending_add if saw else None
    if add is None:
        if saw:
            return illegal(saw[:1], f"{value!r} was seen in the set and nobody ever added it")
        return legal(sorted(found.missed, key=lambda position: operations[position].call))
    first = min([add, *saw], key=lambda position: operations[position].return_)
    last = max([add, *saw], key=lambda position: operations[position].call)
    begin, end = operations[first].return_, float(operations[last].call)
    if operations[add].call > begin:
        return illegal([add, first], f"{value!r} was seen in the set before anybody began to add it")
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
    """Misses that can come first, the add, those who saw the value, the remove, the other misses."""

    def call(position: int) -> float:
        return operations[position].call

    early = [miss for miss in found.missed if call(miss) <= begin]
    late = [miss for miss in found.missed if call(miss) > begin]
    end = [] if remove is None else [remove]
    return [*sorted(early, key=call), add, *sorted(found.saw, key=call), *end, *sorted(late, key=call)]
