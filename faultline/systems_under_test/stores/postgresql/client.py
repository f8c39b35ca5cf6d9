"""A client of one PostgreSQL cluster over psycopg, and the meaning of each of its failures.

**Outcomes.** These are definite, because PostgreSQL rolls the transaction back or never began it:

- no connection, or none to a primary (`not-connected`);
- `serialization-failure` (40001) and `deadlock-detected` (40P01), after several attempts: each was rolled back;
- `read-only-sql-transaction` (25006): the server had become a standby;
- any failure in a transaction before its COMMIT was sent, or a COMMIT that was answered with ROLLBACK
  (`not-committed`): without a COMMIT a transaction is rolled back;
- a comparison that did not hold, and an account without enough in it;
- a read that failed.

Every other failure is `info`: a lost connection or a time-out after a single statement or a COMMIT was sent, a server
that is shut down meanwhile (it may have committed before), and a COMMIT with the warning that no standby confirmed it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import psycopg
from psycopg.errors import DeadlockDetected, SerializationFailure

from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH, NOT_CONNECTED, Outcome, OutcomeRegistry, info, ok
from faultline.harness.system import StoreClient
from faultline.systems_under_test.patterns.data_partitioning.transaction_client import Refused
from faultline.systems_under_test.reference.transactions.programs import INSUFFICIENT_BALANCE, only_reads
from faultline.systems_under_test.stores.client import ForeignAnswer, MemberClient
from faultline.systems_under_test.stores.postgresql.session import Session, open_session
from faultline.systems_under_test.stores.postgresql.statements import STATEMENTS, run_transaction

__all__ = ["NotCommitted", "PostgresClient", "ReadsAnywhere", "outcomes"]

_NOT_COMMITTED = "not-committed"
_UNREPLICATED = "not-replicated"
outcomes = OutcomeRegistry(
    [
        NOT_CONNECTED,
        CAS_MISMATCH,
        INSUFFICIENT_BALANCE,
        _NOT_COMMITTED,
        "read-only-sql-transaction",
        "serialization-failure",
        "deadlock-detected",
    ]
)
"""The errors after which a change certainly did not happen."""

_ATTEMPTS = 6
"""The attempts of a transaction that PostgreSQL rolls back because of others."""


class NotCommitted(psycopg.Error):
    """A transaction went wrong before it was asked to commit."""


class PostgresClient(MemberClient[Session]):
    """One client process; with `primary_only`, a standby counts as no server."""

    outcomes = outcomes
    failures = (OSError, psycopg.Error)
    reads = frozenset({"read", "balances", "bookings"})
    looks_further = True

    def __init__(
        self,
        address_of: Callable[[str], str],
        members: Sequence[str],
        node: str,
        *,
        isolation: str,
        primary_only: bool,
        timeout_s: float,
        password: str = "",
    ) -> None:
        super().__init__(address_of, members, node)
        self._password = password
        self._isolation = isolation
        self._primary_only = primary_only
        self._timeout_s = timeout_s
        self._expired = False

    def connect(self, address: str) -> Session:
        """Return a session with the server at `address`.

        Raise ConnectionError for a standby where the client needs a primary.
        """
        session = open_session(address, self._timeout_s, self._password, self._isolation)
        try:
            with session.deadline(self._timeout_s):
                is_standby = session.rows("SELECT pg_is_in_recovery()")[0][0]
        except psycopg.Error:
            session.close()
            raise
        if is_standby and self._primary_only:
            session.close()
            raise ConnectionError("a standby")
        return session

    def is_open(self, connection: Session) -> bool:
        """Return whether the server has not hung up."""
        return connection.is_open()

    def hang_up(self, connection: Session) -> None:
        """Close the connection."""
        connection.close()

    def perform(self, connection: Session, operation: Operation, node: str) -> Outcome:
        """Perform `operation`, and try again after conflicts with others, all within the client's time."""
        with connection.deadline(self._timeout_s):
            try:
                outcome = _performed(connection, operation, node)
            finally:
                self._expired = connection.expired
        if connection.unreplicated:
            connection.unreplicated = False
            # Committed here, but on no standby: a fail-over may lose it, so it neither surely happened nor surely did
            # not.
            return info(_UNREPLICATED)
        return outcome

    def word_for(self, error: Exception) -> str:
        """Return `not-committed`, `timeout`, PostgreSQL's own name of the condition, or `connection-lost`."""
        if isinstance(error, NotCommitted):
            return _NOT_COMMITTED
        if self._expired:
            return "timeout"
        if isinstance(error, psycopg.Error) and error.sqlstate:
            return _name_of(error)
        return "connection-lost"


class ReadsAnywhere:
    """A client that sends changes to the primary, and reads to the member `node`, primary or not."""

    def __init__(self, changing: StoreClient, reading: StoreClient) -> None:
        self._changing = changing
        self._reading = reading

    def invoke(self, operation: Operation) -> Outcome:
        """Perform `operation` at the server for its kind."""
        reads = operation.f == "read" or only_reads(operation)
        return (self._reading if reads else self._changing).invoke(operation)

    def close(self) -> None:
        """Close both connections."""
        self._changing.close()
        self._reading.close()


def _name_of(error: psycopg.Error) -> str:
    """Return PostgreSQL's name of the condition, as psycopg spells it in the names of its classes."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", type(error).__name__).lower()


def _performed(session: Session, operation: Operation, node: str) -> Outcome:
    code = ""
    for _ in range(_ATTEMPTS):
        try:
            if operation.key in (None, "") or operation.f not in STATEMENTS:
                return ok(_transact(session, operation), node)
            return ok(STATEMENTS[operation.f](session, operation), node)
        except Refused as refusal:
            return outcomes.outcome(refusal.code, node)
        except (SerializationFailure, DeadlockDetected) as error:
            code = _name_of(error)
    return outcomes.outcome(code, node)


def _transact(session: Session, operation: Operation) -> object:
    """Make one attempt of a transaction of several statements."""
    answer = _until_commit(session, operation)
    tag = session.tag("COMMIT")
    if tag == "ROLLBACK":
        # A failed transaction stays open until its end, and PostgreSQL then rolls it back even on COMMIT.
        raise NotCommitted("COMMIT was answered with ROLLBACK")
    if tag != "COMMIT":
        raise ForeignAnswer(f"COMMIT was answered with {tag!r:.80}")
    return answer


def _until_commit(session: Session, operation: Operation) -> object:
    try:
        session.tag("BEGIN")
        return run_transaction(session, operation)
    except (Refused, SerializationFailure, DeadlockDetected):
        session.tag("ROLLBACK")
        raise
    except psycopg.Error as error:
        # COMMIT was never sent, so the transaction is rolled back whatever happened to the connection.
        raise NotCommitted(str(error)) from error
