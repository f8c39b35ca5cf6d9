"""Register operations as the checkers see them: the state that each one demands and the state that it makes.

A history row becomes at most one of three kinds of operation, whatever the client called it:

- OBSERVE demands that the state equals `demand`: a read, and a compare-and-set that replaces a value by itself;
- AVOID demands that the state differs from `demand`: a compare-and-set that answered "precondition failed";
- WRITE puts `produce`, whatever the state;
- SWAP demands `demand` and puts `produce`: a compare-and-set that succeeded.

Unknown outcomes are taken into account like this. An indeterminate write or compare-and-set is *pending*
(`return_ == INFINITY`): it may take effect at any time since its call, or never, and when an indeterminate
compare-and-set had no effect nothing was observed. Indeterminate reads tell nothing and are dropped. A definite
failure did not happen and is dropped, but for a failed compare-and-set, which saw the state (mode `observe`, as
Porcupine's etcd model has it); mode `ignore` drops that too, as Jepsen's `:fail` does. The two modes can judge a
history differently.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.outcome import CAS_MISMATCH

__all__ = [
    "AVOID",
    "BEGINNING",
    "INFINITY",
    "OBSERVE",
    "SWAP",
    "WRITE",
    "FailedCas",
    "RegisterOperation",
    "Value",
    "canonical",
    "register_operations",
]

OBSERVE, AVOID, WRITE, SWAP = range(4)

INFINITY = 1 << 62
"""The return of an operation that never returned, later than any index of a history."""

BEGINNING = -1
"""A call earlier than any index of a history."""

FailedCas = Literal["observe", "ignore"]

Value = Hashable
"""A value in its `canonical` form."""


class RegisterOperation(NamedTuple):
    """One operation on one register, with its place in the history's order and its row there."""

    kind: int
    demand: Value
    produce: Value
    call: int
    return_: int
    row: int


def canonical(value: Any) -> Value:
    """Return a hashable stand-in for a JSON value, equal exactly for equal values (unlike Python's `True == 1`)."""
    if value is None or type(value) is int or type(value) is str:
        return value
    return b"json:" + msgspec.json.encode(value, order="deterministic")


def register_operations(
    history: History, rows: Sequence[int], failed_cas: FailedCas = "observe", functions: frozenset[str] | None = None
) -> list[RegisterOperation]:
    """Return the operations in `rows` (of one key, in order of invocation) as register operations, in that order.

    `functions` are the functions the model knows; a row with another one raises UsageError.
    """
    operations: list[RegisterOperation] = []
    outcomes, calls, returns = history.outcome, history.invoke_index, history.complete_index
    for row in rows:
        f, outcome = history.f[row], history.outcome[row]
        if f == "read":
            if outcome == "ok":
                value = canonical(history.result[row])
                operations.append(RegisterOperation(OBSERVE, value, None, calls[row], returns[row], row))
        elif functions is not None and f not in functions:
            raise _unknown_function(history, row, functions)
        elif outcomes[row] == "fail":
            if f == "cas" and failed_cas == "observe" and history.error[row] == CAS_MISMATCH:
                expected, _ = _expected_and_new(history, row)
                operations.append(RegisterOperation(AVOID, expected, None, calls[row], returns[row], row))
        else:
            return_ = returns[row] if outcome == "ok" else INFINITY
            operation = _mutation(history, row, f, return_)
            if operation is not None:
                operations.append(operation)
    return operations


def _mutation(history: History, row: int, f: str, return_: int) -> RegisterOperation | None:
    call = history.invoke_index[row]
    if f == "write":
        return RegisterOperation(WRITE, None, canonical(history.value[row]), call, return_, row)
    if f != "cas":
        raise _unknown_function(history, row, frozenset(("read", "write", "cas")))
    expected, new = _expected_and_new(history, row)
    if expected != new:
        return RegisterOperation(SWAP, expected, new, call, return_, row)
    # Replacing a value by itself changes nothing: known to have succeeded it is a read, pending it is nothing at all.
    return None if return_ == INFINITY else RegisterOperation(OBSERVE, expected, None, call, return_, row)


def _expected_and_new(history: History, row: int) -> tuple[Value, Value]:
    value = history.value[row]
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise UsageError(
            f"Row {row} of the history: a compare-and-set must have [expected, new] as its value, not {value!r}.",
            "Let the workload write the pair, or choose another model.",
        )
    return canonical(value[0]), canonical(value[1])


def _unknown_function(history: History, row: int, functions: frozenset[str]) -> UsageError:
    return UsageError(
        f"Row {row} of the history calls `{history.f[row]}`, which the model does not know.",
        f"It knows {', '.join(sorted(functions))}; choose the model that fits the workload.",
    )
