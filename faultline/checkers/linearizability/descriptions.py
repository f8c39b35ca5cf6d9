"""The sequential specifications by name: the functions of a history that each knows, and one line about it.

The specifications themselves stand in `models` and `data_types`. A description imports what it needs of them, and of
the road from rows to findings, only when it is asked for its data type.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from faultline.checkers.linearizability.data_type import DataType
from faultline.checkers.linearizability.operations import FailedCas
from faultline.harness.errors import UsageError

__all__ = ["DATA_TYPES", "MODELS", "ModelDescription", "model_named"]

_REGISTERS, _STRINGS, _OBJECTS = "registers.Registers", "kv.Strings", "objects.Objects"
"""The classes, by module, of the data types that models belong to."""


class ModelDescription(NamedTuple):
    """A model by name: the functions it knows, one line about it, and the class of its data type."""

    name: str
    functions: frozenset[str]
    summary: str
    made_by: str

    def data_type(self, failed_cas: FailedCas = "observe") -> DataType[Any]:
        """Return the data type of this model; `failed_cas` matters to registers only."""
        module, class_name = self.made_by.split(".")
        made: DataType[Any] = getattr(importlib.import_module(f"{__package__}.{module}"), class_name)(self, failed_cas)
        return made


def _described(name: str, functions: str, summary: str, made_by: str = _OBJECTS) -> ModelDescription:
    return ModelDescription(name, frozenset(functions.split()), f"{summary}, per key", made_by)


DATA_TYPES: Mapping[str, ModelDescription] = {
    description.name: description
    for description in (
        _described("set", "add remove contains read", "a set that is added to, removed from and looked into"),
        _described("queue", "enqueue dequeue", "a first-in, first-out queue"),
        _described("stack", "push pop", "a last-in, first-out stack"),
        _described("lock", "acquire release", "a lock that only its holder can release"),
        _described("mutex", "acquire release", "a lock that any client can release"),
        _described("counter", "add read", "a counter that is added to and read"),
    )
}
"""The models that are checked by monitors and by the generic search."""

MODELS: Mapping[str, ModelDescription] = {
    "cas-register": _described("cas-register", "read write cas", "a register with compare-and-set", _REGISTERS),
    "register": _described("register", "read write", "a register that is read and written", _REGISTERS),
    "kv": _described("kv", "get put append", "a string, put or appended to", _STRINGS),
    **DATA_TYPES,
}


def model_named(name: str) -> ModelDescription:
    """Return the model called `name`; raise UsageError when there is none."""
    if name not in MODELS:
        raise UsageError(f"There is no model called `{name}`.", f"Choose one of {', '.join(MODELS)}.")
    return MODELS[name]
