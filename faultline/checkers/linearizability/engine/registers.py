"""Operations on registers as columns.

The meaning of a history's row stands in `linearizability.operations`. Here the common rows take a shortcut past it,
because encoding costs more than judging; unusual rows (values that are neither numbers nor strings, errors, unknown
functions) go the long way and mean the same.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

from faultline.checkers.linearizability.engine.columns import PENDING, Columns, Numbers
from faultline.checkers.linearizability.operations import (
    AVOID,
    INFINITY,
    OBSERVE,
    SWAP,
    WRITE,
    FailedCas,
    RegisterOperation,
    register_operations,
)
from faultline.checkers.stored_history import StoredHistory
from faultline.harness.history import History
from faultline.harness.outcome import CAS_MISMATCH

__all__ = ["columns_of", "register_columns"]

_PLAIN = frozenset((int, str, type(None)))


def register_columns(
    history: History, failed_cas: FailedCas = "observe", functions: frozenset[str] | None = None
) -> Columns:
    """Return all keys of `history` as registers, in order of first use; `functions` are those the model knows.

    Raises UsageError for a row with another function, or whose value does not fit. A stored history stays in its own
    columns (see `arrow`).
    """
    return _stored_columns(history, failed_cas, functions) or _listed_columns(history, failed_cas, functions)


def _stored_columns(history: History, failed_cas: FailedCas, functions: frozenset[str] | None) -> Columns | None:
    if not isinstance(history, StoredHistory):
        return None
    from faultline.checkers.linearizability.engine.arrow import columns_of_table

    return columns_of_table(history.table, failed_cas, functions)


def _listed_columns(history: History, failed_cas: FailedCas, functions: frozenset[str] | None) -> Columns:
    observes = failed_cas == "observe"
    knows_cas = functions is None or "cas" in functions
    names, values, pending = Numbers(), Numbers([None]), PENDING
    # One list for each column, and no tuple for each row: of a million tuples the garbage collector would look at every
    # one again and again, which takes longer than all else here.
    keys, kinds, demands, produces, calls, returns, numbers = columns = _Lists([], [], [], [], [], [], [])
    told = (history.key, history.f, history.outcome, history.value, history.result)
    times = (history.invoke_index, history.complete_index)
    for row, name, f, outcome, value, result, call, return_ in zip(range(len(history)), *told, *times):
        # A key is numbered even if its first row tells nothing: keys stand in order of first use.
        key = names[name]
        if f == "read" and type(result) in _PLAIN:
            if outcome != "ok":
                continue
            kind, demand, produce = OBSERVE, values[result], 0
        elif f == "write" and outcome != "fail" and type(value) in _PLAIN:
            kind, demand, produce = WRITE, 0, values[value]
            if outcome != "ok":
                return_ = pending
        elif f == "cas" and outcome == "ok" and knows_cas and _is_plain_swap(value):
            kind, demand, produce = SWAP, values[value[0]], values[value[1]]
        elif f == "cas" and outcome == "fail" and observes and knows_cas and _is_plain_swap(value):
            if history.error[row] != CAS_MISMATCH:
                continue
            kind, demand, produce = AVOID, values[value[0]], 0
        else:
            columns.take(key, register_operations(history, (row,), failed_cas, functions), values)
            continue
        keys.append(key)
        kinds.append(kind)
        demands.append(demand)
        produces.append(produce)
        calls.append(call)
        returns.append(return_)
        numbers.append(row)
    return columns.joined(names, values)


def _is_plain_swap(value: Any) -> bool:
    if type(value) is not list or len(value) != 2:
        return False
    expected, new = value
    return type(expected) in _PLAIN and type(new) in _PLAIN and expected != new


class _Lists(NamedTuple):
    """Columns that grow: key, kind, demand, produce, call, return and row."""

    key: list[int]
    kind: list[int]
    demand: list[int]
    produce: list[int]
    call: list[int]
    return_: list[int]
    row: list[int]

    def take(self, key: int, operations: Iterable[RegisterOperation], values: Numbers) -> None:
        """Add the operations of one key."""
        for kind, demand, produce, call, return_, row in operations:
            self.key.append(key)
            self.kind.append(kind)
            self.demand.append(0 if kind == WRITE else values[demand])
            self.produce.append(values[produce] if kind >= WRITE else 0)
            self.call.append(call)
            self.return_.append(PENDING if return_ == INFINITY else return_)
            self.row.append(row)

    def joined(self, keys: Iterable[Hashable], values: Iterable[Hashable]) -> Columns:
        """Return all of it as columns."""
        wide = [array("q", column) for column in self[4:]]
        narrow = [array("i", column) for column in (self.demand, self.produce)]
        return Columns(list(keys), list(values), array("i", self.key), array("b", self.kind), *narrow, *wide)


def columns_of(operations: Sequence[RegisterOperation], initial: Hashable = None) -> Columns:
    """Return the operations of one register, whose rows are then their positions in `operations`."""
    values = Numbers([initial])
    columns = _Lists([], [], [], [], [], [], [])
    columns.take(0, operations, values)
    joined = columns.joined([None], values)
    joined.row = array("q", range(len(operations)))
    return joined
