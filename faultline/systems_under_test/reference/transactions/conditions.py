"""Transactions on a table of a store that has keys alone: each row is a key, and one more holds the names of the rows.

    ["insert", NAME, VALUE], ["w", NAME, VALUE]   give the row this value, and note its name if it is new
    ["delete", NAME]                              take its name away
    ["rp", CONDITION, null]                       read the names, then each of the rows; answers those that meet it

The key of the names is what keeps phantoms away: who inserts or deletes a row writes it, and who selects reads it. This
is how an application on a key-value store does without predicate locks (Eswaran et al., "The Notions of Consistency and
Predicate Locks in a Database System", 1976).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from faultline.harness.selection import meets
from faultline.systems_under_test.patterns.data_partitioning.transaction_client import Program, Read, Write

__all__ = ["steps_on_table"]


def steps_on_table(table: str, steps: Sequence[Sequence[Any]]) -> Program:
    """Carry out the steps on the rows of `table`, in order, and answer them with the selected rows filled in."""
    done: list[list[Any]] = []
    for kind, what, *rest in steps:
        if kind == "rp":
            done.append([kind, what, (yield from _selected(table, what))])
            continue
        if kind != "delete":
            yield Write(_row(table, what), rest[0])
        yield from _noted(table, what, exists=kind != "delete")
        done.append([kind, what, *rest])
    return done


def _selected(table: str, condition: Any) -> Program:
    found = {}
    for name in (yield Read(table)) or ():
        value = yield Read(_row(table, name))
        if meets(condition, value):
            found[name] = value
    return found


def _noted(table: str, name: str, *, exists: bool) -> Program:
    names = (yield Read(table)) or []
    if (name in names) is not exists:
        yield Write(table, [*names, name] if exists else [each for each in names if each != name])


def _row(table: str, name: str) -> str:
    return f"{table}/{name}"
