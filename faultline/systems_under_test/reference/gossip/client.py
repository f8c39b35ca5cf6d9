"""The client of `gossip`: it writes through the owner of a key and reads what its own node has heard.

A write that was not acknowledged is not repeated: sent again, it would be a newer statement. Reads go to the client's
own node and no other, since the workload judges what *that* node knows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zlib import crc32

from faultline.harness.operation import Operation
from faultline.harness.outcome import UNSUPPORTED, Outcome, OutcomeRegistry, ok
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.reference.gossip.messages import (
    ReadMetadata,
    ReadView,
    ViewResponse,
    WriteMetadata,
)
from faultline.systems_under_test.reference.gossip.options import GossipSettings
from faultline.systems_under_test.reference.shared.open_operation import TIMEOUT, OpenOperation

__all__ = ["GossipClient", "owner_of"]


def owner_of(key: str, members: tuple[NodeId, ...]) -> NodeId:
    """Return the owner of `key`: the only node that may say something under it."""
    return members[crc32(key.encode()) % len(members)]


class GossipClient:
    """One logical client: implements `PortClient` over its ports."""

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], node: NodeId, settings: GossipSettings) -> None:
        self._ports = ports
        self._members = members
        self._node = node
        self._settings = settings
        self._registry = OutcomeRegistry((UNSUPPORTED,))
        self._number = 0
        self._operation: Operation | None = None
        self._open = OpenOperation(ports)

    def start(self) -> None:
        """Do nothing: a client has no session to open."""

    def invoke(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        """Perform `operation`: write through the owner, read what this client's node has heard, or view."""
        if operation.f not in ("read", "write", "view"):
            done(self._registry.outcome(UNSUPPORTED))
            return
        self._operation = operation
        self._open.begin(done, self._settings.client_timeout_us)
        self._transmit()

    def receive(self, source: NodeId, message: Any) -> None:
        """Take an answer; ignore a late one to an earlier request."""
        if isinstance(message, ViewResponse) and message.request_number == self._number:
            self._open.end(ok(message.value, source))

    def _transmit(self) -> None:
        operation = self._operation
        assert operation is not None
        self._number += 1
        key = operation.key if operation.key is not None else ""
        owner = owner_of(key, self._members)
        match operation.f:
            case "write":
                self._ports.network.send(owner, WriteMetadata(self._number, key, operation.value))
            case "read":
                self._ports.network.send(self._node, ReadMetadata(self._number, owner, key))
            case _:
                self._ports.network.send(self._node, ReadView(self._number))
        is_write = operation.f == "write"
        wait_us = self._settings.client_timeout_us if is_write else self._settings.request_timeout_us
        self._open.expect(wait_us, self._handle_silence)

    def _handle_silence(self) -> None:
        if self._open.is_overdue:
            self._open.end(self._registry.outcome(TIMEOUT))
        else:
            self._transmit()
