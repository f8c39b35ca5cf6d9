"""A client that stays with one member of a store while that answers, and goes to the next one when it does not.

**Outcomes.** Two things are definite whatever the store: a connection that did not come about, since nothing was said
on it; and a read that failed, since a read changes nothing. Everything else that goes wrong after a request has been
handed to the network is `info`, unless the adapter's `outcomes` name its error as definite. So is everything, also a
read, that was answered with something the store does not say (`ForeignAnswer`): whoever answered, it proves nothing.
"""

from __future__ import annotations

import importlib
import select
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from faultline.harness.errors import UsageError
from faultline.harness.operation import Operation
from faultline.harness.outcome import NOT_CONNECTED, Outcome, OutcomeRegistry

__all__ = ["FOREIGN_ANSWER", "ForeignAnswer", "MemberClient", "client_library", "is_quiet"]

FOREIGN_ANSWER = "foreign-answer"
"""The error of an operation that was answered with something that is no answer of the store."""

Connection = TypeVar("Connection")


class ForeignAnswer(Exception):
    """What came is no answer of this store to this request: cut short, or somebody else's."""


def is_quiet(connection: socket.socket) -> bool:
    """Has nothing come over `connection`? What comes from a store that says nothing unasked is the end of it."""
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

    An adapter says how to `connect`, to `perform` one operation, to `hang_up`, and what an exception is called
    (`word_for`). `failures` are the exceptions that mean trouble with the store; all others are mistakes of the
    adapter and are reported as such. `outcomes` names the definite errors, NOT_CONNECTED among them.
    """

    outcomes: ClassVar[OutcomeRegistry]
    failures: ClassVar[tuple[type[Exception], ...]] = (OSError,)
    reads: ClassVar[frozenset[str]] = frozenset({"read"})
    """The functions that change nothing."""
    looks_further: ClassVar[bool] = False
    """Are the other members tried at once when one cannot be connected to? For stores of which only one will do."""

    def __init__(self, address_of: Callable[[str], str], members: Sequence[str], node: str) -> None:
        self._address_of = address_of
        self._members = tuple(members)
        self._node = self._members.index(node)
        self._connection: Connection | None = None

    @abstractmethod
    def connect(self, address: str) -> Connection:
        """A connection to the member at `address`, over which nothing has been asked yet."""

    @abstractmethod
    def perform(self, connection: Connection, operation: Operation, node: str) -> Outcome:
        """Perform `operation` through the member `node` and say what came of it."""

    @abstractmethod
    def hang_up(self, connection: Connection) -> None:
        """Close `connection`, whatever state it is in."""

    @abstractmethod
    def word_for(self, error: Exception) -> str:
        """One word for what went wrong, as the history shows it."""

    def invoke(self, operation: Operation) -> Outcome:
        """Perform `operation` and say what came of it; never raises for what the store or the network do."""
        try:
            connection = self._connected()
        except self.failures:
            return self._failed(operation, NOT_CONNECTED, self._members[self._node])
        node = self._members[self._node]
        try:
            return self.perform(connection, operation, node)
        except ForeignAnswer:
            self._leave()
            return self.outcomes.outcome(FOREIGN_ANSWER, node)
        except self.failures as error:
            return self._failed(operation, self.word_for(error), self.answering(connection, operation, node))

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection, as far as is known."""
        return self._connection is not None and self.is_open(self._connection)

    def connects(self) -> bool:
        """Connect, if that is not so already; after a failure the next member is the next to be tried."""
        try:
            self._connected()
        except self.failures:
            self._leave()
            return False
        return True

    def address_of_member(self, member: int) -> str:
        """Where the member of this number is, counted round and round."""
        return self._address_of(self._members[member % len(self._members)])

    def connect_to(self, member: int) -> Connection:
        """A connection to the member of this number, beside the one that operations go over."""
        return self.connect(self.address_of_member(member))

    def answering(self, connection: Connection, operation: Operation, node: str) -> str:
        """The member that answers `operation` over `connection`: where that is not the one which was connected to."""
        return node

    def close(self) -> None:
        """Hang up for good, and end whatever else the client keeps going."""
        self.disconnect()

    def disconnect(self) -> None:
        """Hang up; the next operation connects anew."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            self.hang_up(connection)

    def is_open(self, connection: Connection) -> bool:
        """Is `connection` still worth asking over? What is known to be broken is replaced before anything is said.

        A member that is killed while nothing is asked leaves a broken connection behind; see `is_quiet`.
        """
        return True

    def _connected(self) -> Connection:
        if self._connection is not None and not self.is_open(self._connection):
            self.disconnect()
        if self._connection is None:
            self._connection = self._connect_to_any() if self.looks_further else self.connect_to(self._node)
        return self._connection

    def _connect_to_any(self) -> Connection:
        """Raises what the last member did when all have been tried."""
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
            return Outcome("fail", None, error, node)
        return self.outcomes.outcome(error, node)
