"""The extension of a server, as the parts it is made of see it."""

from __future__ import annotations

from typing import Any, Protocol

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.reference.leases_and_watches.settings import ServiceSettings
from faultline.systems_under_test.reference.leases_and_watches.store import ServicedStore
from faultline.systems_under_test.reference.raft.extension import ExtendedServer, ReplicatedEntries

__all__ = ["ServiceHost"]


class ServiceHost(Protocol):
    """The extension of a server, as its leases and its watches see it."""

    server: ExtendedServer
    ports: Ports
    log: ReplicatedEntries
    settings: ServiceSettings
    store: ServicedStore

    def confirm_leadership(self, source: NodeId, request: Any) -> None:
        """Serve `request` once a majority has confirmed that this server leads."""
