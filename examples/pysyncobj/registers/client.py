"""A client of the store, and what each of its failures means.

**Outcomes.** An error is *definite* when the operation certainly did not happen and never will. Of PySyncObj's refusals
three are: a member that has no room for a command, or knows no leader for it, or is denied it, has not put it into any
log. All others are `info`, the default. `leader-changed` and `not-leader` say that a command was handed to a leader
that is none any more; whether another leader commits it is open. So is it after `timeout`, and after a connection that
broke once the request was sent.
"""

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
    """A connection on which one question is asked at a time."""

    def __init__(self, address: str, timeout_s: float = TIMEOUT_S) -> None:
        self._socket = socket.create_connection((address, CLIENT_PORT), timeout_s)
        self._answers = self._socket.makefile("rb")

    def ask(self, *question: object) -> Any:
        """What the member answers. Raises Refusal, ForeignAnswer, TimeoutError or ConnectionError."""
        self._socket.sendall(json.dumps(question).encode() + b"\n")
        line = self._answers.readline()
        if not line.endswith(b"\n"):
            raise ConnectionError("the member hung up")
        try:
            answer = json.loads(line)
        except ValueError as error:
            raise ForeignAnswer(f"{line!r:.80} is no JSON") from error
        match answer:
            case {"value": value}:
                return value
            case {"error": str(name)}:
                raise Refusal(name)
        raise ForeignAnswer(f"{line!r:.80} is no answer")

    def is_open(self) -> bool:
        """Has the member not hung up? It says nothing unasked, so nothing is to be read while it is there."""
        return is_quiet(self._socket)

    def close(self) -> None:
        """Hang up."""
        self._answers.close()
        self._socket.close()


class RegistersClient(MemberClient[Line]):
    """One client process; connecting, changing members and definite failures are MemberClient's work."""

    outcomes = OutcomeRegistry([NOT_CONNECTED, CAS_MISMATCH, "queue-full", "missing-leader", "request-denied"])
    failures = (OSError, Refusal)

    def connect(self, address: str) -> Line:
        """A connection to the member at `address`."""
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
        """A connection that a kill has broken is replaced before anything is asked over it."""
        return connection.is_open()

    def word_for(self, error: Exception) -> str:
        """PySyncObj's own word, `timeout`, or `connection-lost`."""
        if isinstance(error, Refusal):
            return str(error)
        return "timeout" if isinstance(error, TimeoutError) else "connection-lost"
