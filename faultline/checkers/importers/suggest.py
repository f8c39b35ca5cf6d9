"""The probable model of a history, from its functions and the shapes of its values.

The names of functions are Jepsen's conventions. A suggestion is a default for a user who names no model. The output
names it; a wrong one ends in a refusal of the checker or in a verdict under the named model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from faultline.checkers.importers.events import is_micro_operations
from faultline.harness.history import History

__all__ = ["suggested_model"]

_BY_FUNCTIONS = (
    ({"acquire", "release"}, "mutex"),
    ({"get", "put", "append"}, "kv"),
    ({"enqueue", "dequeue", "drain"}, "total-queue"),
    ({"generate"}, "unique-ids"),
    ({"transfer", "read"}, "bank"),
)
_LOOKED_AT = 10_000


def suggested_model(history: History) -> str | None:
    """Return the name of the model, or None for functions without a known model."""
    functions = set(history.f)
    if "txn" in functions:
        return "strict-serializable"
    if functions <= {"read", "write", "cas"}:
        return _of_reads_and_writes(history)
    if functions <= {"add", "read"}:
        return _of_additions(history)
    return next((model for known, model in _BY_FUNCTIONS if functions <= known), None)


def _of_reads_and_writes(history: History) -> str:
    beginning = history.head(_LOOKED_AT)
    if any(map(is_micro_operations, beginning.value)):
        return "long-fork"
    if any(result.__class__ is dict for result in beginning.result):
        return "bank"
    return "cas-register"


def _of_additions(history: History) -> str:
    """Return the model of additions: counters are read as numbers, sets as lists; without reads, only increments
    repeat."""
    reads = [result for f, result in zip(history.f, history.result) if f == "read" and result is not None]
    if not reads:
        return "counter" if _repeats(history.value[:_LOOKED_AT]) else "set"
    if not all(result.__class__ is list for result in reads):
        return "counter"
    return "set" if len(reads) == 1 else "set-full"


def _repeats(values: Sequence[Any]) -> bool:
    return len(set(map(repr, values))) < len(values)
