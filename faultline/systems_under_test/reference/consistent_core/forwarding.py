"""The variant of `consistent-core` in which any server takes a request and forwards it to the leader: an extension.

With redirects a client learns who leads and goes there itself; here it may stay where it is, which suits clients that
reach one server only, and costs two more messages per request. The leader answers to the server that forwarded, and
that passes the answer on. A server that knows no leader redirects as usual, and so does one that was taken for the
leader and is not: nothing is forwarded twice, so requests cannot run in circles.

Refreshes and watches are not forwarded: they are bound to the leader, and their clients look for it themselves.

Source: Patterns of Distributed Systems ch. 25, "Finding the leader", the second variant.
"""

from __future__ import annotations

from typing import Any

import msgspec

from faultline.harness.world.ports import Clock, Network, NodeId, Ports, RandomSource, Storage, Timers, Trace
from faultline.systems_under_test.reference.raft.extension import ExtendedServer, ServerExtension
from faultline.systems_under_test.reference.shared.client_messages import (
    ClientRequest,
    ClientResponse,
    RedirectToLeader,
    RegisterClientRequest,
    RegisterClientResponse,
)
from faultline.systems_under_test.reference.shared.handler_table import Handlers

__all__ = ["FORWARDING_MESSAGES", "ForwardedAnswer", "ForwardedRequest", "Forwarding", "RelayingPorts"]


class ForwardedRequest(msgspec.Struct, frozen=True, tag="forwarded-request"):
    """A server passes a client's request on to the leader."""

    client: str
    request: ClientRequest | RegisterClientRequest


class ForwardedAnswer(msgspec.Struct, frozen=True, tag="forwarded-answer"):
    """The leader's answer, on its way back through that server."""

    client: str
    answer: ClientResponse | RegisterClientResponse | RedirectToLeader


FORWARDING_MESSAGES: tuple[type[Any], ...] = (ForwardedRequest, ForwardedAnswer)
"""The messages between servers on behalf of clients."""


class _RelayedClient(str):
    """The name of a client that is reached through the server `via`."""

    __slots__ = ("via",)
    via: NodeId


class _RelayingNetwork:
    """A network that knows the way to relayed clients."""

    def __init__(self, network: Network) -> None:
        self._network = network

    def send(self, to: NodeId, message: msgspec.Struct) -> None:
        """Send it, through another server if the client is reached so."""
        self._network.send(*_routed(to, message))

    def send_ahead(self, to: NodeId, message: msgspec.Struct) -> None:
        """Send it ahead of what waits for the disk, in the same way."""
        self._network.send_ahead(*_routed(to, message))


def _routed(to: NodeId, message: Any) -> tuple[NodeId, msgspec.Struct]:
    return (to.via, ForwardedAnswer(str(to), message)) if isinstance(to, _RelayedClient) else (to, message)


class RelayingPorts:
    """The ports of a node, with that network."""

    def __init__(self, ports: Ports) -> None:
        self.node_id: NodeId = ports.node_id
        self.clock: Clock = ports.clock
        self.network: Network = _RelayingNetwork(ports.network)
        self.timers: Timers = ports.timers
        self.storage: Storage = ports.storage
        self.random: RandomSource = ports.random
        self.trace: Trace = ports.trace


class Forwarding(ServerExtension):
    """Passes on what only the leader can do; its server must have been given the `RelayingPorts` of `ports`."""

    def __init__(self, server: ExtendedServer) -> None:
        self._server = server

    def handlers(self) -> Handlers:
        """Return the handlers of what servers pass on to each other."""
        return {
            ForwardedRequest: self._handle_forwarded_request,
            ForwardedAnswer: self._handle_forwarded_answer,
        }

    def takes(self, source: NodeId, request: Any) -> bool:
        """Pass `request` on if another server leads, as far as this one knows, and it was not passed on before."""
        server = self._server
        leader = server.leader_id
        if server.leads or leader in (None, server.ports.node_id) or isinstance(source, _RelayedClient):
            return False
        server.ports.trace.sometimes("request-forwarded")
        server.ports.network.send_ahead(NodeId(str(leader)), ForwardedRequest(source, request))
        return True

    def _handle_forwarded_request(self, source: NodeId, message: ForwardedRequest) -> None:
        client = _RelayedClient(message.client)
        client.via = source
        self._server.handle(NodeId(client), message.request)

    def _handle_forwarded_answer(self, _: NodeId, message: ForwardedAnswer) -> None:
        self._server.ports.network.send_ahead(NodeId(message.client), message.answer)
