"""A client of one etcd cluster over its JSON gateway, and the meaning of each of its failures.

etcd answers gRPC only, but translates JSON over HTTP on the same port, so that the standard library suffices:
`/v3/kv/put`, `/v3/kv/range`, `/v3/kv/txn`, keys and values in base 64 (etcd's documentation, "gRPC gateway").

**Outcomes.** Four outcomes are definite: a connection that was not made, since no request was sent on it; a
compare-and-set that etcd itself says did not succeed; a key that was to be attached to a lease which does not exist,
since etcd looks for the lease before it writes; and a read that failed, since a read changes nothing. Every other
failure after the request has been handed to the network is `info`, also an error answer of etcd: a proposal that it
reports as timed out may still be committed. And an answer without the `header` that is in each of etcd's answers, or
that cannot be read, says nothing about any operation (`ForeignAnswer`).
"""

from __future__ import annotations

import base64
import http.client
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH, NOT_CONNECTED, Outcome, OutcomeRegistry, ok
from faultline.systems_under_test.stores.client import ForeignAnswer, MemberClient, is_quiet

__all__ = [
    "CLIENT_PORT",
    "NO_LEASE",
    "Connect",
    "EtcdClient",
    "EtcdRefusal",
    "ask",
    "decoded",
    "encoded",
    "key_of",
    "outcomes",
    "packed",
]

CLIENT_PORT = 2379
NO_LEASE = "no-lease"
outcomes = OutcomeRegistry([NOT_CONNECTED, CAS_MISMATCH, NO_LEASE])
"""The errors after which a change certainly did not happen."""

Connect = Callable[[int, float], http.client.HTTPConnection]
"""A connection to the member of this number, counted round and round, with this limit on every wait, in seconds."""

_LEASE_NOT_FOUND = b"etcdserver: requested lease not found"


class EtcdRefusal(Exception):
    """etcd answered, but not with a result; the text is one word."""


def ask(connection: http.client.HTTPConnection, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Send one request over a connection that stays open, and return its answer.

    Raises ForeignAnswer for an answer that etcd never gives.
    """
    connection.request("POST", path, msgspec.json.encode(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    content = response.read()
    if response.status != 200:
        raise EtcdRefusal(NO_LEASE if _LEASE_NOT_FOUND in content else f"http-{response.status}")
    try:
        answer: Any = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ForeignAnswer(f"{path} was answered with no valid JSON: {error}") from error
    if not _has_header(answer):
        raise ForeignAnswer(f"{path} was answered without a header")
    told: dict[str, Any] = answer
    return told


def _has_header(answer: Any) -> bool:
    """Return whether `answer` has the header with a revision that etcd puts into each.

    A stream wraps it in `result`.
    """
    if not isinstance(answer, dict):
        return False
    told = answer.get("result", answer)
    header = told.get("header") if isinstance(told, dict) else None
    return isinstance(header, dict) and str(header.get("revision", "")).isdecimal()


class EtcdClient(MemberClient[http.client.HTTPConnection]):
    """One client process; with `serializable` reads, the member answers from its own copy, which may be stale."""

    outcomes = outcomes
    failures = (OSError, http.client.HTTPException, EtcdRefusal, ForeignAnswer, msgspec.DecodeError)

    def __init__(
        self,
        address_of: Callable[[str], str],
        members: Sequence[str],
        node: str,
        *,
        serializable: bool,
        timeout_s: float,
    ) -> None:
        super().__init__(address_of, members, node)
        self._serializable = serializable
        self._timeout_s = timeout_s

    def connect(self, address: str) -> http.client.HTTPConnection:
        """Return a connection to the member's gateway."""
        return _connected(address, self._timeout_s)

    def connect_within(self, member: int, timeout_s: float) -> http.client.HTTPConnection:
        """Return a connection to the member of this number, with this limit on every wait."""
        return _connected(self.address_of_member(member), timeout_s)

    def is_open(self, connection: http.client.HTTPConnection) -> bool:
        """Return whether etcd has not hung up: it sends nothing but answers."""
        return connection.sock is not None and is_quiet(connection.sock)

    def hang_up(self, connection: http.client.HTTPConnection) -> None:
        """Close the connection."""
        connection.close()

    def perform(self, connection: http.client.HTTPConnection, operation: Operation, node: str) -> Outcome:
        """Read, write or compare-and-set one key."""
        key = encoded(str(operation.key))
        if operation.f == "read":
            body = {"key": key, "serializable": self._serializable}
            found = ask(connection, "/v3/kv/range", body).get("kvs", ())
            return ok(decoded(found[0]["value"]) if found else None, node)
        if operation.f == "write":
            ask(connection, "/v3/kv/put", {"key": key, "value": packed(operation.value)})
            return ok(operation.value, node)
        expected, new = operation.value
        compare = {"key": key, "target": "VALUE", "result": "EQUAL", "value": packed(expected)}
        success = {"request_put": {"key": key, "value": packed(new)}}
        answer = ask(connection, "/v3/kv/txn", {"compare": [compare], "success": [success]})
        return ok(operation.value, node) if answer.get("succeeded") else outcomes.outcome(CAS_MISMATCH, node)

    def word_for(self, error: Exception) -> str:
        """Return `timeout`, etcd's own refusal, or `connection-lost`."""
        if isinstance(error, TimeoutError):
            return "timeout"
        return str(error) if isinstance(error, EtcdRefusal) else "connection-lost"


def _connected(address: str, timeout_s: float) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection(address, CLIENT_PORT, timeout=timeout_s)
    connection.connect()
    return connection


def encoded(text: str) -> str:
    """Return a key in the form of the gateway."""
    return base64.b64encode(text.encode()).decode()


def packed(value: Any) -> str:
    """Return a value as it is stored: JSON, in the form of the gateway."""
    return base64.b64encode(msgspec.json.encode(value)).decode()


def decoded(text: str) -> Any:
    """Return the value from which `packed` made this text."""
    return msgspec.json.decode(base64.b64decode(text))


def key_of(kv: Mapping[str, str]) -> str:
    """Return the key of an entry in an answer."""
    return base64.b64decode(kv["key"]).decode()
