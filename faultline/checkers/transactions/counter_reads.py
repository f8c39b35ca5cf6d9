"""The part of each counter read that others added, and the most that it could be.

A read returns what others had added, and what its own transaction had added before: its *base* is the former alone. As
in registers, only a transaction's first step on a key, if that is a read, shows the adds of others.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from faultline.checkers.transactions.columns import FAIL, OK, TransactionColumns, malformed_transaction

__all__ = ["CounterReads", "find_counter_reads"]


@dataclass(frozen=True, slots=True)
class CounterReads:
    """The reads of ok transactions. By key number, `amounts` has the sum that each transaction adds to it.

    Per read: `base`, and `earlier`, the sum that its own transaction had added before it. `external` has the first
    reads by key and value, and `external_of` by transaction and key."""

    amounts: dict[int, dict[int, int]]
    base: dict[int, int]
    earlier: dict[int, int]
    external: dict[int, dict[int, list[int]]]
    external_of: dict[tuple[int, int], int]

    def possible(self, columns: TransactionColumns, read: int, failed: bool = False) -> int:
        """Return the sum of all that others could have added to the key of `read`, with `failed` also if they
        failed."""
        reader = int(columns.owner[read])
        return sum(
            amount
            for transaction, amount in self.amounts.get(int(columns.key[read]), {}).items()
            if transaction != reader and (failed or columns.outcome[transaction] != FAIL)
        )


def find_counter_reads(columns: TransactionColumns) -> CounterReads:
    """Sort reads and adds by key. Raise UsageError for an increment that is no positive integer and a read of none."""
    amounts: dict[int, dict[int, int]] = {}
    for micro in np.flatnonzero(~columns.is_read).tolist():
        by_transaction = amounts.setdefault(int(columns.key[micro]), defaultdict(int))
        by_transaction[int(columns.owner[micro])] += _amount(columns, micro)
    found = CounterReads(amounts, {}, {}, {}, {})
    own: dict[tuple[int, int], int] = {}
    for micro in np.flatnonzero(columns.outcome[columns.owner] == OK).tolist():
        _visit(columns, micro, own, found)
    return found


def _visit(columns: TransactionColumns, micro: int, own: dict[tuple[int, int], int], found: CounterReads) -> None:
    place = int(columns.owner[micro]), int(columns.key[micro])
    if not columns.is_read[micro]:
        own[place] = own.get(place, 0) + int(columns.values[micro])
        return
    value = _value(columns, micro)
    found.earlier[micro] = own.get(place, 0)
    found.base[micro] = value - found.earlier[micro]
    if place not in own:
        found.external.setdefault(place[1], {}).setdefault(value, []).append(micro)
        found.external_of[place] = micro
        own[place] = 0


def _amount(columns: TransactionColumns, micro: int) -> int:
    amount = columns.values[micro]
    if type(amount) is not int or amount <= 0:
        key, row = columns.keys[columns.key[micro]], int(columns.rows[columns.owner[micro]])
        raise malformed_transaction(row, f"increments {key!r} by {str(amount)[:80]!r}, which is no positive integer")
    return amount


def _value(columns: TransactionColumns, micro: int) -> int:
    value = columns.values[micro]
    if value is not None and type(value) is not int:
        key, row = columns.keys[columns.key[micro]], int(columns.rows[columns.owner[micro]])
        raise malformed_transaction(row, f"read {str(value)[:80]!r} from {key!r}, which is no integer")
    return value or 0
