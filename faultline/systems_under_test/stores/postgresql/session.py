"""A connection to one PostgreSQL server that ends when its time is over, and that notices commits in doubt.

psycopg waits for an answer as long as it takes, and a server that is stopped never gives one. So a *deadline* shuts the
connection's socket down, and psycopg then meets its end.

PostgreSQL answers COMMIT also when it gave up waiting for its synchronous standby. The transaction is then on one
server only, and the client gets just a warning ("canceling wait for synchronous replication"). A session hears such
warnings, since these transactions do not have the promise of a synchronous cluster.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
import psycopg
from psycopg.types.json import set_json_dumps

from faultline.systems_under_test.stores.client import ForeignAnswer, is_quiet

__all__ = ["PORT", "Session", "ask", "open_session"]

PORT = 5432
_CONNECT_TIMEOUT_S = 2
"""libpq takes no less."""
_UNREPLICATED = "canceling wait for synchronous replication"

set_json_dumps(msgspec.json.encode)


class Session:
    """One connection; `expired` tells whether a deadline ended it, `unreplicated` whether a commit was in doubt."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self.expired = False
        self.unreplicated = False
        connection.add_notice_handler(self._hear)

    def is_open(self) -> bool:
        """Return whether PostgreSQL has not hung up.

        It may send a notice unasked, too; a session that is replaced for that has lost nothing, as none is in the
        middle of a transaction here.
        """
        with suppress(psycopg.Error):
            return not self.connection.closed and is_quiet(self.connection)
        return False

    def rows(self, statement: str, *values: Any) -> list[Any]:
        """Return the rows that `statement` answers."""
        return self.connection.execute(statement, values).fetchall()

    def changes(self, statement: str, *values: Any) -> int:
        """Return how many rows `statement` changed. Raises ForeignAnswer when the answer is not that of a change."""
        cursor = self.connection.execute(statement, values)
        tag = cursor.statusmessage or ""
        if not tag.startswith(("INSERT ", "UPDATE ", "DELETE ")) or cursor.rowcount < 0:
            raise ForeignAnswer(f"a change was answered with {tag!r:.80}")
        return cursor.rowcount

    def tag(self, command: str) -> str:
        """Return PostgreSQL's answer to `command`: to COMMIT it may answer ROLLBACK."""
        return self.connection.execute(command).statusmessage or ""

    @contextmanager
    def deadline(self, timeout_s: float) -> Iterator[None]:
        """End the connection if the work inside takes longer than `timeout_s`."""
        timer = threading.Timer(timeout_s, self._expire)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def close(self) -> None:
        """Close the connection."""
        with suppress(psycopg.Error, OSError):
            self.connection.close()

    def _expire(self) -> None:
        self.expired = True
        with suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(self.connection.fileno())) as shared:
            # psycopg has no time limit on answers: a shut-down socket is the only way to wake it while it waits.
            shared.shutdown(socket.SHUT_RDWR)

    def _hear(self, notice: psycopg.errors.Diagnostic) -> None:
        self.unreplicated |= _UNREPLICATED in (notice.message_primary or "")


def open_session(address: str, timeout_s: float, password: str, isolation: str = "read committed") -> Session:
    """Return a session with the server at `address`. Raises OSError or psycopg.Error."""
    # libpq would wait two seconds for a host that does not answer.
    socket.create_connection((address, PORT), timeout_s).close()
    level = isolation.replace(" ", "\\ ")
    return Session(
        psycopg.connect(
            host=address,
            port=PORT,
            user="postgres",
            password=password,
            dbname="postgres",
            connect_timeout=_CONNECT_TIMEOUT_S,
            autocommit=True,
            options=f"-c default_transaction_isolation={level}",
        )
    )


def ask(address: str, timeout_s: float, statements: Sequence[str], password: str) -> list[Any]:
    """Return the first row of the last of `statements` to the server at `address`. Raises OSError."""
    try:
        session = open_session(address, timeout_s, password)
        try:
            with session.deadline(timeout_s):
                *before, last = statements
                for statement in before:
                    session.tag(statement)
                found = session.rows(last)
        finally:
            session.close()
    except psycopg.Error as error:
        raise OSError(" / ".join(str(error).split("\n"))) from error
    return list(found[0])
