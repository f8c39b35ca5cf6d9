"""The lease, or the entry with a timeout, that a lock depends on: the store ends it when its time is over.

It is refreshed over a connection of its own, as clients do it: stay with a member while that answers, and ask the next
one when it does not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

from faultline.systems_under_test.stores.client import MemberClient

__all__ = ["TimedHook"]

Connection = TypeVar("Connection")


class TimedHook(ABC, Generic[Connection]):
    """The `Hook` of one lock of `client`; `connect` connects to the member of a number, counted round and round."""

    def __init__(
        self, client: MemberClient[Connection], connect: Callable[[int], Connection], first_member: int
    ) -> None:
        self._client = client
        self._connect = connect
        self._member = first_member
        self._connection: Connection | None = None

    @abstractmethod
    def prolong(self, connection: Connection) -> bool:
        """Begin its time anew; return False when it is over. Raises one of the client's `failures`."""

    def refresh(self) -> bool:
        """Let the lock live on; after a failure the next member is asked."""
        try:
            if self._connection is None:
                self._connection = self._connect(self._member)
            return self.prolong(self._connection)
        except self._client.failures as error:
            self._member += 1
            self.rest()
            raise OSError(f"not refreshed: {error!r}") from error

    def rest(self) -> None:
        """Close the connection for refreshes."""
        if self._connection is not None:
            self._client.hang_up(self._connection)
        self._connection = None

    def holds(self) -> bool:
        """Return True: the time runs without a connection."""
        return True

    def let_go(self) -> None:
        """Do nothing: its time runs out."""
