"""A Raft server with a key-value store: what its clients may ask of it, and when it answers.

Writes go through the log. Reads bypass it, in the way that the option `read_mode` names, unless that is `log`. A server
that does not lead names the leader, as far as it knows one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_replication.leader_reads import Read
from faultline.systems_under_test.reference.raft.key_value_store import KeyValueStore, encode_command
from faultline.systems_under_test.reference.raft.server import RaftServer
from faultline.systems_under_test.reference.shared.client_messages import (
    ClientCommand,
    ClientRequest,
    ClientResponse,
    GetValue,
    RedirectToLeader,
    RegisterClient,
    RegisterClientRequest,
    RegisterClientResponse,
    SessionHeartbeat,
)

if TYPE_CHECKING:
    from faultline.systems_under_test.reference.raft.parts import Parts
    from faultline.systems_under_test.reference.raft.settings import RaftSettings

__all__ = ["KeyValueServer"]

_REGISTER = encode_command(RegisterClient())


class KeyValueServer(RaftServer):
    """One server of a replicated key-value store; without `store` it makes a plain one from its parts."""

    def __init__(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        settings: RaftSettings,
        parts: Parts,
        store: KeyValueStore | None = None,
    ) -> None:
        super().__init__(ports, members, settings, parts, store or KeyValueStore(parts.new_sessions(settings)))
        self._members = members
        self._registering: set[tuple[NodeId, int]] = set()
        self._handlers |= {
            ClientRequest: self._handle_client_request,
            RegisterClientRequest: self._handle_register_client,
            SessionHeartbeat: self._handle_session_heartbeat,
        }

    def _handle_register_client(self, source: NodeId, request: RegisterClientRequest) -> None:
        if self.extensions and any(extension.takes(source, request) for extension in self.extensions):
            return
        if not self.leads:
            self.redirect(source, request.correlation_id)
        elif (source, request.correlation_id) not in self._registering:
            # Each entry opens a session, and only an answer ends the repetitions. If each were an entry, clients that
            # repeat faster than slow disks take entries would make every later answer come too late.
            self.propose(_RegistrationReply(self.ports, source, request.correlation_id, self._registering), _REGISTER)

    def _handle_client_request(self, source: NodeId, request: ClientRequest) -> None:
        if self.extensions and any(extension.takes(source, request) for extension in self.extensions):
            return
        command = request.command
        bypasses_log = type(command) is GetValue and self.settings.read_mode != "log"
        if bypasses_log and self.settings.read_mode == "stale":
            self.serve(Read(source, request.request_number, command.key))
        elif not self.leads:
            self.redirect(source, request.request_number)
        else:
            self.sessions.refresh(request.client_id)
            if bypasses_log:
                self.reads.read(Read(source, request.request_number, command.key))
            else:
                self.propose(_Reply(self.ports, source, request.request_number), _logged(request))

    def _handle_session_heartbeat(self, source: NodeId, heartbeat: SessionHeartbeat) -> None:
        if self.leads:
            self.sessions.refresh(heartbeat.client_id)
        elif self.election.leader_id is not None and source not in self._members:
            # Passed on once only: two servers that take each other for the leader would send it back and forth.
            self.ports.network.send_ahead(NodeId(self.election.leader_id), heartbeat)


class _Reply:
    """The client that waits for a log entry, to be answered once the entry is applied."""

    __slots__ = ("_ports", "_source", "correlation_id")

    def __init__(self, ports: Ports, source: NodeId, correlation_id: int) -> None:
        self._ports = ports
        self._source = source
        self.correlation_id = correlation_id

    def on_response(self, response: ClientResponse) -> None:
        """Send the answer that the store gave."""
        self._ports.network.send(self._source, response)

    def on_error(self, error: Exception) -> None:
        """Send the client away: it may ask again elsewhere, under the same number."""
        self._ports.network.send(self._source, RedirectToLeader(self.correlation_id, None))


class _RegistrationReply(_Reply):
    """A client that waits for its session, whose answer carries the new client id; in `registering` until then."""

    __slots__ = ("_registering",)

    def __init__(self, ports: Ports, source: NodeId, correlation_id: int, registering: set[tuple[NodeId, int]]) -> None:
        super().__init__(ports, source, correlation_id)
        self._registering = registering
        registering.add((source, correlation_id))

    def on_response(self, response: ClientResponse) -> None:
        """Send the client its id, the index of the entry."""
        self._waits_no_longer()
        self._ports.network.send(self._source, RegisterClientResponse(self.correlation_id, response.value))

    def on_error(self, error: Exception) -> None:
        """Send the client away: it may register again, here too."""
        self._waits_no_longer()
        super().on_error(error)

    def _waits_no_longer(self) -> None:
        self._registering.discard((self._source, self.correlation_id))


def _logged(request: ClientRequest) -> bytes:
    return encode_command(
        ClientCommand(request.client_id, request.request_number, request.command, request.acknowledged)
    )
