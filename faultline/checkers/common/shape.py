"""Reading a history as the operations that a checker expects, and refusing one of another shape by name.

A checker that is given the wrong history must not answer *pass*: it raises `UsageError` that names the checker, the
first operation that does not fit, and what it expects instead.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from faultline.checkers.common.words import client, told
from faultline.harness.errors import UsageError
from faultline.harness.history import OPEN, History

__all__ = [
    "elements",
    "ended",
    "expect_functions",
    "integer",
    "is_number",
    "micro_operations",
    "steps_of",
    "wrong_shape",
]

_COLLECTIONS = (list, tuple, set, frozenset)


def wrong_shape(checker: str, history: History, row: int, problem: str, expected: str) -> UsageError:
    """Return the error of a history that `checker` cannot judge, because of the operation in `row`."""
    where = f"operation {row} ({history.f[row]} by {client(history, row)})"
    return UsageError(f"The checker `{checker}` cannot judge this history: {where} {problem}.", f"Expected: {expected}")


def expect_functions(checker: str, history: History, functions: Collection[str], expected: str) -> None:
    """Raise `UsageError` unless every operation is one of `functions`."""
    if set(history.f) <= set(functions):
        return
    row = next(row for row, f in enumerate(history.f) if f not in functions)
    raise wrong_shape(checker, history, row, f"is a `{history.f[row]}`", expected)


def elements(checker: str, history: History, row: int, expected: str) -> Sequence[Any]:
    """Return the result of an ok operation as a sequence of elements; none where nothing was ever written."""
    result = history.result[row]
    if result is None:
        return ()
    if not isinstance(result, _COLLECTIONS):
        raise wrong_shape(checker, history, row, f"answered {told(result)} instead of a list", expected)
    return result if isinstance(result, list | tuple) else sorted(result, key=str)


def integer(checker: str, history: History, row: int, value: Any, expected: str) -> int:
    """Return `value` as an integer, which neither true nor 1.5 is."""
    if type(value) is not int:
        raise wrong_shape(checker, history, row, f"has {told(value)} where an integer belongs", expected)
    return value


def is_number(value: Any) -> bool:
    """Return whether `value` is a number in the sense of JSON."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def micro_operations(checker: str, history: History, row: int, value: Any, expected: str) -> list[tuple[str, Any, Any]]:
    """Return `value` as micro-operations `[f, key, value]`; a colon before f, as EDN writes it, is dropped."""
    steps = steps_of(value)
    if steps is None:
        raise wrong_shape(checker, history, row, f"has {told(value)} where a list of [f, key, value] belongs", expected)
    return steps


def steps_of(value: Any) -> list[tuple[str, Any, Any]] | None:
    """Return `value` as micro-operations `[f, key, value]`; None for another shape."""
    if not isinstance(value, list | tuple) or not all(isinstance(m, list | tuple) and len(m) in (2, 3) for m in value):
        return None
    return [(str(m[0]).removeprefix(":"), m[1], m[2] if len(m) == 3 else None) for m in value]


def ended(history: History, row: int) -> int:
    """Return the index at which `row` completed; beyond the end of the history for one that never did."""
    complete = history.complete_index[row]
    return complete if complete != OPEN else history.next_index
