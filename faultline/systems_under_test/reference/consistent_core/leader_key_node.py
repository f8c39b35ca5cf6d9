"""The node that keeps the leader key of `consistent-core`, when leaders are elected through an external store.

It is the last of the configured nodes and holds no replica. Clients that ask it are sent to the owner of the key.
"""

from __future__ import annotations

from typing import Any

from faultline.harness.world.ports import NodeId, NodeStatus, Ports
from faultline.systems_under_test.patterns.data_replication.leader_key_store import (
    CreateLeaderKey,
    DeleteLeaderKey,
    LeaderKeyStore,
    ReadLeaderKey,
    RefreshLeaderKey,
    WatchLeaderKey,
)
from faultline.systems_under_test.reference.shared.client_messages import (
    ClientRequest,
    RedirectToLeader,
    RegisterClientRequest,
)

__all__ = ["LeaderKeyNode"]


class LeaderKeyNode:
    """The store as a node: implements `Node`. One message at a time is all the queue it needs."""

    def __init__(self, ports: Ports, ttl_us: int) -> None:
        self.ports = ports
        self.store = LeaderKeyStore(ports, ttl_us)
        self._handlers: dict[type, Any] = {
            WatchLeaderKey: self.store.handle_watch,
            CreateLeaderKey: self.store.handle_create,
            ReadLeaderKey: self.store.handle_read,
            RefreshLeaderKey: self.store.handle_refresh,
            DeleteLeaderKey: self.store.handle_delete,
            ClientRequest: self._redirect,
            RegisterClientRequest: self._redirect,
        }

    def start(self) -> None:
        """Recover the key from storage."""
        self.store.start()

    def receive(self, source: NodeId, message: Any) -> None:
        """Answer a server or send a client on its way. What is meant for replicas is not for the store."""
        handle = self._handlers.get(type(message))
        if handle is not None:
            handle(source, message)

    def status(self) -> NodeStatus:
        """Return the owner of the key."""
        return NodeStatus(role="store", generation=self.store.generation, leader=self.store.owner)

    def _redirect(self, source: NodeId, request: ClientRequest | RegisterClientRequest) -> None:
        number = request.request_number if isinstance(request, ClientRequest) else request.correlation_id
        self.ports.network.send_ahead(source, RedirectToLeader(number, self.store.owner))
