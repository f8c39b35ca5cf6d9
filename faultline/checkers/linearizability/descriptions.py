"""The sequential specifications by name: which functions of a history each of them knows, and one line about it.

What they are stands in `models` and `data_types`, which are imported when a history needs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from faultline.harness.errors import UsageError

__all__ = ["DATA_TYPES", "MODELS", "ModelDescription", "model_named"]


class ModelDescription(NamedTuple):
    """A model by name: the functions it knows and one line about it."""

    name: str
    functions: frozenset[str]
    summary: str


def _described(name: str, functions: str, summary: str) -> ModelDescription:
    return ModelDescription(name, frozenset(functions.split()), f"{summary}, per key")


DATA_TYPES: Mapping[str, ModelDescription] = {
    description.name: description
    for description in (
        _described("set", "add remove contains read", "a set that is added to, removed from and looked into"),
        _described("queue", "enqueue dequeue", "a first-in, first-out queue"),
        _described("stack", "push pop", "a last-in, first-out stack"),
        _described("lock", "acquire release", "a lock that only its holder can release"),
        _described("mutex", "acquire release", "a lock that anybody can release"),
        _described("counter", "add read", "a counter that is added to and read"),
    )
}
"""The models that are checked by monitors and by the generic search."""

MODELS: Mapping[str, ModelDescription] = {
    "cas-register": _described("cas-register", "read write cas", "a register with compare-and-set"),
    "register": _described("register", "read write", "a register that is read and written"),
    "kv": _described("kv", "get put append", "a string, put or appended to"),
    **DATA_TYPES,
}


def model_named(name: str) -> ModelDescription:
    """The model called `name`; raises UsageError when there is none."""
    if name not in MODELS:
        raise UsageError(f"There is no model called `{name}`.", f"Choose one of {', '.join(MODELS)}.")
    return MODELS[name]
