"""The closed universe of versions that conditions select from, and the partial order of the versions (Elle).

Closed means that every version an object can have had is known: the initial one (given, or absent) and those that the
transactions wrote, each value to a key once. The last write of a transaction to a key is the version that others may
see.

The order of versions has two sources: the initial version precedes all others, and the write of a transaction follows
the version that it had seen of the same object (*writes follow reads*). A key whose versions would be in a circle keeps
only the first source.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from faultline.checkers.common.words import hashable
from faultline.checkers.transactions.columns import FAIL, TransactionColumns, malformed_transaction
from faultline.checkers.transactions.observations import Observations, shown

__all__ = ["INITIAL", "KeyOrder", "Universe", "find_universe", "order_key"]

INITIAL = -1
"""The version that an object had at first; all others are known by the micro-operation that wrote them."""


@dataclass(frozen=True, slots=True)
class Universe:
    """By key: `by_value` finds the version of a value, `visible` are the versions that others may see.

    `last_write` is the last write of a transaction to a key. `tables` has the keys of each table.
    """

    columns: TransactionColumns
    initial: Mapping[str, Any]
    by_value: dict[str, dict[Any, int]]
    visible: dict[str, list[int]]
    last_write: dict[tuple[int, str], int]
    tables: dict[str, list[str]]

    def value(self, key: str, version: int) -> Any:
        """Return the value of a version, null for an object that does not exist."""
        return self.initial.get(key) if version == INITIAL else self.columns.values[version]

    def owner(self, version: int) -> int:
        """Return the transaction that wrote a version, -1 for the initial one."""
        return -1 if version == INITIAL else int(self.columns.owner[version])


def find_universe(columns: TransactionColumns, initial: Mapping[str, Any], table_of: Mapping[str, str]) -> Universe:
    """Return all versions. Raise UsageError for a value that is written twice to a key."""
    by_value = {key: {hashable(value): INITIAL} for key, value in initial.items() if value is not None}
    visible = {key: [INITIAL] for key in initial}
    last_write: dict[tuple[int, str], int] = {}
    for micro in np.flatnonzero(~columns.is_read).tolist():
        key, value = columns.keys[columns.key[micro]], hashable(columns.values[micro])
        known = by_value.setdefault(key, {})
        if value is not None:
            if value in known:
                raise _written_twice(columns, micro, key)
            known[value] = micro
        visible.setdefault(key, [INITIAL])
        last_write[int(columns.owner[micro]), key] = micro
    for (transaction, key), micro in last_write.items():
        if columns.outcome[transaction] != FAIL:
            visible[key].append(micro)
    tables: dict[str, list[str]] = {}
    for key in visible:
        tables.setdefault(table_of.get(key, ""), []).append(key)
    return Universe(columns, initial, by_value, visible, last_write, tables)


def _written_twice(columns: TransactionColumns, micro: int, key: str) -> Exception:
    return malformed_transaction(
        int(columns.rows[columns.owner[micro]]),
        f"writes {shown(columns.values[micro])!r} to {key!r}, a value that it was given already: no read can tell",
    )


@dataclass(frozen=True, slots=True)
class KeyOrder:
    """The known order of one key's versions: `next` has the pairs as learnt, `after` all versions that follow."""

    next: dict[int, set[int]]
    after: dict[int, set[int]]


def order_key(universe: Universe, key: str, seen_before: Iterable[tuple[int, int]], found: Observations) -> KeyOrder:
    """Return the order of `key`, given pairs of a version and one that was written by a transaction that had seen
    it."""
    versions = universe.visible[key]
    first = {INITIAL: {version for version in versions if version != INITIAL}}
    following = {**first, **{version: set() for version in versions if version != INITIAL}}
    for earlier, later in seen_before:
        if later in following and earlier in following and earlier != INITIAL:
            following[earlier].add(later)
    after = {version: _reachable(following, version) for version in following}
    circle = [version for version in versions if version in after[version]]
    if not circle:
        return KeyOrder(following, after)
    values = ", ".join(shown(universe.value(key, version)) for version in circle[:8])
    found.add(
        "cyclic-versions",
        [universe.owner(version) for version in circle[:16]],
        f"The values {values} of {key} have no order: transactions saw one and wrote another of them in a circle.",
        key,
    )
    return KeyOrder(first, first)


def _reachable(following: dict[int, set[int]], version: int) -> set[int]:
    reached: set[int] = set()
    waiting = [version]
    while waiting:
        fresh = following[waiting.pop()] - reached
        reached |= fresh
        waiting += fresh
    return reached
