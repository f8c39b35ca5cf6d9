"""Anomalies of grow-only sets that need no cycle.

Within one transaction a set is known exactly after its first read: later reads return the same elements and what the
transaction added in between (`internal`). The first read must hold at least what the transaction had added itself.
"""

from __future__ import annotations

from typing import Any

from faultline.checkers.common.words import hashable
from faultline.checkers.transactions.columns import FAIL, TransactionColumns
from faultline.checkers.transactions.observations import Observations, shown
from faultline.checkers.transactions.set_members import SetMembers

__all__ = ["set_anomalies"]


def set_anomalies(columns: TransactionColumns, members: SetMembers) -> Observations:
    """Return all anomalies of sets, with examples."""
    found = Observations(columns)
    for key, reads in members.reads.items():
        for read in reads:
            _elements(columns, members, key, read, found)
            _intermediate(columns, members, read, found)
    _internal(columns, members, found)
    return found


def _elements(columns: TransactionColumns, members: SetMembers, key: int, read: int, found: Observations) -> None:
    """Report elements that no transaction added, that a failed one added, and that were returned more than once."""
    reader, name, adds = int(columns.owner[read]), columns.keys[key], members.adds.get(key, {})
    for element, count in members.seen[read].items():
        if count > 1:
            found.add(
                "duplicate-elements",
                [reader],
                f"{found.name(reader).capitalize()} read {shown(columns.values[read])} from {name}, where "
                f"{shown(element)} is {count} times although it was added once.",
                name,
            )
        if element not in adds:
            found.add(
                "garbage-read",
                [reader],
                f"{found.name(reader).capitalize()} read {shown(element)} in {name}, which no transaction had added.",
                name,
            )
        elif columns.outcome[columns.owner[adds[element]]] == FAIL:
            adder = int(columns.owner[adds[element]])
            found.add(
                "G1a",
                [adder, reader],
                f"{found.name(adder).capitalize()} failed, yet {found.name(reader)} read {shown(element)}, which it "
                f"had meant to add to {name}.",
                name,
            )


def _intermediate(columns: TransactionColumns, members: SetMembers, read: int, found: Observations) -> None:
    """Report reads with one element of another transaction, and without a later one that it added to the same key."""
    reader = int(columns.owner[read])
    first_seen: dict[int, int] = {}
    for add in members.seen_adds(columns, read):
        adder = int(columns.owner[add])
        first_seen[adder] = min(add, first_seen.get(adder, add))
    for add in members.missed_adds(columns, read):
        adder = int(columns.owner[add])
        if adder != reader and first_seen.pop(adder, add) < add:
            key = columns.keys[columns.key[read]]
            found.add(
                "G1b",
                [adder, reader],
                f"{found.name(reader).capitalize()} read {key} without {shown(columns.values[add])}, which "
                f"{found.name(adder)} added after another element that was seen: no read may see half a "
                "transaction.",
                key,
            )


def _internal(columns: TransactionColumns, members: SetMembers, found: Observations) -> None:
    known: dict[tuple[int, int], set[Any]] = {}
    complete: set[tuple[int, int]] = set()
    for micro, (transaction, key) in enumerate(zip(columns.owner.tolist(), columns.key.tolist(), strict=True)):
        place = (transaction, key)
        expected = known.setdefault(place, set())
        if not columns.is_read[micro]:
            expected.add(hashable(columns.values[micro]))
            continue
        if micro not in members.seen:
            continue
        seen = set(members.seen[micro])
        if not expected <= seen or (place in complete and seen != expected):
            _disagreement(columns, micro, expected, place in complete, found)
        _future(columns, members, micro, found)
        known[place] = seen
        complete.add(place)


def _disagreement(
    columns: TransactionColumns, read: int, expected: set[Any], complete: bool, found: Observations
) -> None:
    transaction, key = int(columns.owner[read]), columns.keys[columns.key[read]]
    found.add(
        "internal",
        [transaction],
        f"{found.name(transaction).capitalize()} read {shown(columns.values[read])} from {key}, but by its own earlier "
        f"steps the set {'was' if complete else 'held'} {shown(sorted(expected, key=str))}.",
        key,
    )


def _future(columns: TransactionColumns, members: SetMembers, read: int, found: Observations) -> None:
    transaction = int(columns.owner[read])
    own = [add for add in members.seen_adds(columns, read) if columns.owner[add] == transaction and add > read]
    for add in own[:1]:
        key = columns.keys[columns.key[read]]
        found.add(
            "future-read",
            [transaction],
            f"{found.name(transaction).capitalize()} read {shown(columns.values[add])} in {key} before it added it "
            "itself.",
            key,
        )
