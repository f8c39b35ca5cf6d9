"""The client of `consistent-core`: finds the leader, retries under the same number, and does not pretend to know.

It registers a session before its first request. A server that does not lead redirects it; a server that is silent, or
looks for a leader itself, makes it try the next one. Every attempt of one operation carries the same request number, so
the servers' idempotent receiver executes it once however many attempts arrive. When its own timeout is over the
outcome is `info`: an attempt may still be executed. Only a few errors are definite, and they stand in
`DEFINITE_ERRORS`.

A redirect is *not* a definite no: a copy of the request may still be on its way, or wait at a server that has
lost its leadership.

Sources: Patterns of Distributed Systems ch. 25, "Finding the leader", and ch. 15; Ongaro's thesis 6.2 and 6.3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH, UNSUPPORTED, Outcome, OutcomeRegistry, ok
from faultline.harness.world.ports import NodeId, Ports, Timer
from faultline.systems_under_test.reference.raft.append_batches import REQUEST_TOO_LARGE
from faultline.systems_under_test.reference.raft.key_value_store import UNKNOWN_SESSION
from faultline.systems_under_test.reference.raft.settings import RaftSettings
from faultline.systems_under_test.reference.shared.client_messages import (
    ClientRequest,
    ClientResponse,
    RedirectToLeader,
    RegisterClientRequest,
    RegisterClientResponse,
    SessionHeartbeat,
)
from faultline.systems_under_test.reference.shared.key_commands import (
    INSUFFICIENT_QUANTITY,
    NO_SUCH_ACCOUNT,
    Command,
    GetValue,
    command_of,
)
from faultline.systems_under_test.reference.shared.open_operation import TIMEOUT

__all__ = [
    "DEFINITE_ERRORS",
    "NO_SESSION",
    "KeyValueClient",
]

NO_SESSION = "no-session"
"""No session could be registered in time, so the request was never sent."""

DEFINITE_ERRORS = OutcomeRegistry(
    (CAS_MISMATCH, INSUFFICIENT_QUANTITY, NO_SUCH_ACCOUNT, NO_SESSION, REQUEST_TOO_LARGE, UNSUPPORTED)
)
"""The errors after which the operation certainly did not and will not happen. Every other error is indefinite."""

_REGISTRATION = 0
_PAUSE_US = 80_000


class KeyValueClient:
    """One logical client: implements `PortClient` over its ports."""

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], node: NodeId, settings: RaftSettings) -> None:
        self._ports = ports
        self._members = members
        self._home = node
        self._target = node
        self._settings = settings
        self._client_id: int | None = None
        self._request_number = 0
        self._acknowledged = 0
        self._beats = False
        self._command: Command | None = None
        self._done: Callable[[Outcome], None] | None = None
        self._deadline_us = 0
        self._hops = 0
        self._timer: Timer | None = None

    # PortClient.

    def start(self) -> None:
        """Register a session."""
        self._transmit()

    def invoke(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        """Perform `operation`, one of `key_commands.FUNCTIONS`; the values are those of Jepsen's workloads."""
        command = command_of(operation)
        if command is None:
            done(DEFINITE_ERRORS.outcome(UNSUPPORTED))
            return
        self._begin(command, done)

    def _begin(self, command: Command, done: Callable[[Outcome], None]) -> None:
        """Take up `command`: register first, if need be, then send it until it is answered or time is over."""
        self._command = command
        self._done = done
        self._deadline_us = self._ports.clock.monotonic_us() + self._settings.client_timeout_us
        if self._client_id is not None:
            self._request_number += 1
            if self._settings.read_mode == "stale" and type(command) is GetValue:
                self._target = self._home
            self._transmit()

    def receive(self, source: NodeId, message: Any) -> None:
        """Take an answer; what does not belong to the request at hand is late, and ignored."""
        if type(message) is ClientResponse:
            if self._done is not None and self._awaits(message):
                self._complete(source, message)
        elif type(message) is RedirectToLeader:
            self._handle_redirect(source, message)
        elif type(message) is RegisterClientResponse and self._client_id is None:
            self._handle_registered(source, message)

    def _awaits(self, response: ClientResponse) -> bool:
        """Return whether this answers the request at hand, and is no late answer to one before it (SC-R10)."""
        return response.request_number == self._request_number

    # Attempts.

    def _transmit(self) -> None:
        """Send the current target the registration if there is no session yet, else the request."""
        self._arm(self._settings.request_timeout_us, self._handle_silence)
        if self._client_id is None:
            self._ports.network.send(self._target, RegisterClientRequest(_REGISTRATION))
        elif self._command is not None:
            self._ports.network.send(self._target, self._request(self._client_id, self._command))

    def _request(self, client_id: int, command: Command) -> ClientRequest:
        """Return the request at hand, under the number that it keeps for all its attempts."""
        acknowledged = self._acknowledged if self._settings.discard_policy == "acknowledged" else 0
        return ClientRequest(client_id, self._request_number, command, acknowledged)

    def _arm(self, delay_us: int, callback: Callable[[], None]) -> None:
        self._disarm()
        if self._done is not None:
            delay_us = max(0, min(delay_us, self._deadline_us - self._ports.clock.monotonic_us()))
        self._timer = self._ports.timers.after(delay_us, callback)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _handle_silence(self) -> None:
        """Ask the next member, as the target did not answer."""
        self._ports.trace.sometimes("client-retried")
        self._turn_to_next_member()
        self._try_again()

    def _try_again(self) -> None:
        if self._done is not None and self._ports.clock.monotonic_us() >= self._deadline_us:
            self._give_up()
        else:
            self._hops = 0
            self._transmit()

    def _turn_to_next_member(self) -> None:
        members = self._members
        self._target = members[(members.index(self._target) + 1) % len(members)]

    # Answers.

    def _handle_redirect(self, source: NodeId, redirect: RedirectToLeader) -> None:
        current = _REGISTRATION if self._client_id is None else self._request_number
        waits = self._client_id is None or self._done is not None
        if source != self._target or redirect.correlation_id != current or not waits:
            return
        leader = redirect.leader_id
        if leader is not None and leader != source and self._hops < len(self._members):
            self._ports.trace.sometimes("client-redirected")
            self._hops += 1
            self._target = NodeId(leader)
            self._transmit()
        else:
            self._turn_to_next_member()
            self._arm(_PAUSE_US, self._try_again)

    def _handle_registered(self, source: NodeId, response: RegisterClientResponse) -> None:
        self._client_id = response.client_id
        self._target = source
        self._disarm()
        if not self._beats:
            self._beats = True
            self._ports.timers.after(self._settings.session_heartbeat_us, self._send_heartbeat)
        if self._done is not None:
            self._request_number += 1
            self._transmit()

    def _send_heartbeat(self) -> None:
        if self._client_id is not None:
            self._ports.network.send(self._target, SessionHeartbeat(self._client_id))
        self._ports.timers.after(self._settings.session_heartbeat_us, self._send_heartbeat)

    def _complete(self, source: NodeId, response: ClientResponse) -> None:
        self._acknowledged = self._request_number
        if response.error == UNKNOWN_SESSION:
            self._register_anew(source)
        elif response.error is not None:
            self._finish(DEFINITE_ERRORS.outcome(response.error, source))
        else:
            self._finish(ok(response.value, source))

    def _register_anew(self, source: NodeId) -> None:
        """Register anew, as the session has expired. An attempt may have had effect: its outcome is unknown (IDR-R16).

        Numbers go on where they were, so that a late answer to the old session is not taken for one of the new.
        """
        self._ports.trace.sometimes("client-registered-anew")
        self._client_id = None
        self._finish(DEFINITE_ERRORS.outcome(UNKNOWN_SESSION, source))
        self._transmit()

    def _give_up(self) -> None:
        if self._client_id is None:
            self._finish(DEFINITE_ERRORS.outcome(NO_SESSION))
            self._transmit()
        else:
            self._finish(DEFINITE_ERRORS.outcome(TIMEOUT))

    def _finish(self, outcome: Outcome) -> None:
        self._disarm()
        done = self._done
        self._done = self._command = None
        if done is not None:
            done(outcome)
