"""Replaying linearizations of objects: the proof behind every "linearizable" of a monitor or a generic search.

The object that an order is tried on is an ordinary mutable one where there is one, so that a replay costs the same for
every operation. Each has a loop of its own, because a call for every operation would cost more than the operations. Any
other object is replayed on its model. `engine.replay` does the same for registers and strings, on numbers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from faultline.checkers.linearizability.data_types import UNKNOWN, Call
from faultline.checkers.porcupine.model import PENDING, Model, Operation

__all__ = ["is_linearization", "replays"]

State = TypeVar("State")
Input = TypeVar("Input")
Output = TypeVar("Output")

AnyOperation = Operation[Call, Any]


def replays(data_type: str, operations: Sequence[AnyOperation], order: Sequence[int]) -> bool:
    """Return whether `order` is a legal execution of `data_type`, keeps real time and leaves no completed one out."""
    ordered = _ordered(operations, order)
    return ordered is not None and _EXECUTIONS[data_type](ordered)


def is_linearization(
    model: Model[State, Input, Output], operations: Sequence[Operation[Input, Output]], order: Sequence[int]
) -> bool:
    """Return whether `order`, positions in `operations`, is legal, keeps real time, and leaves nothing out."""
    ordered = _ordered(operations, order)
    if ordered is None:
        return False
    state = model.init()
    for operation in ordered:
        is_legal, state = model.step(state, operation.input, operation.output)
        if not is_legal:
            return False
    return True


def _ordered(
    operations: Sequence[Operation[Input, Output]], order: Sequence[int]
) -> list[Operation[Input, Output]] | None:
    """Return the operations in `order`; None when that breaks real time, repeats one or leaves a completed one out."""
    left_out = set(range(len(operations))).difference(order)
    if len(left_out) + len(order) != len(operations):
        return None
    if any(operations[position].return_ != PENDING for position in left_out):
        return None
    ordered = [operations[position] for position in order]
    # No operation may stand behind one that was called only after it had returned.
    latest_call = float("-inf")
    for operation in ordered:
        call = operation.call
        if call > latest_call:
            latest_call = call
        if operation.return_ < latest_call:
            return None
    return ordered


def _is_set(ordered: Iterable[AnyOperation]) -> bool:
    elements: set[Hashable] = set()
    for operation in ordered:
        f, value = operation.input
        answer = operation.output
        present = value in elements
        if f == "contains":
            if answer is not UNKNOWN and answer != present:
                return False
            continue
        if f == "add":
            elements.add(value)
        else:
            elements.discard(value)
        if answer is not UNKNOWN and answer is not None and answer != (present is (f == "remove")):
            return False
    return True


def _is_queue(ordered: Iterable[AnyOperation]) -> bool:
    values: deque[Any] = deque()
    return _holds_values(ordered, "enqueue", values, values.popleft)


def _is_stack(ordered: Iterable[AnyOperation]) -> bool:
    values: list[Any] = []
    return _holds_values(ordered, "push", values, values.pop)


def _holds_values(
    ordered: Iterable[AnyOperation], put: str, values: deque[Any] | list[Any], take: Callable[[], Any]
) -> bool:
    for operation in ordered:
        f, value = operation.input
        if f == put:
            values.append(value)
            continue
        removed, answer = take() if values else None, operation.output
        if answer is not UNKNOWN and not (removed is None if answer is None else removed == answer):
            return False
    return True


def _is_mutex(ordered: Iterable[AnyOperation]) -> bool:
    is_held = False
    for operation in ordered:
        answer = operation.output
        if is_held is not (operation.input[0] == "release"):
            if answer is not UNKNOWN and answer is not False:
                return False
        elif answer is False:
            return False
        else:
            is_held = not is_held
    return True


def _is_lock(ordered: Iterable[AnyOperation]) -> bool:
    holders: list[Hashable] = []
    for operation in ordered:
        f, client = operation.input
        answer = operation.output
        if holders != ([] if f == "acquire" else [client]):
            if answer is not UNKNOWN and answer is not False:
                return False
        elif answer is False:
            return False
        elif f == "acquire":
            holders.append(client)
        else:
            holders.clear()
    return True


def _is_counter(ordered: Iterable[AnyOperation]) -> bool:
    total: Any = 0
    for operation in ordered:
        f, amount = operation.input
        if f == "add":
            total += amount
        elif operation.output is not UNKNOWN and operation.output != total:
            return False
    return True


_EXECUTIONS: dict[str, Callable[[Iterable[AnyOperation]], bool]] = {
    "set": _is_set,
    "queue": _is_queue,
    "stack": _is_stack,
    "lock": _is_lock,
    "mutex": _is_mutex,
    "counter": _is_counter,
}
