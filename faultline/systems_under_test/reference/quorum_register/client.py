"""The client of `quorum-register`: repeats reads elsewhere, and never repeats a write that may have happened.

A read changes nothing that was not decided already, so a reader that hears nothing asks the next node. A write gets its
stamp from the node that coordinates it; sent twice it would be two writes, and the second could come back after a newer
one (there is no idempotent receiver here). So it is repeated only when the answer says that it certainly did nothing.
Each attempt has a number of its own, so that no late answer is taken for another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faultline.harness.operation import Operation
from faultline.harness.outcome import UNSUPPORTED, Outcome, OutcomeRegistry, ok
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.reference.quorum_register.coordinator import NO_QUORUM_TO_ASK
from faultline.systems_under_test.reference.quorum_register.messages import ReadValue, ValueResponse, WriteValue
from faultline.systems_under_test.reference.quorum_register.options import RegisterSettings
from faultline.systems_under_test.reference.shared.open_operation import TIMEOUT, OpenOperation

__all__ = ["QuorumRegisterClient"]

_PAUSE_US = 50_000


class QuorumRegisterClient:
    """One logical client: implements `PortClient` over its ports."""

    definite = frozenset((UNSUPPORTED, NO_QUORUM_TO_ASK))
    """The errors after which nothing happened and nothing will."""

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], node: NodeId, settings: RegisterSettings) -> None:
        self._ports = ports
        self._members = members
        self._target = node
        self._settings = settings
        self._registry = OutcomeRegistry(self.definite)
        self._number = 0
        self._operation: Operation | None = None
        self._error = TIMEOUT
        self._open = OpenOperation(ports)

    def start(self) -> None:
        """Do nothing: there are no sessions."""

    def invoke(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        """Perform `operation`: read, or write a value."""
        if operation.f not in ("read", "write"):
            done(self._registry.outcome(UNSUPPORTED))
            return
        self._operation, self._error = operation, TIMEOUT
        self._open.begin(done, self._settings.client_timeout_us)
        self._transmit()

    def receive(self, source: NodeId, message: Any) -> None:
        """Take an answer; ignore a late one to an earlier attempt."""
        if type(message) is not ValueResponse or message.request_number != self._number or not self._open:
            return
        if message.error is None:
            self._open.end(ok(message.value, source))
        elif self._may_repeat(message.error):
            self._error = message.error
            self._turn_to_next_member()
            self._open.expect(_PAUSE_US, self._try_again)
        else:
            self._open.end(self._registry.outcome(message.error, source))

    def _may_repeat(self, error: str) -> bool:
        # A write that got no stamp was stored nowhere, so a second attempt is the only write.
        return self._is_read or error == NO_QUORUM_TO_ASK

    @property
    def _is_read(self) -> bool:
        return self._operation is not None and self._operation.f == "read"

    def _transmit(self) -> None:
        operation = self._operation
        assert operation is not None
        self._number += 1
        key = operation.key if operation.key is not None else ""
        if self._is_read:
            self._open.expect(self._settings.request_timeout_us, self._handle_silence)
            self._ports.network.send(self._target, ReadValue(self._number, key))
        else:
            self._error = TIMEOUT
            self._open.expect(self._settings.client_timeout_us, self._handle_silence)
            self._ports.network.send(self._target, WriteValue(self._number, key, operation.value))

    def _handle_silence(self) -> None:
        self._turn_to_next_member()
        self._try_again()

    def _try_again(self) -> None:
        if self._open.is_overdue:
            self._open.end(self._registry.outcome(self._error))
        else:
            self._ports.trace.sometimes("client-retried")
            self._transmit()

    def _turn_to_next_member(self) -> None:
        self._target = self._members[(self._members.index(self._target) + 1) % len(self._members)]
