"""A server of `consistent-core` with leases, watches and listings, in front of whatever server the options ask for.

Without the option `services` the ordinary server runs, and nothing here costs anything.

    refresh, listing ──► majority confirms the leadership ──► answer
    lease over ──► expiry proposed ──► log ──► applied: lease and keys go ──► events ──► watchers
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.cluster_management.lease import LeaseTable
from faultline.systems_under_test.patterns.cluster_management.state_watch import EventSource
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import ServerRole
from faultline.systems_under_test.patterns.data_replication.leader_reads import LeaderReads, Read, ReadIndexReads
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import LogEntry
from faultline.systems_under_test.reference.consistent_core.key_value_store import KeyValueStore
from faultline.systems_under_test.reference.consistent_core.node import ConsistentCoreNode, Parts
from faultline.systems_under_test.reference.consistent_core.options import CoreSettings
from faultline.systems_under_test.reference.consistent_core.services.lease_keeping import LeaseKeeping
from faultline.systems_under_test.reference.consistent_core.services.messages import (
    CloseWatch,
    RefreshLease,
    WatchRequest,
)
from faultline.systems_under_test.reference.consistent_core.services.options import ServiceSettings
from faultline.systems_under_test.reference.consistent_core.services.store import ServicedStore, new_source
from faultline.systems_under_test.reference.consistent_core.services.watching import Watching
from faultline.systems_under_test.reference.shared.client_messages import ClientRequest, ClientResponse
from faultline.systems_under_test.reference.shared.key_commands import GetLease, ListValues

__all__ = ["ServiceParts", "ServicedNode", "serviced_node"]

Store = TypeVar("Store", bound=KeyValueStore)


@dataclass(frozen=True, slots=True)
class ServiceParts:
    """The classes that leases and watches are built from; a planted bug is a subclass in the place of one."""

    store: type[ServicedStore] = ServicedStore
    leases: type[LeaseTable] = LeaseTable
    source: Callable[[ServiceSettings], EventSource] = new_source
    keeping: type[LeaseKeeping] = LeaseKeeping
    watching: type[Watching] = Watching
    confirmations: Callable[..., LeaderReads] = ReadIndexReads
    client: type[Any] | None = None


class ServicedNode(ConsistentCoreNode):
    """One server, with leases and watches."""

    store: ServicedStore
    parts = ServiceParts()

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], settings: CoreSettings, *parts: Any) -> None:
        super().__init__(ports, members, settings, *parts)
        self.keeping = self.parts.keeping(self)
        self.watching = self.parts.watching(self)
        self.confirmations = self.parts.confirmations(self.log, self._confirmed, ports.trace)
        self._unconfirmed: dict[int, tuple[NodeId, Any, int]] = {}
        self._confirmations_asked = 0
        self._handlers |= {
            RefreshLease: self.keeping.handle_refresh,
            WatchRequest: self.watching.handle_request,
            CloseWatch: self.watching.handle_close,
        }

    def run_in_queue(self, run: Callable[[], None]) -> None:
        """Run it when nothing else does."""
        self._enter(run)

    # -- leading ------------------------------------------------------------------------------------------------------

    def became_leader(self) -> None:
        """Leases get a full time; what needs a confirmation waits for the no-op that follows."""
        self.confirmations.start_leading(self._log.last_index + 1)
        self.keeping.start_leading()
        super().became_leader()

    def stepped_down(self) -> None:
        """Time and watchers are another's business."""
        super().stepped_down()
        self.keeping.stop_leading()
        self.watching.stop_leading()
        self.confirmations.stop_leading()
        self._unconfirmed.clear()

    def _handle_heartbeat_tick(self, source: NodeId, tick: Any) -> None:
        super()._handle_heartbeat_tick(source, tick)
        self.watching.forget_silent()

    def _handle(self, item: tuple[NodeId, Any]) -> None:
        """Any message may confirm the leadership."""
        super()._handle(item)
        if self._unconfirmed and self.election.role is ServerRole.LEADING:
            self.confirmations.progress()

    # -- requests -----------------------------------------------------------------------------------------------------

    def _handle_client_request(self, source: NodeId, request: ClientRequest) -> None:
        leads = self.election.role is ServerRole.LEADING
        if leads and type(request.command) in (ListValues, GetLease):
            self.sessions.refresh(request.client_id)
            self.confirm_leadership(source, request)
        elif not (leads and self.keeping.refuses_early(source, request)):
            super()._handle_client_request(source, request)

    def confirm_leadership(self, source: NodeId, request: Any) -> None:
        """Serve `request` once a majority has confirmed that this server leads (CC-R20, LS-R14)."""
        self._confirmations_asked += 1
        self._unconfirmed[self._confirmations_asked] = (source, request, self.ports.clock.monotonic_us())
        self.confirmations.read(Read(source, self._confirmations_asked, ""))

    def _confirmed(self, read: Read) -> None:
        source, request, since_us = self._unconfirmed.pop(read.request_number)
        if type(request) is RefreshLease:
            self.keeping.refresh(source, request, self.ports.clock.monotonic_us() - since_us)
            return
        answer = self._lookup(request.command)
        self.ports.network.send_ahead(source, ClientResponse(request.request_number, None, answer))

    def _lookup(self, command: Any) -> Any:
        if type(command) is ListValues:
            values = {state.key: state.value for state in self.store.state(command.key)}
            return {"index": self.log.last_applied, "values": values}
        lease = self.store.leases.get(command.key)
        if lease is None:
            return None
        return {"ttl_us": lease.ttl_us, "incarnation": lease.incarnation, "keys": list(lease.keys)}

    # -- the state machine --------------------------------------------------------------------------------------------

    def _store_type(self, usual: type[Store]) -> type[Store]:
        return type("ServicedStore", (self.parts.store, usual), {})

    def _new_store(self, parts: Parts) -> ServicedStore:
        store = super()._new_store(parts)
        assert isinstance(store, ServicedStore)
        store.serve(self.parts.leases(), self.parts.source(self.settings.service), self.settings.service)
        return store

    def apply(self, entry: LogEntry) -> None:
        """Execute a committed entry; then count leases, and tell watchers."""
        super().apply(entry)
        if entry.data:
            self.keeping.applied(entry.index)
            self.watching.applied(entry.index, self.store.happened)


def serviced_node(base: type[ConsistentCoreNode], parts: ServiceParts) -> type[ServicedNode]:
    """The server with leases and watches, made from `parts`, on top of `base`."""
    return type("ServicedNode", (ServicedNode, base), {"parts": parts})
