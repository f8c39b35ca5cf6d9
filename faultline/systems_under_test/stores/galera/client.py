"""A client of one Galera cluster over PyMySQL, and the meaning of each of its failures.

An object is a row, its value JSON; the elements of a set are rows of another table. Operations on one object are single
statements; transactions run the same programs of reads and writes as `transactional-kv` does.

**Outcomes.** Definite are: no connection, or none to a member that belongs to the primary component (`not-connected`,
`not-ready`: error 1047, which comes before any statement is executed); `deadlock` (1213), after several attempts:
InnoDB gives it for locks and Galera for a transaction that did not pass certification, and both have rolled all of it
back; any failure in a transaction before its COMMIT was sent (`not-committed`); a comparison that did not hold, and an
account without enough in it; a read that failed. Every other failure is `info`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import pymysql
from pymysql.connections import Connection

from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH, NOT_CONNECTED, Outcome, OutcomeRegistry, ok
from faultline.systems_under_test.patterns.data_partitioning.transaction_client import Read, Refused, Write
from faultline.systems_under_test.reference.transactions.programs import (
    INSUFFICIENT_BALANCE,
    carry_out,
    program_of,
)
from faultline.systems_under_test.stores.client import ForeignAnswer, MemberClient, is_quiet
from faultline.systems_under_test.stores.conditions import steps_on_table

__all__ = ["FUNCTIONS", "USER", "GaleraClient", "GaleraSession", "NothingCommitted", "open_session", "outcomes"]

CLIENT_PORT = 3306
USER = "faultline"
_DEADLOCK = 1213
_NOT_READY = 1047
_NAMES = {_DEADLOCK: "deadlock", _NOT_READY: "not-ready", 2013: "connection-lost", 2006: "connection-lost"}
_NOT_COMMITTED = "not-committed"
outcomes = OutcomeRegistry(
    [NOT_CONNECTED, CAS_MISMATCH, INSUFFICIENT_BALANCE, _NOT_COMMITTED, _NAMES[_DEADLOCK], _NAMES[_NOT_READY]]
)
"""The errors after which a change certainly did not happen."""

_ATTEMPTS = 6
"""The attempts of a transaction that is rolled back because of others."""

_WRITE = "INSERT INTO objects VALUES (%s, %s) ON DUPLICATE KEY UPDATE content = VALUES(content)"
_RECORD = "INSERT INTO records VALUES (%s, %s, %s) ON DUPLICATE KEY UPDATE value = VALUES(value)"
_APPEND = """
    INSERT INTO objects VALUES (%s, JSON_ARRAY(%s))
    ON DUPLICATE KEY UPDATE content = JSON_ARRAY_APPEND(content, '$', %s)"""
_REPLACE = "UPDATE objects SET content = %s WHERE name = %s AND content = %s"


class NothingCommitted(pymysql.MySQLError):  # type: ignore[misc]  # PyMySQL has no types
    """A transaction went wrong before it was asked to commit."""


class GaleraSession:
    """One connection: rows out, changes in."""

    def __init__(self, connection: Connection[Any]) -> None:
        self.connection = connection

    def is_open(self) -> bool:
        """Return whether MariaDB has not hung up: it sends nothing but answers."""
        wire = self.connection._sock
        return wire is not None and is_quiet(wire)

    def rows(self, statement: str, *values: Any) -> Sequence[Any]:
        """Return the rows that `statement` answers."""
        with self.connection.cursor() as cursor:
            cursor.execute(statement, values)
            found: Sequence[Any] = cursor.fetchall()
        return found

    def changes(self, statement: str, *values: Any) -> int:
        """Return how many rows `statement` changed.

        Raises ForeignAnswer for an answer with rows, which no change gets.
        """
        with self.connection.cursor() as cursor:
            changed = int(cursor.execute(statement, values))
            if cursor.description is not None:
                raise ForeignAnswer("a change was answered with rows")
        return changed


def open_session(address: str, timeout_s: float, settings: Mapping[str, str], password: str = "") -> GaleraSession:
    """Return a session with the member at `address`, with these session variables.

    Raises OSError or pymysql.MySQLError.
    """
    session = GaleraSession(
        pymysql.connect(
            host=address,
            port=CLIENT_PORT,
            user=USER,
            password=password,
            connect_timeout=max(1, round(timeout_s)),
            read_timeout=timeout_s,
            write_timeout=timeout_s,
            autocommit=True,
        )
    )
    for name, value in settings.items():
        session.changes(f"SET SESSION {name} = {value}")
    return session


class GaleraClient(MemberClient[GaleraSession]):
    """One client process, whose sessions have these `settings`."""

    outcomes = outcomes
    failures = (OSError, pymysql.MySQLError)
    reads = frozenset({"read", "balances", "bookings"})

    def __init__(
        self,
        address_of: Callable[[str], str],
        members: Sequence[str],
        node: str,
        *,
        settings: Mapping[str, str],
        timeout_s: float,
        password: str = "",
    ) -> None:
        super().__init__(address_of, members, node)
        self._password = password
        self._settings = settings
        self._timeout_s = timeout_s

    def connect(self, address: str) -> GaleraSession:
        """Return a session with the member at `address`; one that is not ready refuses to be used."""
        session = open_session(address, self._timeout_s, self._settings, self._password)
        try:
            session.changes("USE faultline")
        except self.failures:
            self.hang_up(session)
            raise
        return session

    def is_open(self, connection: GaleraSession) -> bool:
        """Return whether the member has not hung up."""
        return connection.is_open()

    def hang_up(self, connection: GaleraSession) -> None:
        """Close the connection without a farewell: the member may be stopped."""
        connection.connection._force_close()

    def perform(self, connection: GaleraSession, operation: Operation, node: str) -> Outcome:
        """Perform `operation`, and try again after conflicts with others."""
        for _ in range(_ATTEMPTS):
            try:
                if operation.key is None or operation.f not in _STATEMENTS:
                    return ok(_transact(connection, operation), node)
                return ok(_STATEMENTS[operation.f](connection, operation), node)
            except Refused as refusal:
                return outcomes.outcome(refusal.code, node)
            except pymysql.MySQLError as error:
                # Only this error says that all of the transaction was rolled back, so that it may be tried again.
                if _number_of(error) != _DEADLOCK:
                    raise
        return outcomes.outcome(_NAMES[_DEADLOCK], node)

    def word_for(self, error: Exception) -> str:
        """Return `not-committed`, `timeout`, a name for MariaDB's number of the error, or that number."""
        if isinstance(error, NothingCommitted):
            return _NOT_COMMITTED
        if isinstance(error, TimeoutError) or "timed out" in str(error):
            return "timeout"
        number = _number_of(error)
        return _NAMES.get(number, f"error-{number}") if number else "connection-lost"


def _number_of(error: BaseException) -> int:
    """Return MariaDB's number of the error, 0 without."""
    number = error.args[0] if error.args else 0
    return number if isinstance(error, pymysql.MySQLError) and isinstance(number, int) else 0


def _read(session: GaleraSession, operation: Operation) -> Any:
    found = session.rows("SELECT content FROM objects WHERE name = %s", operation.key)
    if found:
        return msgspec.json.decode(found[0][0])
    elements = session.rows("SELECT element FROM elements WHERE name = %s ORDER BY element", operation.key)
    return [element for (element,) in elements] or None


def _write(session: GaleraSession, operation: Operation) -> Any:
    session.changes(_WRITE, operation.key, _encoded(operation.value))
    return operation.value


def _compare_and_set(session: GaleraSession, operation: Operation) -> Any:
    expected, new = operation.value
    if expected is None:
        changed = session.changes("INSERT IGNORE INTO objects VALUES (%s, %s)", operation.key, _encoded(new))
    else:
        changed = session.changes(_REPLACE, _encoded(new), operation.key, _encoded(expected))
    if not changed:
        raise Refused(CAS_MISMATCH)
    return operation.value


def _add(session: GaleraSession, operation: Operation) -> Any:
    session.changes("INSERT INTO elements VALUES (%s, %s)", operation.key, operation.value)
    return operation.value


def _append(session: GaleraSession, operation: Operation) -> Any:
    session.changes(_APPEND, operation.key, operation.value, operation.value)
    return operation.value


def _transact(session: GaleraSession, operation: Operation) -> object:
    """Make one attempt of a transaction of several statements."""
    answer = _until_commit(session, operation)
    session.changes("COMMIT")
    return answer


def _until_commit(session: GaleraSession, operation: Operation) -> object:
    try:
        session.changes("BEGIN")
        return _run(session, operation)
    except Refused:
        session.changes("ROLLBACK")
        raise
    except pymysql.MySQLError as error:
        if _number_of(error) == _DEADLOCK:
            raise
        # COMMIT was never sent, so MariaDB rolls the transaction back whatever happened to the connection.
        raise NothingCommitted(str(error)) from error


def _run(session: GaleraSession, operation: Operation) -> Any:
    if operation.f == "txn" and operation.key:
        return steps_on_table(session, operation.key, operation.value, _RECORD)
    program = program_of(operation)
    assert program is not None, f"{operation.f} is one of the system's functions, but has no program"

    def answer_of(step: Read | Write) -> Any:
        if isinstance(step, Write):
            session.changes(_WRITE, step.key, _encoded(step.value))
            return None
        found = session.rows("SELECT content FROM objects WHERE name = %s", step.key)
        return msgspec.json.decode(found[0][0]) if found else None

    return carry_out(program(), answer_of)


_STATEMENTS: Mapping[str, Callable[[GaleraSession, Operation], Any]] = {
    "read": _read,
    "write": _write,
    "cas": _compare_and_set,
    "add": _add,
    "append": _append,
}
FUNCTIONS = (*_STATEMENTS, "txn", "transfer", "balances", "book", "bookings")
"""The functions of a client; transfers are those between accounts that are objects of their own."""


def _encoded(value: Any) -> str:
    return msgspec.json.encode(value).decode()
