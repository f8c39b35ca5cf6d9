"""The workloads' operations in SQL: single statements where one suffices, else transactions of several.

An object is a row of `objects`, its value JSON; the elements of a set are rows of `elements`; identifiers come from a
sequence. Operations on one object are single statements, which PostgreSQL makes atomic at any isolation level.
Transactions run the same programs of reads and writes as `transactional-kv` does, statement by statement, so that it
is the isolation level alone that keeps them apart. Those on a table select its rows by a condition (`conditions`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from psycopg.types.json import Jsonb

from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH
from faultline.systems_under_test.patterns.data_partitioning.transaction_client import Read, Refused, Write
from faultline.systems_under_test.reference.transactions.programs import (
    INSUFFICIENT_BALANCE,
    carry_out,
    program_of,
)
from faultline.systems_under_test.stores.conditions import RECORDS, steps_on_table
from faultline.systems_under_test.stores.postgresql.session import Session

__all__ = ["STATEMENTS", "TABLES", "run_transaction"]

TABLES = (
    "CREATE TABLE IF NOT EXISTS objects (key text PRIMARY KEY, value jsonb)",
    "CREATE TABLE IF NOT EXISTS elements (key text, element bigint, PRIMARY KEY (key, element))",
    "CREATE SEQUENCE IF NOT EXISTS ids",
    f"CREATE TABLE IF NOT EXISTS records {RECORDS}",
)
"""The tables that `provision` makes."""

_READ = """
    SELECT coalesce((SELECT value FROM objects WHERE key = %s),
                    (SELECT jsonb_agg(element ORDER BY element) FROM elements WHERE key = %s))"""
_READ_OBJECT = "SELECT value FROM objects WHERE key = %s"
_WRITE = "INSERT INTO objects VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
_INSERT = "INSERT INTO objects VALUES (%s, %s) ON CONFLICT (key) DO NOTHING"
_REPLACE = "UPDATE objects SET value = %s WHERE key = %s AND value = %s"
_APPEND = "INSERT INTO objects VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = objects.value || excluded.value"
_INCREMENT = """
    INSERT INTO objects VALUES (%s, %s)
    ON CONFLICT (key) DO UPDATE SET value = to_jsonb(objects.value::bigint + excluded.value::bigint) RETURNING value"""
_RECORD = "INSERT INTO records VALUES (%s, %s, %s) ON CONFLICT (collection, name) DO UPDATE SET value = excluded.value"
_MOVE = """
    UPDATE objects SET value = value || jsonb_build_object(
        %s::text, (value->>%s)::bigint - %s, %s::text, (value->>%s)::bigint + %s)
    WHERE key = %s AND (value->>%s)::bigint >= %s"""


def _read(session: Session, operation: Operation) -> Any:
    return session.rows(_READ, operation.key, operation.key)[0][0]


def _write(session: Session, operation: Operation) -> Any:
    session.changes(_WRITE, operation.key, Jsonb(operation.value))
    return operation.value


def _compare_and_set(session: Session, operation: Operation) -> Any:
    expected, new = operation.value
    if expected is None:
        changed = session.changes(_INSERT, operation.key, Jsonb(new))
    else:
        changed = session.changes(_REPLACE, Jsonb(new), operation.key, Jsonb(expected))
    if not changed:
        raise Refused(CAS_MISMATCH)
    return operation.value


def _add(session: Session, operation: Operation) -> Any:
    session.changes("INSERT INTO elements VALUES (%s, %s)", operation.key, operation.value)
    return operation.value


def _append(session: Session, operation: Operation) -> Any:
    session.changes(_APPEND, operation.key, Jsonb([operation.value]))
    return operation.value


def _increment(session: Session, operation: Operation) -> Any:
    amount = 1 if operation.value is None else operation.value
    return session.rows(_INCREMENT, operation.key, Jsonb(amount))[0][0]


def _generate(session: Session, _operation: Operation) -> int:
    return int(session.rows("SELECT nextval('ids')")[0][0])


def _transfer(session: Session, operation: Operation) -> None:
    """Transfer between the accounts of one object; refused also when the object does not exist yet."""
    source, target, amount = (operation.value[name] for name in ("from", "to", "amount"))
    values = (source, source, amount, target, target, amount, operation.key, source, amount)
    if not session.changes(_MOVE, *values):
        raise Refused(INSUFFICIENT_BALANCE)


STATEMENTS: Mapping[str, Callable[[Session, Operation], Any]] = {
    "read": _read,
    "write": _write,
    "cas": _compare_and_set,
    "add": _add,
    "append": _append,
    "increment": _increment,
    "generate": _generate,
    "transfer": _transfer,
}
"""The operations on one object."""


def run_transaction(session: Session, operation: Operation) -> Any:
    """Carry out the statements of `operation` within the open transaction, and return its answer."""
    if operation.f == "txn" and operation.key:
        return steps_on_table(session, operation.key, operation.value, _RECORD)
    program = program_of(operation)
    assert program is not None, f"{operation.f} is one of the system's functions, but has no program"

    def answer_of(step: Read | Write) -> Any:
        if isinstance(step, Write):
            session.changes(_WRITE, step.key, Jsonb(step.value))
            return None
        found = session.rows(_READ_OBJECT, step.key)
        return found[0][0] if found else None

    return carry_out(program(), answer_of)
