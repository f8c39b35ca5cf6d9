"""The independent replay behind every "linearizable" of a monitor."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from faultline.checkers.linearizability.data_types import UNKNOWN, Call
from faultline.checkers.porcupine.model import PENDING, Operation

__all__ = ["replays"]

Apply = Callable[[str, Hashable, Any], bool]


def replays(data_type: str, operations: Sequence[Operation[Call, Any]], order: Sequence[int]) -> bool:
    """Return whether `order` is a legal execution of `data_type` that keeps real time and leaves no completed one out.

    The object it is tried on is an ordinary mutable one, so that a replay costs the same for every operation.
    """
    apply, latest_call = _OBJECTS[data_type](), float("-inf")
    for position in order:
        operation = operations[position]
        if operation.call > latest_call:
            latest_call = operation.call
        if operation.return_ < latest_call or not apply(*operation.input, operation.output):
            return False
    placed = set(order)
    must = {position for position, operation in enumerate(operations) if operation.return_ != PENDING}
    return len(placed) == len(order) and must <= placed


def _set() -> Apply:
    elements: set[Hashable] = set()

    def apply(f: str, value: Hashable, answer: Any) -> bool:
        present = value in elements
        if f == "contains":
            return answer is UNKNOWN or answer == present
        if f == "add":
            elements.add(value)
        else:
            elements.discard(value)
        return answer is UNKNOWN or answer is None or answer == (present is (f == "remove"))

    return apply


def _queue() -> Apply:
    values: deque[Any] = deque()

    def apply(f: str, value: Hashable, answer: Any) -> bool:
        if f == "enqueue":
            values.append(value)
            return True
        removed = values.popleft() if values else None
        return answer is UNKNOWN or (removed is None if answer is None else removed == answer)

    return apply


def _stack() -> Apply:
    values: list[Any] = []

    def apply(f: str, value: Hashable, answer: Any) -> bool:
        if f == "push":
            values.append(value)
            return True
        removed = values.pop() if values else None
        return answer is UNKNOWN or (removed is None if answer is None else removed == answer)

    return apply


def _lock() -> Apply:
    holders: list[Hashable] = []

    def apply(f: str, client: Hashable, answer: Any) -> bool:
        if holders != ([] if f == "acquire" else [client]):
            return answer is UNKNOWN or answer is False
        if f == "acquire":
            holders.append(client)
        else:
            holders.clear()
        return answer is not False

    return apply


def _counter() -> Apply:
    total = 0

    def apply(f: str, amount: Any, answer: Any) -> bool:
        nonlocal total
        if f == "read":
            return answer is UNKNOWN or bool(answer == total)
        total += amount
        return True

    return apply


_OBJECTS: dict[str, Callable[[], Apply]] = {
    "set": _set,
    "queue": _queue,
    "stack": _stack,
    "lock": _lock,
    "counter": _counter,
}
