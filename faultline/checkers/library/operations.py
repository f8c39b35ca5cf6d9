"""Lists of Porcupine's operations, and Faultline's histories, each made of the other.

A model by name reads the input of an operation as `f`, `(f, value)` or `(f, key, value)`, or as the list of a
transaction's micro-operations, and its output as the answer:

| output                                | means                                                            |
|---------------------------------------|------------------------------------------------------------------|
| `UNKNOWN`, or `return_` is `PENDING`  | the answer was not seen: it may have happened, or not            |
| False, of a `cas`                     | refused, because the value was not the expected one              |
| False, of an `acquire` or `release`   | refused, so that it did not happen                               |
| anything else                         | it happened, and answered this                                   |

An operation that certainly did not happen is left out of the list. Values are what JSON has; tuples count as lists, and
sets as sorted lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from faultline.checkers.importers.events import is_micro_operations
from faultline.checkers.porcupine.model import PENDING, UNKNOWN, Operation
from faultline.harness.errors import UsageError
from faultline.harness.history import OPEN, History
from faultline.harness.operation import Operation as Invocation
from faultline.harness.outcome import CAS_MISMATCH, Outcome, fail, info, ok

__all__ = ["AnyOperation", "has_seconds", "history_of", "in_order", "operation_at", "operations_of"]

AnyOperation = Operation[Any, Any]

_REFUSED = "refused"
_REFUSABLE = ("acquire", "release")


def in_order(operations: Iterable[AnyOperation]) -> list[AnyOperation]:
    """Return the operations in order of their calls, those of one moment as they were given.

    Raise UsageError when one returns before its call, or a client calls while its operation before is still open.
    """
    ordered = sorted(operations, key=lambda operation: operation.call)
    latest: dict[int, AnyOperation] = {}
    for operation in ordered:
        before = latest.get(operation.client_id)
        if operation.return_ < operation.call:
            raise UsageError(
                f"{_shown(operation)} returns at {operation.return_}, before its call at {operation.call}.",
                "Take both times from one clock, before the call and after the return.",
            )
        if before is not None and PENDING != before.return_ > operation.call:
            raise UsageError(
                f"{_shown(operation)} is called at {operation.call}, while the operation of the same client before, "
                f"{_shown(before)}, is open until {before.return_}.",
                "Give each client that works at the same time an id of its own.",
            )
        latest[operation.client_id] = operation
    return ordered


def history_of(ordered: Sequence[AnyOperation]) -> History:
    """Return the history of these operations, whose rows are their positions.

    At equal times calls come before returns. Times are seconds when any of them is a float, else the numbers of the
    events. Raise UsageError for an input that is no call.
    """
    events = [(operation.call, 0, row) for row, operation in enumerate(ordered)]
    events += [(operation.return_, 1, row) for row, operation in enumerate(ordered) if operation.return_ != PENDING]
    events.sort()
    is_timed, history = has_seconds(ordered), History()
    for number, (time, is_return, row) in enumerate(events):
        operation = ordered[row]
        time_us = round((time - events[0][0]) * 1e6) if is_timed else number
        if is_return:
            history.complete(row, _outcome(history.f[row], operation), time_us)
        else:
            f, key, value = _call(operation)
            history.invoke(Invocation(operation.client_id, f, key, value), time_us, operation.client_id, "")
    return history


def has_seconds(operations: Iterable[AnyOperation]) -> bool:
    """Return whether times are seconds, and not numbers that only tell the order."""
    return any(
        isinstance(time, float)
        for operation in operations
        for time in (operation.call, operation.return_)
        if time != PENDING
    )


def operation_at(history: History, row: int) -> AnyOperation:
    """Return the operation in `row`, with `(f, value)` or `(f, key, value)` as its input, and indices as its times."""
    f, key, value = history.f[row], history.key[row], history.value[row]
    given = (f, value) if key is None else (f, key, value)
    outcome = history.outcome[row]
    answer: Any = history.result[row] if outcome == "ok" else UNKNOWN
    if outcome == "fail":
        from faultline.checkers.linearizability.objects import EMPTY

        answer = {CAS_MISMATCH: False, _REFUSED: False, EMPTY: None}.get(history.error[row] or "", UNKNOWN)
    return_ = PENDING if outcome == "info" or history.complete_index[row] == OPEN else history.complete_index[row]
    return Operation(history.process[row], given, history.invoke_index[row], answer, return_)


def operations_of(history: History) -> list[AnyOperation]:
    """Return the operations of a history for a model of one's own, without those that certainly did not happen.

    A compare-and-set that was refused and a removal from an empty object did happen: they answer False and None.
    """
    from faultline.checkers.linearizability.objects import EMPTY  # Imported late: registers need no other object.

    return [
        operation_at(history, row)
        for row, outcome in enumerate(history.outcome)
        if outcome != "fail" or history.error[row] in (CAS_MISMATCH, EMPTY)
    ]


def _call(operation: AnyOperation) -> tuple[str, str | None, Any]:
    """Return the function, the key and the value of an input."""
    given = operation.input
    if isinstance(given, str):
        return given, None, None
    if isinstance(given, tuple) and 1 <= len(given) <= 3 and isinstance(given[0], str):
        key = str(given[1]) if len(given) == 3 and given[1] is not None else None
        return given[0], key, _plain(given[-1], operation) if len(given) > 1 else None
    if isinstance(given, list | tuple) and is_micro_operations(value := _plain(given, operation)):
        return "txn", None, value
    raise UsageError(
        f"{_shown(operation)} has an input that a model by name cannot read.",
        'Write it as "read", ("write", 1), ("write", "key", 1), or a list of micro-operations; '
        "or give a Model of your own, which takes any input.",
    )


def _outcome(f: str, operation: AnyOperation) -> Outcome:
    answer = operation.output
    if answer is UNKNOWN:
        return info("unknown")
    if answer is False and f == "cas":
        return fail(CAS_MISMATCH)
    if answer is False and f in _REFUSABLE:
        return fail(_REFUSED)
    return ok(_plain(answer, operation))


def _plain(value: Any, operation: AnyOperation) -> Any:
    """Return a value as JSON has it."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item, operation) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((_plain(item, operation) for item in value), key=lambda item: (type(item).__name__, repr(item)))
    if isinstance(value, dict):
        return {str(name): _plain(item, operation) for name, item in value.items()}
    raise UsageError(
        f"{_shown(operation)} holds {value!r:.60}, a {type(value).__name__}, which a model by name cannot compare.",
        "Use values that JSON has, or give a Model of your own, which takes any value.",
    )


def _shown(operation: AnyOperation) -> str:
    return f"The operation {operation.input!r:.60} of client {operation.client_id}"
