"""The planted bugs of `consistent-core` that break leases; `services.mutant_records` describes them.

They break consistent-core for good: never use them outside the harness.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from faultline.systems_under_test.patterns.cluster_management.lease import LeaderLeaseTracker, Lease, LeaseTable
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import ServerRole
from faultline.systems_under_test.patterns.data_replication.leader_reads import LocalReads
from faultline.systems_under_test.reference.leases_and_watches.client import ServicedClient
from faultline.systems_under_test.reference.leases_and_watches.extension import ServiceParts
from faultline.systems_under_test.reference.leases_and_watches.lease_holding import LeaseHolding
from faultline.systems_under_test.reference.leases_and_watches.lease_keeping import LeaseKeeping
from faultline.systems_under_test.reference.leases_and_watches.store import ServicedStore
from faultline.systems_under_test.reference.shared.key_commands import SetWithLease
from faultline.systems_under_test.reference.shared.planted_bugs import layered

__all__ = ["LEASE_CHANGES"]


# -- leases: the server ------------------------------------------------------------------------------------------------


class _FollowerExpires(LeaseKeeping):
    def stop_leading(self) -> None:
        self.stop_checks()
        self.tracker = self.leader_tracker(self.node.ports.clock, self.node.store.leases.all())
        self._timer = self.node.ports.timers.every(self.node.settings.lease_check_us, self._check_is_due)

    def propose_expiry(self, lease: Lease) -> None:
        if self.node.election.role is ServerRole.LEADING:
            super().propose_expiry(lease)
        else:
            self.node.store.end_lease(lease.name, lease.incarnation, "expired")


class _DuplicateGranted(LeaseTable):
    def is_taken(self, name: str) -> bool:
        return False


class _RemovedBeforeCommit(LeaseKeeping):
    def propose_expiry(self, lease: Lease) -> None:
        self.node.store.end_lease(lease.name, lease.incarnation, "expired")
        super().propose_expiry(lease)


class _CountedFromGrants(LeaseKeeping):
    def start_leading(self) -> None:
        super().start_leading()
        tracker: Any = self.tracker
        granted_us = self.__dict__.get("granted_us", {})
        for name, (lease, expires_us) in tracker._tracked.items():
            tracker._tracked[name] = (
                lease,
                granted_us.get(lease.incarnation, expires_us - lease.ttl_us) + lease.ttl_us,
            )

    def applied(self, index: int) -> None:
        super().applied(index)
        for change in self.node.store.lease_changes:
            granted_us = self.__dict__.setdefault("granted_us", {})
            granted_us.setdefault(change.lease.incarnation, self.node.ports.clock.monotonic_us())


class _TracksOwnGrants(LeaseKeeping):
    def start_leading(self) -> None:
        super().start_leading()
        self.tracker = self.leader_tracker(self.node.ports.clock, ())


class _NeverStops(LeaseKeeping):
    def stop_leading(self) -> None:
        pass


class _WallClock(LeaderLeaseTracker):
    def now_us(self) -> int:
        return self._clock.wall_us()


class _UnitMixUp(LeaderLeaseTracker):
    def ttl_us(self, lease: Lease) -> int:
        return lease.ttl_us // 1_000


class _WallClockKeeping(LeaseKeeping):
    leader_tracker = _WallClock


class _UnitMixUpKeeping(LeaseKeeping):
    leader_tracker = _UnitMixUp


class _AttachedOnTheLeader(LeaseKeeping):
    def applied(self, index: int) -> None:
        if self.node.election.role is not ServerRole.LEADING:
            for event in self.node.store.happened:
                self.node.store.leases.detach(event.key)
        super().applied(index)


class _OrphanAttachment(ServicedStore):
    def attach(self, command: SetWithLease) -> bool:
        if not super().attach(command):
            self.values[command.key] = command.value
            self.note(command.key, command.value)
            return False
        return True


class _SilentExpiry(ServicedStore):
    def note_removal(self, key: str) -> None:
        del self.positions[key]


class _NoFencing(ServicedStore):
    def is_stale(self, held: Any, token: int) -> bool:
        return False


# -- leases: the owner -------------------------------------------------------------------------------------------------


class _CountedFromReceipt(LeaseHolding):
    def counted_from(self, sent_us: int) -> int:
        return self._ports.clock.monotonic_us()


class _HoldsFromReceipt(ServicedClient):
    holding_type = _CountedFromReceipt


LEASE_CHANGES: dict[str, Callable[[ServiceParts], ServiceParts]] = {
    "follower-expires-leases": layered("keeping", _FollowerExpires),
    "duplicate-lease-granted": layered("leases", _DuplicateGranted),
    "lease-removed-before-commit": layered("keeping", _RemovedBeforeCommit),
    "leases-not-refreshed-by-new-leader": layered("keeping", _CountedFromGrants),
    "new-leader-tracks-no-leases": layered("keeping", _TracksOwnGrants),
    "tracker-never-stops": layered("keeping", _NeverStops),
    "wall-clock-lease-expiry": layered("keeping", _WallClockKeeping),
    "lease-unit-mix-up": layered("keeping", _UnitMixUpKeeping),
    "refresh-without-quorum": lambda parts: replace(parts, confirmations=lambda _, serve, __: LocalReads(serve)),
    "lease-counted-from-receipt": lambda parts: replace(parts, client=_HoldsFromReceipt),
    "attached-on-the-leader-only": layered("keeping", _AttachedOnTheLeader),
    "orphan-attachment": layered("store", _OrphanAttachment),
    "silent-expiry": layered("store", _SilentExpiry),
    "no-fencing": layered("store", _NoFencing),
}
"""What each bug changes in the parts of a node or client."""
