"""The client of `logged-store`: it asks the server of the key, and again under the same number until it is answered.

A client names itself by a number that it draws, so that it needs no session. The servers execute a request once however
often it comes. When the client's own time is over the outcome is `info`: the request may be in the log.

A write answers with its version, an addition with the new number.

With `reads=at-version` a session reads from each server at the version that it has written or seen there last: a
snapshot that moves with its own writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zlib import crc32

import msgspec

from faultline.harness.operation import Operation
from faultline.harness.outcome import UNSUPPORTED, Outcome, OutcomeRegistry, ok
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.reference.logged_store.messages import (
    FULL_QUEUE,
    AddToValue,
    ReadValue,
    StoreAnswer,
    WriteValue,
)
from faultline.systems_under_test.reference.logged_store.options import LoggedStoreSettings
from faultline.systems_under_test.reference.shared.key_commands import VERSION_COMPACTED, WRONG_KIND_OF_VALUE
from faultline.systems_under_test.reference.shared.open_operation import TIMEOUT, OpenOperation

__all__ = ["DEFINITE_ERRORS", "FUNCTIONS", "LoggedStoreClient", "server_of"]

FUNCTIONS = ("read", "write", "increment")
"""The operations that clients perform."""

DEFINITE_ERRORS = OutcomeRegistry((UNSUPPORTED, WRONG_KIND_OF_VALUE))
"""The errors after which the operation certainly did not and will not happen. Every other error is indefinite."""

_CLIENTS_MAX = 1 << 48
_PAUSE_US = 20_000

_Request = ReadValue | WriteValue | AddToValue


def server_of(key: str, members: tuple[NodeId, ...]) -> NodeId:
    """Return the server that keeps `key`."""
    return members[crc32(key.encode()) % len(members)]


class LoggedStoreClient:
    """One logical client: implements `PortClient` over its ports."""

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], settings: LoggedStoreSettings) -> None:
        self._ports = ports
        self._members = members
        self._settings = settings
        self._id = 1 + ports.random.uniform_us("client", 0, _CLIENTS_MAX)
        self._number = 0
        self._server = members[0]
        self._request: _Request | None = None
        self._versions: dict[NodeId, int] = {}
        self._open = OpenOperation(ports)

    def start(self) -> None:
        """Do nothing: a client needs no session."""

    def invoke(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        """Perform `operation`, one of `FUNCTIONS`."""
        if operation.f not in FUNCTIONS:
            done(DEFINITE_ERRORS.outcome(UNSUPPORTED))
            return
        key = operation.key or ""
        self._number += 1
        self._server = server_of(key, self._members)
        self._request = self._request_for(operation.f, key, operation.value)
        self._open.begin(done, self._settings.client_timeout_us)
        self._transmit()

    def receive(self, source: NodeId, message: Any) -> None:
        """Take an answer; ignore a late one to an earlier request."""
        if type(message) is not StoreAnswer or not self._open or message.request_number != self._number:
            return
        if message.error is None:
            self._complete(source, message)
        elif message.error == VERSION_COMPACTED and type(self._request) is ReadValue:
            self._request = msgspec.structs.replace(self._request, version=0)
            self._try_again()
        elif message.error == FULL_QUEUE:
            self._open.expect(_PAUSE_US, self._try_again)
        else:
            self._open.end(DEFINITE_ERRORS.outcome(message.error, source))

    def _request_for(self, function: str, key: str, value: Any) -> _Request:
        if function == "read":
            at_version = self._settings.reads == "at-version"
            return ReadValue(self._number, key, self._versions.get(self._server, 0) if at_version else 0)
        if function == "write":
            return WriteValue(self._id, self._number, key, msgspec.json.encode(value).decode())
        return AddToValue(self._id, self._number, key, 1 if value is None else value)

    def _complete(self, source: NodeId, answer: StoreAnswer) -> None:
        self._versions[source] = max(self._versions.get(source, 0), answer.version)
        value = None if answer.value is None else msgspec.json.decode(answer.value)
        self._open.end(ok(answer.version if type(self._request) is WriteValue else value, source))

    def _transmit(self) -> None:
        assert self._request is not None
        self._open.expect(self._settings.request_timeout_us, self._try_again)
        self._ports.network.send(self._server, self._request)

    def _try_again(self) -> None:
        if self._open.is_overdue:
            self._open.end(DEFINITE_ERRORS.outcome(TIMEOUT))
        else:
            self._ports.trace.sometimes("client-retried")
            self._transmit()
