"""Leases on a server, apart from keeping them: it counts their time while it leads, and reports them.

The leases themselves are replicated state (`store`). The leader checks at intervals whose time is over and
proposes to end them; it answers refreshes once a majority has confirmed that it still leads, and its own no-op is
applied: before that an expiry of its predecessor may be on its way (LS-R14, LS-R22).
"""

from __future__ import annotations

from zlib import crc32

import msgspec

from faultline.harness.world.ports import NodeId, Timer
from faultline.systems_under_test.patterns.cluster_management.lease import (
    DUPLICATE_LEASE,
    NO_LEASE,
    FollowerLeaseTracker,
    LeaderLeaseTracker,
    Lease,
    LeaseTracker,
)
from faultline.systems_under_test.patterns.data_replication.log_entry import DATA
from faultline.systems_under_test.reference.leases_and_watches.host import ServiceHost
from faultline.systems_under_test.reference.leases_and_watches.messages import (
    LeaseRefreshed,
    RefreshLease,
)
from faultline.systems_under_test.reference.leases_and_watches.trace_events import (
    ExpiryProposed,
    LeaseEnded,
    LeaseGranted,
    LeaseRefreshAcknowledged,
    LeasesSeen,
)
from faultline.systems_under_test.reference.raft.key_value_store import encode_command
from faultline.systems_under_test.reference.shared.client_messages import (
    ClientRequest,
    ClientResponse,
    ExpireLease,
)
from faultline.systems_under_test.reference.shared.key_commands import RegisterLease

__all__ = ["LeaseKeeping"]


class LeaseKeeping:
    """One server's part in the life of leases."""

    leader_tracker: type[LeaderLeaseTracker] = LeaderLeaseTracker
    follower_tracker: type[FollowerLeaseTracker] = FollowerLeaseTracker

    def __init__(self, node: ServiceHost) -> None:
        self.node = node
        self.tracker: LeaseTracker = self.follower_tracker()
        self._timer: Timer | None = None

    # Leading.

    def start_leading(self) -> None:
        """Give every lease a full time; the checks begin one interval from now (LS-R21)."""
        self.stop_checks()
        self.tracker = self.leader_tracker(self.node.ports.clock, self.node.store.leases.all())
        self._timer = self.node.ports.timers.every(self.node.settings.lease_check_us, self._check_is_due)

    def stop_leading(self) -> None:
        """Leave the time to the next leader."""
        self.stop_checks()
        self.tracker = self.follower_tracker()

    def stop_checks(self) -> None:
        """Stop the checks, if there are any."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check_is_due(self) -> None:
        self.node.server.enter(self.check)

    def check(self) -> None:
        """Propose to end the leases whose time is over."""
        for lease in self.tracker.expired():
            self.propose_expiry(lease)

    def propose_expiry(self, lease: Lease) -> None:
        """Propose it only: no lease ends before the entry is applied (LS-R11)."""
        leads = self.node.server.leads
        self.node.ports.trace.emit(ExpiryProposed(lease.name, lease.incarnation, leads))
        if leads:
            command = ExpireLease(lease.name, lease.incarnation)
            self.node.log.append_and_replicate(DATA, encode_command(command))

    # Refreshing.

    def handle_refresh(self, source: NodeId, request: RefreshLease) -> None:
        """Ask a majority first, on a leader; on another server, name the leader."""
        server = self.node.server
        if server.leads:
            self.node.confirm_leadership(source, request)
        else:
            refused = LeaseRefreshed(request.name, request.correlation_id, "not-leader", server.leader_id)
            self.node.ports.network.send_ahead(source, refused)

    def refresh(self, source: NodeId, request: RefreshLease, waited_us: int) -> None:
        """Let the lease live a full time from now, if it is there: a majority has confirmed the leadership."""
        trace = self.node.ports.trace
        is_refreshed = self.tracker.refresh(request.name, request.incarnation)
        trace.sometimes("lease-refreshed" if is_refreshed else "refresh-refused")
        if is_refreshed:
            trace.emit(LeaseRefreshAcknowledged(request.name, request.incarnation, waited_us))
        error = None if is_refreshed else NO_LEASE
        self.node.ports.network.send_ahead(source, LeaseRefreshed(request.name, request.correlation_id, error))

    def refuses_early(self, source: NodeId, request: ClientRequest) -> bool:
        """Refuse a lease that is taken: the first of two checks, which spares the log an entry (LS-R5).

        A request that was executed before is let through: it will find its own answer (LS-R23).
        """
        command = request.command
        if type(command) is not RegisterLease or self.node.store.leases.get(command.key) is None:
            return False
        if self.was_executed(request):
            return False
        self.node.ports.trace.sometimes("duplicate-lease-refused-early")
        self.node.ports.network.send_ahead(source, ClientResponse(request.request_number, DUPLICATE_LEASE))
        return True

    def was_executed(self, request: ClientRequest) -> bool:
        """Return whether there is an answer to this request already."""
        session = self.node.store.sessions.session(request.client_id)
        return session is not None and request.request_number in session.responses

    # The state machine.

    def applied(self, index: int) -> None:
        """Count the time of what was granted, forget what has ended, and report both."""
        store, trace = self.node.store, self.node.ports.trace
        for change in store.lease_changes:
            lease = change.lease
            if change.reason == "granted":
                self.tracker.track(lease)
                leads = self.node.server.leads
                trace.emit(LeaseGranted(index, lease.name, lease.ttl_us, leads))
            else:
                self.tracker.forget(lease.name)
                trace.sometimes(f"lease-{change.reason}")
                trace.emit(LeaseEnded(index, lease.name, lease.incarnation, change.reason, lease.ttl_us, lease.keys))
        if store.lease_changes:
            self.report_leases(index)

    def report_leases(self, index: int) -> None:
        """Report a checksum of all leases, so that servers can be compared."""
        store = self.node.store
        content = store.leases.content()
        orphans = tuple(key for lease in content for key in lease.keys if key not in store.values)
        checksum = crc32(msgspec.msgpack.encode(content))
        self.node.ports.trace.emit(LeasesSeen(index, checksum, len(content), orphans))
