"""Sequential specifications of sets, queues, stacks, locks and counters, as Porcupine models over plain calls.

An input is a pair of a function's name and its argument, an output the answer of the object; UNKNOWN, the output of an
operation whose answer was not seen, fits everything that has an effect.

| name      | calls                                | answers                                              |
|-----------|--------------------------------------|------------------------------------------------------|
| `set`     | add(v), remove(v), contains(v), read | if it changed anything, or nothing; if v is in; all  |
| `queue`   | enqueue(v), dequeue                  | nothing; the oldest value, None from an empty queue  |
| `stack`   | push(v), pop                         | nothing; the newest value, None from an empty stack  |
| `lock`    | acquire(client), release(client)     | False when refused; only the holder can release      |
| `mutex`   | acquire, release                     | False when refused; any client can release           |
| `counter` | add(n), read                         | nothing; the sum                                     |

All begin empty, free or at 0. A set without whole reads is checked value by value.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from faultline.checkers.linearizability.descriptions import DATA_TYPES
from faultline.checkers.porcupine.model import UNKNOWN, Model, Operation

__all__ = [
    "COUNTER_MODEL",
    "LOCK_MODEL",
    "MODEL_FACTORIES",
    "MUTEX_MODEL",
    "QUEUE_MODEL",
    "SET_MODEL",
    "STACK_MODEL",
    "UNKNOWN",
    "Call",
    "Specification",
]

Call = tuple[str, Hashable]
"""A function's name with its argument, None where there is none."""


def _set_step(state: frozenset[Hashable], given: Call, answer: Any) -> tuple[bool, frozenset[Hashable]]:
    f, value = given
    if f == "read":
        return answer is UNKNOWN or state == frozenset(answer), state
    present = value in state
    if f == "contains":
        return answer is UNKNOWN or answer == present, state
    changes = present is (f == "remove")
    legal = answer is UNKNOWN or answer is None or answer == changes
    if not changes:
        return legal, state
    return legal, state | {value} if f == "add" else state - {value}


def _set_partition(history: Sequence[Operation[Call, Any]]) -> list[Sequence[Operation[Call, Any]]]:
    if any(operation.input[0] == "read" for operation in history):
        return [history]
    by_value: dict[Hashable, list[Operation[Call, Any]]] = {}
    for operation in history:
        by_value.setdefault(operation.input[1], []).append(operation)
    return list(by_value.values())


def _queue_step(state: tuple[Any, ...], given: Call, answer: Any) -> tuple[bool, tuple[Any, ...]]:
    if given[0] == "enqueue":
        return True, (*state, given[1])
    if not state:
        return answer is None or answer is UNKNOWN, state
    return answer is UNKNOWN or (answer is not None and answer == state[0]), state[1:]


def _stack_step(state: tuple[Any, ...], given: Call, answer: Any) -> tuple[bool, tuple[Any, ...]]:
    if given[0] == "push":
        return True, (*state, given[1])
    if not state:
        return answer is None or answer is UNKNOWN, state
    return answer is UNKNOWN or (answer is not None and answer == state[-1]), state[:-1]


_FREE = ()


def _lock_step(state: tuple[Hashable, ...], given: Call, answer: Any) -> tuple[bool, tuple[Hashable, ...]]:
    f, client = given
    possible = state == _FREE if f == "acquire" else state == (client,)
    if answer is False:
        return not possible, state
    if not possible:
        return answer is UNKNOWN, state
    return True, (client,) if f == "acquire" else _FREE


def _mutex_step(state: bool, given: Call, answer: Any) -> tuple[bool, bool]:
    possible = state is (given[0] == "release")
    if answer is False:
        return not possible, state
    if not possible:
        return answer is UNKNOWN, state
    return True, not state


def _counter_step(state: int, given: Call, answer: Any) -> tuple[bool, int]:
    f, amount = given
    if f == "read":
        return answer is UNKNOWN or answer == state, state
    assert isinstance(amount, int), f"a counter adds integers, not {amount!r}"
    return True, state + amount


def _describe(given: Call, answer: Any) -> str:
    f, value = given
    call = f"{f}({'' if value is None else repr(value)})"
    return call if answer is None and f in _SILENT else f"{call} -> {'?' if answer is UNKNOWN else repr(answer)}"


_SILENT = frozenset(("add", "remove", "enqueue", "push", "acquire", "release"))

SET_MODEL: Model[frozenset[Hashable], Call, Any] = Model(
    init=frozenset,
    step=_set_step,
    partition=_set_partition,
    describe_operation=_describe,
    describe_state=lambda state: "{" + ", ".join(sorted(map(repr, state))) + "}",
)
"""A set; an add or remove that answers tells whether it changed anything."""

QUEUE_MODEL: Model[tuple[Any, ...], Call, Any] = Model(init=tuple, step=_queue_step, describe_operation=_describe)
"""A first-in, first-out queue; the state is its values, oldest first."""

STACK_MODEL: Model[tuple[Any, ...], Call, Any] = Model(init=tuple, step=_stack_step, describe_operation=_describe)
"""A last-in, first-out stack; the state is its values, oldest first."""

LOCK_MODEL: Model[tuple[Hashable, ...], Call, Any] = Model(
    init=lambda: _FREE, step=_lock_step, describe_operation=_describe
)
"""A lock with a holder, which alone can release it; the state is () or (holder,)."""

MUTEX_MODEL: Model[bool, Call, Any] = Model(init=lambda: False, step=_mutex_step, describe_operation=_describe)
"""A lock without a memory of its holder, as Knossos has it; the state says whether it is held."""

COUNTER_MODEL: Model[int, Call, Any] = Model(init=lambda: 0, step=_counter_step, describe_operation=_describe)
"""A counter that starts at 0."""


@dataclass(frozen=True, slots=True)
class Specification:
    """A sequential specification by name: how to get it, and which functions it knows (`reads` change nothing)."""

    name: str
    model: Callable[[], Model[Any, Call, Any]]
    reads: frozenset[str] = frozenset()

    @property
    def functions(self) -> frozenset[str]:
        """The functions that the object knows."""
        return DATA_TYPES[self.name].functions


MODEL_FACTORIES: Mapping[str, Specification] = {
    specification.name: specification
    for specification in (
        Specification("set", lambda: SET_MODEL, frozenset(("contains", "read"))),
        Specification("queue", lambda: QUEUE_MODEL),
        Specification("stack", lambda: STACK_MODEL),
        Specification("lock", lambda: LOCK_MODEL),
        Specification("mutex", lambda: MUTEX_MODEL),
        Specification("counter", lambda: COUNTER_MODEL, frozenset(("read",))),
    )
}
"""The data types of `descriptions.DATA_TYPES` by name; registers and string stores are in `models`."""
