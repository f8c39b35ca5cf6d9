"""The client of `emergent-leader`: it asks its own node for the members of the cluster. A view changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faultline.harness.operation import Operation
from faultline.harness.outcome import UNSUPPORTED, Outcome, OutcomeRegistry, ok
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.reference.emergent.messages import ViewRequest, ViewResponse
from faultline.systems_under_test.reference.emergent.node import NOT_ENOUGH_MEMBERS, NOT_JOINED
from faultline.systems_under_test.reference.emergent.options import EmergentSettings
from faultline.systems_under_test.reference.shared.open_operation import TIMEOUT, OpenOperation

__all__ = ["EmergentClient"]


class EmergentClient:
    """One logical client: implements `PortClient` over its ports."""

    def __init__(self, ports: Ports, node: NodeId, settings: EmergentSettings) -> None:
        self._ports = ports
        self._node = node
        self._settings = settings
        self._registry = OutcomeRegistry((UNSUPPORTED, TIMEOUT, NOT_JOINED, NOT_ENOUGH_MEMBERS))
        self._number = 0
        self._open = OpenOperation(ports)

    def start(self) -> None:
        """Do nothing: a client has no session to open."""

    def invoke(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        """Perform `operation`, which is a view."""
        if operation.f != "view":
            done(self._registry.outcome(UNSUPPORTED))
            return
        self._number += 1
        self._open.begin(done, self._settings.client_timeout_us)
        self._open.expect(self._settings.client_timeout_us, lambda: self._open.end(self._registry.outcome(TIMEOUT)))
        self._ports.network.send(self._node, ViewRequest(self._number))

    def receive(self, source: NodeId, message: Any) -> None:
        """Take an answer; ignore a late one to an earlier request."""
        if not isinstance(message, ViewResponse) or message.request_number != self._number:
            return
        if message.error is not None:
            self._open.end(self._registry.outcome(message.error, source))
        else:
            self._open.end(ok(message.view, source))
