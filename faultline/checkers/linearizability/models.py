"""Sequential specifications of registers and string stores as Porcupine models.

| name           | functions         | state                                  |
|----------------|-------------------|----------------------------------------|
| `register`     | read, write       | one value per key, None at first       |
| `cas-register` | read, write, cas  | the same, with compare-and-set         |
| `kv`           | get, put, append  | one string per key, empty at first     |

All of them are checked key by key; `descriptions` lists them by name. Sets, queues, stacks, locks and
counters stand in `data_types`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from faultline.checkers.linearizability.data_types import MODEL_FACTORIES
from faultline.checkers.linearizability.descriptions import MODELS
from faultline.checkers.linearizability.operations import (
    AVOID,
    BEGINNING,
    INFINITY,
    OBSERVE,
    WRITE,
    RegisterOperation,
)
from faultline.checkers.porcupine import PENDING, Model, Operation

__all__ = [
    "KV_MODEL",
    "MODELS",
    "MODEL_FACTORIES",
    "KvInput",
    "referee_operations",
    "register_model",
]

Input = TypeVar("Input")
Output = TypeVar("Output")

RegisterInput = tuple[int, Hashable, Hashable]


def _register_step(state: Hashable, given: RegisterInput, _answer: None) -> tuple[bool, Hashable]:
    kind, demand, produce = given
    if kind == OBSERVE:
        return state == demand, state
    if kind == AVOID:
        return state != demand, state
    return kind == WRITE or state == demand, produce


def _describe_register_operation(given: RegisterInput, _answer: None) -> str:
    kind, demand, produce = given
    return (f"read {demand}", f"saw not {demand}", f"write {produce}", f"replace {demand} by {produce}")[kind]


def register_model(initial: Hashable = None) -> Model[Hashable, RegisterInput, None]:
    """Return the model of one register, over the inputs (kind, demand, produce) of `RegisterOperation`."""
    return Model(init=lambda: initial, step=_register_step, describe_operation=_describe_register_operation)


def referee_operations(operations: Sequence[RegisterOperation]) -> list[Operation[RegisterInput, None]]:
    """Return register operations in the form that the port of Porcupine takes."""
    return [
        Operation(0, (kind, demand, produce), max(call, BEGINNING), None, PENDING if return_ == INFINITY else return_)
        for kind, demand, produce, call, return_, _ in operations
    ]


@dataclass(frozen=True, slots=True)
class KvInput:
    """A call of the string store: `f` is `get`, `put` or `append`; the output of a get is the string it answered."""

    f: str
    key: str
    value: str = ""


def _kv_step(state: str, given: KvInput, answer: str | None) -> tuple[bool, str]:
    if given.f == "get":
        return answer is None or answer == state, state
    return True, given.value if given.f == "put" else state + given.value


def _kv_partition(
    history: Sequence[Operation[KvInput, str | None]],
) -> list[list[Operation[KvInput, str | None]]]:
    by_key: dict[str, list[Operation[KvInput, str | None]]] = {}
    for operation in history:
        by_key.setdefault(operation.input.key, []).append(operation)
    return list(by_key.values())


def _describe_kv_operation(given: KvInput, answer: str | None) -> str:
    return f"get({given.key!r}) -> {answer!r}" if given.f == "get" else f"{given.f}({given.key!r}, {given.value!r})"


KV_MODEL: Model[str, KvInput, str | None] = Model(
    init=lambda: "", step=_kv_step, partition=_kv_partition, describe_operation=_describe_kv_operation
)
"""The string store of Porcupine's key-value histories: get, put, append."""
