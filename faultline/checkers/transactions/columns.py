"""Transactions as columns: a history of transactions is converted once, before any inference.

A transaction is one operation with `f == "txn"`. Its value is a list of *micro-operations*, each a triple:

    ["append", KEY, ELEMENT]   add ELEMENT to the end of the list KEY
    ["w", KEY, VALUE]          set the register KEY to VALUE
    ["r", KEY, VALUE]          VALUE was read from KEY; null in the invocation, where it is not known yet

The completion of a transaction that succeeded repeats them with its reads filled in. For one that failed, or whose
outcome is unknown, only the invocation has its writes. Rows with another `f` are ignored.

Every micro-operation of the history gets a number, in order of rows; a transaction's are neighbours. Keys become small
integers. Python objects are touched only here and when versions are put in order: all inference works on integer
columns. So a hundred thousand transactions take a fraction of a second.

Limits: keys and values are compared as Python compares them, so `1`, `1.0` and `true` are the same value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from faultline.checkers.common.words import hashable
from faultline.harness.errors import UsageError
from faultline.harness.history import OPEN, History

__all__ = [
    "FAIL",
    "INFO",
    "NEVER",
    "OK",
    "Booleans",
    "Integers",
    "MicroOperation",
    "TransactionColumns",
    "encode",
    "malformed_transaction",
]

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]
MicroOperation = Sequence[Any]

OK, INFO, FAIL = 0, 1, 2
_OUTCOMES = {"ok": OK, "info": INFO, "fail": FAIL}

NEVER = 1 << 50
"""The completion index of a transaction that never completed, or of which it is not known when it took effect."""


@dataclass(frozen=True, slots=True)
class TransactionColumns:
    """All transactions of a history, in order of invocation.

    Per transaction: `rows` in the history, `outcome`, `process`, `invoke` and `complete` in the history's common order
    (`NEVER` unless it is ok), and `start`: its first micro-operation, with one entry more at the end.
    Per micro-operation: `owner` (its transaction), `key`, `is_read` and `values`. `keys` has the keys' own names.
    """

    rows: Integers
    outcome: Integers
    process: Integers
    invoke: Integers
    complete: Integers
    start: Integers
    owner: Integers
    key: Integers
    is_read: Booleans
    values: list[Any]
    keys: list[Any]
    write_name: str

    def __len__(self) -> int:
        return len(self.rows)

    def micro_operations(self, transaction: int) -> list[list[Any]]:
        """Return the micro-operations of one transaction as in the history; reads of one that is not ok are unknown."""
        first, last = int(self.start[transaction]), int(self.start[transaction + 1])
        known = self.outcome[transaction] == OK
        return [
            ["r", self.keys[self.key[m]], self.values[m] if known else None]
            if self.is_read[m]
            else [self.write_name, self.keys[self.key[m]], self.values[m]]
            for m in range(first, last)
        ]

    def process_pairs(self) -> tuple[Integers, Integers]:
        """Return each transaction that is ok with the next one of its process that is not known to have failed."""
        alive = np.flatnonzero(self.outcome != FAIL)
        order = alive[np.lexsort((self.invoke[alive], self.process[alive]))]
        before, after = order[:-1], order[1:]
        joined = (self.process[before] == self.process[after]) & (self.outcome[before] == OK)
        joined &= self.complete[before] < self.invoke[after]
        return before[joined], after[joined]


def encode(history: History, write_name: str, translate: Callable[[int, Any], Any] | None = None) -> TransactionColumns:
    """Return the transactions of `history`, whose writes are all called `write_name` (`append` or `w`).

    `translate` makes such triples of each transaction that has another form, given its row.
    Raise UsageError with the row when a transaction is not a list of such triples.
    """
    rows = [row for row, f in enumerate(history.f) if f == "txn"]
    outcomes = [history.outcome[row] for row in rows]
    bodies = [
        history.result[row] if outcome == "ok" else history.value[row]
        for row, outcome in zip(rows, outcomes, strict=True)
    ]
    if translate is not None:
        bodies = list(map(translate, rows, bodies))
    names, keys, values = _triples(rows, bodies, write_name)
    lengths = np.fromiter(map(len, bodies), np.int64, len(bodies))
    key_ids, key_names = _numbered(keys)
    return TransactionColumns(
        rows=np.array(rows, dtype=np.int64),
        outcome=np.fromiter(map(_OUTCOMES.__getitem__, outcomes), np.int64, len(rows)),
        process=_picked(history.process, rows),
        invoke=_picked(history.invoke_index, rows),
        complete=_completions(history, rows, outcomes),
        start=np.concatenate(([0], np.cumsum(lengths))),
        owner=np.repeat(np.arange(len(rows)), lengths),
        key=key_ids,
        is_read=np.fromiter(map("r".__eq__, names), np.bool_, len(names)),
        values=values,
        keys=key_names,
        write_name=write_name,
    )


def malformed_transaction(row: int, cause: str) -> UsageError:
    """Return the error of a transaction that cannot be judged."""
    return UsageError(
        f"The transaction in row {row} {cause}.",
        'A transaction is a list of micro-operations such as ["append", "x", 1], ["w", "x", 1] and ["r", "x", null].',
    )


def _triples(rows: list[int], bodies: list[Any], write_name: str) -> tuple[list[str], list[Any], list[Any]]:
    # Every other way to unpack triples makes an object for each of them; this only copies references.
    if {list, tuple}.issuperset(map(type, bodies)):
        micros = list(chain.from_iterable(bodies))
        if {list, tuple}.issuperset(map(type, micros)) and {3}.issuperset(map(len, micros)):
            flat = list(chain.from_iterable(micros))
            names = flat[0::3]
            if all(map(("r", write_name).__contains__, names)):
                return names, flat[1::3], flat[2::3]
    raise _first_malformed(rows, bodies, write_name)


def _first_malformed(rows: list[int], bodies: list[Any], write_name: str) -> UsageError:
    for row, body in zip(rows, bodies, strict=True):
        if not isinstance(body, list | tuple):
            return malformed_transaction(row, f"has no list of micro-operations but {str(body)[:80]!r}")
        for micro in body:
            if not isinstance(micro, list | tuple) or len(micro) != 3:
                return malformed_transaction(row, f"holds {str(micro)[:80]!r}, which is not a triple")
            if micro[0] not in ("r", write_name):
                return malformed_transaction(row, f"does {str(micro[0])[:80]!r}, which is neither r nor {write_name}")
    raise AssertionError("the transactions are well-formed after all")


def _numbered(keys: list[Any]) -> tuple[Integers, list[Any]]:
    try:
        names = list(dict.fromkeys(keys))
        lookup: Iterable[Any] = keys
    except TypeError:
        originals = {hashable(key): key for key in reversed(keys)}
        lookup = [hashable(key) for key in keys]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(lookup))}
        return np.fromiter(map(numbers.__getitem__, lookup), np.int64, len(keys)), [originals[n] for n in numbers]
    numbers = {name: number for number, name in enumerate(names)}
    return np.fromiter(map(numbers.__getitem__, lookup), np.int64, len(keys)), names


def _picked(column: list[int], rows: list[int]) -> Integers:
    everything = np.array(column, dtype=np.int64)
    return everything if len(rows) == len(column) else everything[np.array(rows, dtype=np.int64)]


def _completions(history: History, rows: list[int], outcomes: list[str]) -> Integers:
    complete = _picked(history.complete_index, rows)
    known = np.fromiter(map("ok".__eq__, outcomes), np.bool_, len(rows)) & (complete != OPEN)
    return np.where(known, complete, NEVER)
