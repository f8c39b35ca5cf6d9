"""Transactions on tables in SQL: rows are inserted, changed, deleted, and selected by a condition.

All tables of a run are one of the store's, `records`, in which the first column tells them apart. A change of a row is
an UPDATE, and an INSERT only where there was no row: an insert alone would not meet a row that another transaction
deleted after this one began, so that snapshots would not collide over it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

__all__ = ["RECORDS", "SqlSession", "steps_on_table"]

RECORDS = "(collection VARCHAR(40), name VARCHAR(40), value BIGINT NOT NULL, PRIMARY KEY (collection, name))"
"""The columns of `records`."""

_SELECT = "SELECT name, value FROM records WHERE collection = %s"
_UPDATE = "UPDATE records SET value = %s WHERE collection = %s AND name = %s"
_DELETE = "DELETE FROM records WHERE collection = %s AND name = %s"


class SqlSession(Protocol):
    """A connection in an open transaction."""

    def rows(self, statement: str, *values: Any) -> Sequence[Any]:
        """Return the rows that `statement` answers."""

    def changes(self, statement: str, *values: Any) -> int:
        """Return how many rows `statement` changed."""


def steps_on_table(session: SqlSession, table: str, steps: Sequence[Sequence[Any]], insert: str) -> list[list[Any]]:
    """Carry out the steps on the rows of `table`, in order, and answer them with the selected rows filled in.

    `insert` is the store's statement that gives a row a value, whether it exists or not.
    """
    done: list[list[Any]] = []
    for step in steps:
        match step:
            case ["rp", condition, _]:
                where, operands = _where(condition)
                found = session.rows(_SELECT + where, table, *operands)
                done.append(["rp", condition, {str(name): int(value) for name, value in found}])
                continue
            case ["delete", name]:
                session.changes(_DELETE, table, name)
            case [kind, name, value]:
                if kind == "insert" or not session.changes(_UPDATE, value, table, name):
                    session.changes(insert, table, name, value)
        done.append(list(step))
    return done


def _where(condition: Any) -> tuple[str, tuple[int, ...]]:
    """Return the condition as the rest of a WHERE clause, and the values of its placeholders."""
    match condition:
        case "true":
            return "", ()
        case ["=", value]:
            return " AND value = %s", (value,)
        case [">", bound]:
            return " AND value > %s", (bound,)
        case ["mod", modulus, remainder]:
            return " AND mod(value, %s) = %s", (modulus, remainder)
    raise AssertionError(f"no workload asks for {condition!r}")
