"""A client that stays with one member of a store while that answers, and goes to the next one when it does not.

**Outcomes.** Two outcomes are definite for every store: a connection that was not made, since no request was sent on
it; and a failed read, since a read changes nothing. Every other failure after a request has been handed to the network
is `info`, unless the adapter's `outcomes` name its error as definite. An answer that the store never gives
(`ForeignAnswer`) is `info` too, also for a read: it proves nothing about the store.
"""

from __future__ import annotations

import importlib
import select
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from faultline.harness.errors import UsageError
from faultline.harness.operation import Operation
from faultline.harness.outcome import NOT_CONNECTED, Outcome, OutcomeRegistry

__all__ = ["FOREIGN_ANSWER", "ForeignAnswer", "MemberClient", "client_library", "is_quiet"]

FOREIGN_ANSWER = "foreign-answer"
"""The error of an operation whose answer is not one that the store gives."""

Connection = TypeVar("Connection")


class ForeignAnswer(Exception):
    """The answer is not one of this store to this request: it is cut short, or from another sender."""


class _Polled(Protocol):
    """A connection that the operating system can be asked about: a socket, or an object around one."""

    def fileno(self) -> int: ...


def is_quiet(connection: _Polled) -> bool:
    """Return whether nothing has arrived over `connection`.

    A store that sends nothing unasked can only have sent the end of the connection.
    """
    if connection.fileno() < 0:
        return False
    arrivals = select.poll()
    arrivals.register(connection, select.POLLIN)
    return not arrivals.poll(0)


def client_library(module: str, *, extra: str) -> Any:
    """Return the Python module `module`, which the optional extra `extra` of this package installs.

    It is imported only when a run needs it. Raises UsageError, which says how to install it, when it is missing.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"The client library {error.name or module} is not installed where Faultline runs.",
            f"Run: pip install 'faultline[{extra}]'",
        ) from error


class MemberClient(ABC, Generic[Connection]):
    """One client process of a cluster with these `members`; `node` is the one it talks to first.

    An adapter implements `connect`, `perform` for one operation, `hang_up`, and `word_for`, which names an exception.
    `failures` are the exceptions that mean trouble with the store; all others are mistakes of the adapter and are
    reported as such. `outcomes` names the definite errors, NOT_CONNECTED among them.
    """

    outcomes: ClassVar[OutcomeRegistry]
    failures: ClassVar[tuple[type[Exception], ...]] = (OSError,)
    reads: ClassVar[frozenset[str]] = frozenset({"read"})
    """The functions that change nothing."""
    looks_further: ClassVar[bool] = False
    """True if the other members are tried at once when one cannot be reached: for stores with one serving member."""

    def __init__(self, address_of: Callable[[str], str], members: Sequence[str], node: str) -> None:
        self._address_of = address_of
        self._members = tuple(members)
        self._node = self._members.index(node)
        self._connection: Connection | None = None

    @abstractmethod
    def connect(self, address: str) -> Connection:
        """Return a connection to the member at `address`, over which nothing has been asked yet."""

    @abstractmethod
    def perform(self, connection: Connection, operation: Operation, node: str) -> Outcome:
        """Perform `operation` through the member `node`, and return its outcome."""

    @abstractmethod
    def hang_up(self, connection: Connection) -> None:
        """Close `connection`, in any state."""

    @abstractmethod
    def word_for(self, error: Exception) -> str:
        """Return one word for the failure, as the history shows it."""

    def invoke(self, operation: Operation) -> Outcome:
        """Perform `operation` and return its outcome; failures of the store or the network never raise."""
        try:
            connection = self._connected()
        except self.failures:
            # No request was sent, so the operation certainly did not happen.
            return self._failed(operation, NOT_CONNECTED, self._members[self._node])
        node = self._members[self._node]
        try:
            return self.perform(connection, operation, node)
        except ForeignAnswer:
            self._leave()
            # Not the answer to this request: whether the store got the request is unknown, and a read has read nothing.
            return self.outcomes.outcome(FOREIGN_ANSWER, node)
        except self.failures as error:
            return self._failed(operation, self.word_for(error), self.answering(connection, operation, node))

    @property
    def is_connected(self) -> bool:
        """True while there is a connection, as far as is known."""
        return self._connection is not None and self.is_open(self._connection)

    def connects(self) -> bool:
        """Connect, unless connected already, and return whether that worked.

        After a failure the next member is tried next.
        """
        try:
            self._connected()
        except self.failures:
            self._leave()
            return False
        return True

    def address_of_member(self, member: int) -> str:
        """Return the address of the member of this number, counted round and round."""
        return self._address_of(self._members[member % len(self._members)])

    def connect_to(self, member: int) -> Connection:
        """Return a connection to the member of this number, beside the one for operations."""
        return self.connect(self.address_of_member(member))

    def answering(self, connection: Connection, operation: Operation, node: str) -> str:
        """Return the member that answers `operation` over `connection`.

        Where that is not the one which was connected to.
        """
        return node

    def close(self) -> None:
        """Hang up for good, and end the client's threads."""
        self.disconnect()

    def disconnect(self) -> None:
        """Hang up; the next operation connects anew."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            self.hang_up(connection)

    def is_open(self, connection: Connection) -> bool:
        """Return whether `connection` can still be used; a broken one is replaced before a request is sent.

        A member that is killed between two requests leaves a broken connection behind, which `is_quiet` notices.
        """
        return True

    def _connected(self) -> Connection:
        if self._connection is not None and not self.is_open(self._connection):
            self.disconnect()
        if self._connection is None:
            self._connection = self._connect_to_any() if self.looks_further else self.connect_to(self._node)
        return self._connection

    def _connect_to_any(self) -> Connection:
        """Connect to the first member that can be reached; raise the failure of the last when all were tried."""
        for _ in self._members[1:]:
            try:
                return self.connect_to(self._node)
            except self.failures:
                self._node = (self._node + 1) % len(self._members)
        return self.connect_to(self._node)

    def _leave(self) -> None:
        """Hang up, and let the next operation try the next member."""
        self.disconnect()
        self._node = (self._node + 1) % len(self._members)

    def _failed(self, operation: Operation, error: str, node: str) -> Outcome:
        self._leave()
        if operation.f in self.reads:
            # A read changes nothing, so that it failed is definite whatever the error was.
            return Outcome("fail", None, error, node)
        return self.outcomes.outcome(error, node)
