"""The elements of grow-only sets: the transaction that added each, and those that saw it (Elle, sets).

An element is added once to a key, so it identifies its adder. The versions of sets have no order; a read is compared
with all adds, element by element.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from faultline.checkers.common.words import hashable
from faultline.checkers.transactions.columns import (
    FAIL,
    OK,
    Booleans,
    TransactionColumns,
    malformed_transaction,
)

__all__ = ["SetMembers", "find_set_members"]


@dataclass(frozen=True, slots=True)
class SetMembers:
    """By key number: `adds` has for each element the micro-operation that added it, `reads` those that read the key.

    `seen` has the elements that each of these reads returned. `happened` says of each transaction whether it is known
    to have taken effect: it is ok, or its outcome is unknown and one of its elements was seen.
    """

    adds: dict[int, dict[Any, int]]
    reads: dict[int, list[int]]
    seen: dict[int, Counter[Any]]
    happened: Booleans

    def seen_adds(self, columns: TransactionColumns, read: int) -> list[int]:
        """Return the adds whose elements `read` returned."""
        adds = self.adds.get(int(columns.key[read]), {})
        return [adds[element] for element in self.seen[read] if element in adds]

    def missed_adds(self, columns: TransactionColumns, read: int) -> list[int]:
        """Return the adds to the same key whose elements `read` did not return."""
        seen = self.seen[read]
        return [add for element, add in self.adds.get(int(columns.key[read]), {}).items() if element not in seen]


def find_set_members(columns: TransactionColumns) -> SetMembers:
    """Sort the adds and reads by key. Raise UsageError for an element added twice and for a read of no list."""
    adds: dict[int, dict[Any, int]] = {}
    for micro in np.flatnonzero(~columns.is_read).tolist():
        _register_add(columns, adds.setdefault(int(columns.key[micro]), {}), micro)
    reads: dict[int, list[int]] = {}
    seen: dict[int, Counter[Any]] = {}
    for micro in np.flatnonzero(columns.is_read & (columns.outcome[columns.owner] == OK)).tolist():
        reads.setdefault(int(columns.key[micro]), []).append(micro)
        seen[micro] = _elements(columns, micro)
    happened = columns.outcome == OK
    for read, elements in seen.items():
        known = adds.get(int(columns.key[read]), {})
        happened[[int(columns.owner[known[element]]) for element in elements if element in known]] = True
    return SetMembers(adds, reads, seen, happened & (columns.outcome != FAIL))


def _register_add(columns: TransactionColumns, known: dict[Any, int], micro: int) -> None:
    element = hashable(columns.values[micro])
    row = int(columns.rows[columns.owner[micro]])
    if element in known:
        other = int(columns.rows[columns.owner[known[element]]])
        raise malformed_transaction(
            row,
            f"adds {str(element)[:80]} to {columns.keys[columns.key[micro]]!r}, which row {other} adds already: no "
            "read can tell which",
        )
    known[element] = micro


def _elements(columns: TransactionColumns, micro: int) -> Counter[Any]:
    value = columns.values[micro]
    if value is not None and not isinstance(value, list | tuple):
        key = columns.keys[columns.key[micro]]
        raise malformed_transaction(
            int(columns.rows[columns.owner[micro]]), f"read {str(value)[:80]!r} from {key!r}, which is no list"
        )
    return Counter(map(hashable, value or ()))
