"""A session for one lock, which can crash: its connection breaks and is never made again, and ZooKeeper is not told.

A session that is closed takes its ephemeral nodes along at once. An owner that crashed does not close its session; the
session ends when it was not heard of for its time-out, as the leader counts it. kazoo would connect again by itself, so
the connections of such a session are made here, where they can be refused.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, SessionExpiredError
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler

__all__ = ["LockSession"]


class LockSession:
    """A session through the member at `address`, open after `open`; the lock at `path` depends on it.

    `session_s` is its time-out, `timeout_s` the longest wait for one answer.
    """

    def __init__(self, address: str, path: str, session_s: float, timeout_s: float) -> None:
        self.path = path
        self._timeout_s = timeout_s
        self._has_crashed = False
        self._has_ended = False
        self._connection: Any = None
        self._token = 0
        self._number = 0
        handler = SequentialThreadingHandler()
        self._connect = handler.create_connection
        handler.create_connection = self._create_connection
        self._session = KazooClient(hosts=address, timeout=session_s, handler=handler)

    def open(self) -> None:
        """Begin the session. Raises OSError when it is not made in time."""
        if not self._session.start_async().wait(self._timeout_s):
            raise ConnectionError("no session")

    def acquire(self) -> int:
        """Make the lock's node, and return its `czxid` as the token.

        Raises kazoo's errors, NodeExistsError if it is taken.
        """
        made = self._session.create_async(self.path, ephemeral=True, include_data=True)
        _, stat = made.get(timeout=self._timeout_s)
        self._number = self._session.client_id[0]
        self._token = stat.czxid
        return int(stat.czxid)

    def release(self) -> None:
        """Delete the lock's node, which is this session's: while it lives, no other session can make one."""
        self._session.delete_async(self.path).get(timeout=self._timeout_s)

    def refresh(self) -> bool:
        """Show that the owner lives, and check that the node is still the same one.

        Raises OSError without an answer.
        """
        try:
            stat = self._session.exists_async(self.path).get(timeout=self._timeout_s)
        except SessionExpiredError:
            return False
        except (KazooException, KazooTimeoutError) as error:
            raise OSError(f"not refreshed: {error!r}") from error
        return stat is not None and stat.czxid == self._token

    def rest(self) -> None:
        """Do nothing: `let_go` or `end` ends the session."""

    def holds(self) -> bool:
        """Return whether it is connected, and still the same session: kazoo begins another when one has expired."""
        return bool(self._session.connected) and self._session.client_id[0] == self._number

    def let_go(self) -> None:
        """Crash, unless it has ended in good order."""
        if self._has_ended:
            return
        self._has_crashed = True
        if self._connection is not None:
            with suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)
        self.end()

    def end(self) -> None:
        """End the session, and tell ZooKeeper so unless it has crashed; in a thread, as kazoo waits for an answer."""
        self._has_ended = True
        threading.Thread(target=_stop, args=(self._session,), daemon=True).start()

    def _create_connection(self, *arguments: Any, **keywords: Any) -> Any:
        if self._has_crashed:
            raise ConnectionRefusedError("the owner of this session has crashed")
        self._connection = self._connect(*arguments, **keywords)
        return self._connection


def _stop(session: KazooClient) -> None:
    # kazoo raises a variety of errors when the connection is broken already; there is no more to do then.
    with suppress(Exception):
        session.stop()
        session.close()
