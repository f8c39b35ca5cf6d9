"""Leases, watches and listings: an extension of a Raft server, and the parts it is made of.

refresh, listing ──► majority confirms the leadership ──► answer
lease over ──► expiry proposed ──► log ──► applied: lease and keys go ──► events ──► watchers
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.cluster_management.lease import LeaseTable
from faultline.systems_under_test.patterns.cluster_management.state_watch import EventSource
from faultline.systems_under_test.patterns.data_replication.leader_reads import LeaderReads, Read, ReadIndexReads
from faultline.systems_under_test.patterns.data_replication.log_entry import NO_OP, LogEntry
from faultline.systems_under_test.reference.leases_and_watches.lease_keeping import LeaseKeeping
from faultline.systems_under_test.reference.leases_and_watches.messages import (
    CloseWatch,
    RefreshLease,
    WatchRequest,
)
from faultline.systems_under_test.reference.leases_and_watches.settings import ServiceSettings
from faultline.systems_under_test.reference.leases_and_watches.store import ServicedStore, new_source
from faultline.systems_under_test.reference.leases_and_watches.watching import Watching
from faultline.systems_under_test.reference.raft.extension import ExtendedServer, ServerExtension
from faultline.systems_under_test.reference.shared.client_messages import ClientRequest, ClientResponse
from faultline.systems_under_test.reference.shared.handler_table import Handlers
from faultline.systems_under_test.reference.shared.key_commands import GetLease, ListValues

__all__ = ["ServiceParts", "Services"]


@dataclass(frozen=True, slots=True)
class ServiceParts:
    """The classes that leases and watches are built from; a planted bug is a subclass in the place of one."""

    store: type[ServicedStore] = ServicedStore
    leases: type[LeaseTable] = LeaseTable
    source: Callable[[ServiceSettings], EventSource] = new_source
    keeping: type[LeaseKeeping] = LeaseKeeping
    watching: type[Watching] = Watching
    confirmations: Callable[..., LeaderReads] = ReadIndexReads


class Services(ServerExtension):
    """The leases and watches of one server; `store` is its state machine."""

    def __init__(
        self, server: ExtendedServer, settings: ServiceSettings, store: ServicedStore, parts: ServiceParts
    ) -> None:
        self.server = server
        self.ports = server.ports
        self.log = server.log
        self.settings = settings
        self.store = store
        self.keeping = parts.keeping(self)
        self.watching = parts.watching(self)
        self.confirmations = parts.confirmations(self.log, self._confirmed, self.ports.trace)
        self._unconfirmed: dict[int, tuple[NodeId, Any, int]] = {}
        self._confirmations_asked = 0

    def handlers(self) -> Handlers:
        """Return the handlers of what clients ask about leases and watches without the log."""
        return {
            RefreshLease: self.keeping.handle_refresh,
            WatchRequest: self.watching.handle_request,
            CloseWatch: self.watching.handle_close,
        }

    def start_leading(self, no_op_index: int) -> None:
        """Give leases a full time, and let what needs a confirmation wait for the no-op."""
        self.confirmations.start_leading(no_op_index)
        self.keeping.start_leading()

    def stop_leading(self) -> None:
        """Count time and tell watchers no longer: that is the next leader's business."""
        self.keeping.stop_leading()
        self.watching.stop_leading()
        self.confirmations.stop_leading()
        self._unconfirmed.clear()

    def beat(self) -> None:
        """Drop the watches of clients that are gone."""
        self.watching.forget_silent()

    def handled(self) -> None:
        """Look whether the leadership is confirmed: any message may have done so."""
        if self._unconfirmed and self.server.leads:
            self.confirmations.progress()

    def applied(self, entry: LogEntry) -> None:
        """Count leases, and tell watchers."""
        # The store still tells what the command before a no-op changed.
        if entry.kind == NO_OP:
            return
        self.keeping.applied(entry.index)
        self.watching.applied(entry.index, self.store.happened)

    def takes(self, source: NodeId, request: Any) -> bool:
        """Handle listings, which need a confirmation, and refuse leases that are taken, on a leader."""
        if type(request) is not ClientRequest or not self.server.leads:
            return False
        if type(request.command) in (ListValues, GetLease):
            self.server.sessions.refresh(request.client_id)
            self.confirm_leadership(source, request)
            return True
        return self.keeping.refuses_early(source, request)

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
