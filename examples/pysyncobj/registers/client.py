"""A client of the store, with the outcome of each of its failures.

**Outcomes.** An error is *definite* when the operation certainly did not happen and never will. Three of PySyncObj's
refusals are: a member that has no room for a command, or knows no leader for it, or is denied it, has not put it into
any log. All others are `info`, the default. `leader-changed` and `not-leader` mean that a command went to a member that
is not the leader any more; another leader may still commit it. The same holds after `timeout`, and after a connection
that broke once the request was sent."""

from __future__ import annotations

import json
import socket
from typing import Any

from faultline import (
    CAS_MISMATCH,
    NOT_CONNECTED,
    ForeignAnswer,
    MemberClient,
    Operation,
    Outcome,
    OutcomeRegistry,
    is_quiet,
    ok,
)

__all__ = ["CLIENT_PORT", "Line", "Refusal", "RegistersClient"]

CLIENT_PORT = 4322
TIMEOUT_S = 1.5


class Refusal(Exception):
    """The member answered with an error; the text is its name."""


class Line:
    """A connection with one request at a time."""

    def __init__(self, address: str, timeout_s: float = TIMEOUT_S) -> None:
        self._socket = socket.create_connection((address, CLIENT_PORT), timeout_s)
        self._answers = self._socket.makefile("rb")

    def ask(self, *question: object) -> Any:
        """Return the answer of the member. Raise Refusal, ForeignAnswer, TimeoutError or ConnectionError."""
        self._socket.sendall(json.dumps(question).encode() + b"\n")
        line = self._answers.readline()
        if not line.endswith(b"\n"):
            raise ConnectionError("the member closed the connection")
        try:
            answer = json.loads(line)
        except ValueError as error:
            raise ForeignAnswer(f"{line!r:.80} is not JSON") from error
        match answer:
            case {"value": value}:
                return value
            case {"error": str(name)}:
                raise Refusal(name)
        raise ForeignAnswer(f"{line!r:.80} is not an answer")

    def is_open(self) -> bool:
        """Return whether the connection is open: a member sends only answers, so no bytes can be read while it is."""
        return is_quiet(self._socket)

    def close(self) -> None:
        """Close the connection to the member."""
        self._answers.close()
        self._socket.close()


class RegistersClient(MemberClient[Line]):
    """One client process; MemberClient connects, changes members, and knows definite failures."""

    outcomes = OutcomeRegistry([NOT_CONNECTED, CAS_MISMATCH, "queue-full", "missing-leader", "request-denied"])
    failures = (OSError, Refusal)

    def connect(self, address: str) -> Line:
        """Return a connection to the member at `address`."""
        return Line(address)

    def perform(self, connection: Line, operation: Operation, node: str) -> Outcome:
        """Read, write or compare-and-set one register."""
        key = str(operation.key)
        if operation.f == "read":
            return ok(connection.ask("read", key), node)
        if operation.f == "write":
            connection.ask("write", key, operation.value)
            return ok(operation.value, node)
        expected, new = operation.value
        matched = connection.ask("cas", key, expected, new)
        return ok(operation.value, node) if matched else self.outcomes.outcome(CAS_MISMATCH, node)

    def hang_up(self, connection: Line) -> None:
        """Close the connection."""
        connection.close()

    def is_open(self, connection: Line) -> bool:
        """Return whether `connection` is open: one that a kill has broken is replaced before the next request."""
        return connection.is_open()

    def word_for(self, error: Exception) -> str:
        """Return the word for an error: PySyncObj's own, `timeout`, or `connection-lost`."""
        if isinstance(error, Refusal):
            return str(error)
        return "timeout" if isinstance(error, TimeoutError) else "connection-lost"
