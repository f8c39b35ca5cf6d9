"""What waits in the request waiting list of `consistent-core`: clients, to be answered once their entry is applied."""

from __future__ import annotations

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.reference.shared.client_messages import (
    ClientResponse,
    RedirectToLeader,
    RegisterClientResponse,
)

__all__ = ["RegistrationReply", "Reply"]


class Reply:
    """What waits for a log entry: the client to be answered once the entry is applied."""

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


class RegistrationReply(Reply):
    """The same for a registration, whose answer carries the new client id."""

    __slots__ = ()

    def on_response(self, response: ClientResponse) -> None:
        """Send the client its id, the index of the entry."""
        self._ports.network.send(self._source, RegisterClientResponse(self.correlation_id, response.value))
