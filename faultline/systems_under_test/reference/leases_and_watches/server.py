"""A Raft server with leases and watches, assembled."""

from __future__ import annotations

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.reference.leases_and_watches.extension import ServiceParts, Services
from faultline.systems_under_test.reference.leases_and_watches.settings import ServicedSettings
from faultline.systems_under_test.reference.raft.key_value_server import KeyValueServer
from faultline.systems_under_test.reference.raft.parts import Parts

__all__ = ["serviced_server"]


def serviced_server(
    ports: Ports, members: tuple[NodeId, ...], settings: ServicedSettings, parts: Parts, services: ServiceParts
) -> KeyValueServer:
    """Return a Raft server with leases and watches, from `parts` and `services`."""
    store = services.store(parts.new_sessions(settings))
    store.serve(services.leases(), services.source(settings.service), settings.service)
    server = KeyValueServer(ports, members, settings, parts, store)
    server.extend(Services(server, settings.service, store, services))
    return server
