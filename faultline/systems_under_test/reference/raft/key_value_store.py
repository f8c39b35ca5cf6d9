"""The state machine behind the log: a map from keys to values, with one session per client.

It is a deterministic function of the log: the same entries in the same order give the same map, the same sessions and
the same answers on every server, and again after every restart (SYS-R7).
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import msgspec

from faultline.systems_under_test.patterns.data_replication.idempotent_receiver import (
    NO_CLIENT,
    ClientSessions,
    RequestDiscarded,
    UnknownSession,
)
from faultline.systems_under_test.reference.shared.client_messages import (
    ClientCommand,
    ClientResponse,
    ExpireLease,
    ExpireSessions,
    LoggedCommand,
    RegisterClient,
)
from faultline.systems_under_test.reference.shared.key_commands import Command, executed

__all__ = ["REQUEST_DISCARDED", "UNKNOWN_SESSION", "Applied", "KeyValueStore", "StoreState", "encode_command"]

UNKNOWN_SESSION = "unknown-session"
"""The error code of a request from a client that has no session: it never registered, or the session expired."""

REQUEST_DISCARDED = "request-discarded"
"""The error code of a retry so late that its answer is no longer kept."""

_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[LoggedCommand] = msgspec.msgpack.Decoder(LoggedCommand)


class StoreState(msgspec.Struct, frozen=True, array_like=True):
    """The content of a snapshot: the map, and each client's highest discarded number and kept answers."""

    values: dict[str, Any]
    sessions: dict[int, tuple[int, dict[int, ClientResponse]]]


_STATE_DECODER = msgspec.msgpack.Decoder(StoreState)


def encode_command(command: LoggedCommand) -> bytes:
    """Return the bytes of `command` in a log entry."""
    return _ENCODER.encode(command)


class Applied(msgspec.Struct, frozen=True):
    """The result of an entry: the client, the answer, and whether the command was executed (not a duplicate)."""

    client_id: int
    request_number: int
    response: ClientResponse
    executed: bool
    expired: tuple[int, ...] = ()
    """The clients whose sessions this entry has ended."""


class KeyValueStore:
    """The map and the sessions."""

    def __init__(self, sessions: ClientSessions[ClientResponse]) -> None:
        self.values: MutableMapping[str, Any] = {}
        self.sessions = sessions

    def apply(self, index: int, data: bytes) -> Applied:
        """Apply the command of the log entry at `index`."""
        command = _DECODER.decode(data)
        if type(command) is RegisterClient:
            self.sessions.register(index)
            return Applied(index, 0, ClientResponse(0, None, index), True)
        if type(command) is ExpireSessions:
            return Applied(NO_CLIENT, 0, ClientResponse(0), False, tuple(self.sessions.expire(command.client_ids)))
        if type(command) is ExpireLease:
            self.expire_lease(command)
            return Applied(NO_CLIENT, 0, ClientResponse(0), False)
        assert type(command) is ClientCommand
        number = command.request_number
        try:
            response, executed = self.sessions.execute(
                command.client_id, number, lambda: self.execute(number, command.command), command.acknowledged
            )
        except UnknownSession:
            response, executed = ClientResponse(number, UNKNOWN_SESSION), False
        except RequestDiscarded:
            response, executed = ClientResponse(number, REQUEST_DISCARDED), False
        return Applied(command.client_id, number, response, executed)

    def answer(self, request_number: int, key: str) -> ClientResponse:
        """Return the answer to a read of `key` that bypasses the log."""
        return ClientResponse(request_number, None, self.values.get(key))

    def expire_lease(self, command: ExpireLease) -> None:
        """End a lease, in a store that has them; this one has none."""

    def snapshot(self) -> bytes:
        """Return the whole state, sessions included: equal bytes on all servers that have applied the same entries."""
        return _ENCODER.encode(StoreState(dict(self.values), self.sessions.content()))

    def restore(self, state: bytes) -> None:
        """Put the state of a snapshot in the place of this one. Raises msgspec.MsgspecError when it is none."""
        content = _STATE_DECODER.decode(state)
        self.values.clear()
        self.values.update(content.values)
        self.sessions.restore(content.sessions)

    def execute(self, request_number: int, command: Command) -> ClientResponse:
        """Execute `command` on the map and answer it under `request_number`."""
        key = command.key
        values = self.values
        before = values.get(key)
        effect = executed(before, command)
        if effect.value is not before:
            values[key] = effect.value
        return ClientResponse(request_number, effect.error, effect.answer)
