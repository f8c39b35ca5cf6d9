"""The client of `paxos-kv`: any node will do, so it stays with one until that is silent or gives up.

Every attempt of one operation carries the same request number, and the register decided for the key remembers the last
number of each client, so an operation takes effect at most once however many nodes were asked. When the client's own
time is over the outcome is `info`: some acceptor may hold the value, and any later read may finish it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH, UNSUPPORTED, Outcome, OutcomeRegistry, ok
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.reference.paxos_kv.messages import OutcomeUnknown, PaxosClientRequest
from faultline.systems_under_test.reference.paxos_kv.options import PaxosKvSettings
from faultline.systems_under_test.reference.shared.client_messages import ClientResponse
from faultline.systems_under_test.reference.shared.key_commands import (
    INSUFFICIENT_QUANTITY,
    NO_SUCH_ACCOUNT,
    command_of,
)
from faultline.systems_under_test.reference.shared.open_operation import TIMEOUT, OpenOperation

__all__ = ["PAXOS_KV_DEFINITE_ERRORS", "PaxosKvClient"]

PAXOS_KV_DEFINITE_ERRORS = OutcomeRegistry((CAS_MISMATCH, INSUFFICIENT_QUANTITY, NO_SUCH_ACCOUNT, UNSUPPORTED))
"""The errors after which the operation certainly did not and will not happen. Every other error is indefinite."""

_PAUSE_US = 20_000


class PaxosKvClient:
    """One logical client: implements `PortClient` over its ports."""

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], node: NodeId, settings: PaxosKvSettings) -> None:
        self._ports = ports
        self._members = members
        self._target = node
        self._settings = settings
        self._request: PaxosClientRequest | None = None
        self._request_number = 0
        self._open = OpenOperation(ports)

    def start(self) -> None:
        """Do nothing: a client needs no session."""

    def invoke(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        """Perform `operation`, one of the functions of `consistent-core`."""
        command = command_of(operation)
        if command is None:
            done(PAXOS_KV_DEFINITE_ERRORS.outcome(UNSUPPORTED))
            return
        self._request_number += 1
        self._request = PaxosClientRequest(self._ports.node_id, self._request_number, command)
        self._open.begin(done, self._settings.client_timeout_us)
        self._transmit()

    def receive(self, source: NodeId, message: Any) -> None:
        """Take an answer; ignore a late one to an earlier request."""
        if not self._open or message.request_number != self._request_number:
            return
        if type(message) is ClientResponse:
            self._complete(source, message)
        elif type(message) is OutcomeUnknown and source == self._target:
            self._turn_to_next_member()
            self._open.expect(_PAUSE_US, self._try_again)

    def _transmit(self) -> None:
        assert self._request is not None
        self._open.expect(self._settings.request_timeout_us, self._handle_silence)
        self._ports.network.send(self._target, self._request)

    def _handle_silence(self) -> None:
        self._turn_to_next_member()
        self._try_again()

    def _try_again(self) -> None:
        if self._open.is_overdue:
            self._open.end(PAXOS_KV_DEFINITE_ERRORS.outcome(TIMEOUT))
        else:
            self._ports.trace.sometimes("client-retried")
            self._transmit()

    def _turn_to_next_member(self) -> None:
        members = self._members
        self._target = members[(members.index(self._target) + 1) % len(members)]

    def _complete(self, source: NodeId, response: ClientResponse) -> None:
        if response.error is not None:
            self._open.end(PAXOS_KV_DEFINITE_ERRORS.outcome(response.error, source))
        else:
            self._open.end(ok(response.value, source))
