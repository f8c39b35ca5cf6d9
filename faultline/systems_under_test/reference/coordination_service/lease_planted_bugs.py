"""The planted bugs of `coordination-service` that break leases.

They break the service for good: never use them outside the harness.
"""

from __future__ import annotations

from typing import Any

from faultline.harness.world.ports import Trace
from faultline.systems_under_test.patterns.cluster_management.lease import LeaderLeaseTracker, Lease, LeaseTable
from faultline.systems_under_test.patterns.data_replication.leader_reads import LeaderReads, LocalReads, Serve
from faultline.systems_under_test.patterns.data_replication.replicated_log import ReplicatedLog
from faultline.systems_under_test.reference.coordination_service.parts import CoordinationParts
from faultline.systems_under_test.reference.leases_and_watches.client import ServicedClient
from faultline.systems_under_test.reference.leases_and_watches.lease_holding import LeaseHolding
from faultline.systems_under_test.reference.leases_and_watches.lease_keeping import LeaseKeeping
from faultline.systems_under_test.reference.leases_and_watches.store import ServicedStore
from faultline.systems_under_test.reference.shared.key_commands import SetWithLease
from faultline.systems_under_test.reference.shared.planted_bugs import PlantedBugs

__all__ = ["BUGS"]

BUGS = PlantedBugs("coordination-service", CoordinationParts, pattern="lease", campaign="leases")
_SHORT = BUGS.group(campaign="short-leases")
_WATCHED = BUGS.group(campaign="watches", caught_by=("watches",))


@BUGS.plant("follower-expires-leases", "LS-M1", part="services.keeping", caught_by=("LS-I5", "LS-I6"))
class _FollowerExpires(LeaseKeeping):
    """Every server ends leases by its own clock, without the log.

    Shows as: servers that have applied the same entries hold different leases.
    """

    def stop_leading(self) -> None:
        self.stop_checks()
        self.tracker = self.leader_tracker(self.node.ports.clock, self.node.store.leases.all())
        self._timer = self.node.ports.timers.every(self.node.settings.lease_check_us, self._check_is_due)

    def propose_expiry(self, lease: Lease) -> None:
        if self.node.server.leads:
            super().propose_expiry(lease)
        else:
            self.node.store.end_lease(lease.name, lease.incarnation, "expired")


@BUGS.plant(
    "duplicate-lease-granted",
    "LS-M2",
    summary="whether a name is taken is looked up when the request comes, not when its entry is applied",
    part="services.leases",
    caught_by=("LS-I6", "leased-lock"),
)
class _DuplicateGranted(LeaseTable):
    """A name is looked up when its request comes, not when its entry is applied.

    Shows as: of two requests on their way at once both are granted.
    """

    def is_taken(self, name: str) -> bool:
        return False


@BUGS.plant("lease-removed-before-commit", "LS-M3", part="services.keeping", caught_by=("LS-I5", "LS-I6", "LS-I2"))
class _RemovedBeforeCommit(LeaseKeeping):
    """A leader ends a lease that is over at once, and tells the log about it afterwards.

    Shows as: a leader that is cut off shows a lease as gone that the others hold.
    """

    def propose_expiry(self, lease: Lease) -> None:
        self.node.store.end_lease(lease.name, lease.incarnation, "expired")
        super().propose_expiry(lease)


@BUGS.plant(
    "leases-not-refreshed-by-new-leader",
    "LS-M4",
    part="services.keeping",
    campaign="long-leases",
    caught_by=("LS-I2", "leased-lock"),
)
class _CountedFromGrants(LeaseKeeping):
    """A new leader counts leases from their grants, of which alone it knows.

    Shows as: leases that were refreshed in time end right after an election.
    """

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


@BUGS.plant("new-leader-tracks-no-leases", "LS-M5", part="services.keeping", caught_by=("LS-I3", "availability"))
class _TracksOwnGrants(LeaseKeeping):
    """A new leader counts the time of the leases that it grants, not of those it finds.

    Shows as: the lease of a dead owner never ends, and owners that are alive are told that theirs is gone.
    """

    def start_leading(self) -> None:
        super().start_leading()
        self.tracker = self.leader_tracker(self.node.ports.clock, ())


@BUGS.plant("tracker-never-stops", "LS-M6", part="services.keeping", caught_by=("LS-I7",))
class _NeverStops(LeaseKeeping):
    """A leader that steps down goes on looking for leases that are over.

    Shows as: a server that does not lead proposes expiries.
    """

    def stop_leading(self) -> None:
        pass


class _WallClock(LeaderLeaseTracker):
    def now_us(self) -> int:
        return self._clock.wall_us()


@BUGS.plant(
    "wall-clock-lease-expiry", "LS-M7", part="services.keeping", campaign="lease-clocks", caught_by=("LS-I2", "LS-I3")
)
class _WallClockKeeping(LeaseKeeping):
    """The leader counts the time of leases by its wall clock.

    Shows as: a step of the clock ends leases early, or makes them live on.
    """

    leader_tracker = _WallClock


class _UnitMixUp(LeaderLeaseTracker):
    def ttl_us(self, lease: Lease) -> int:
        return lease.ttl_us // 1_000


@BUGS.plant("lease-unit-mix-up", "LS-M8", part="services.keeping", caught_by=("LS-I2",))
class _UnitMixUpKeeping(LeaseKeeping):
    """A time to live in microseconds is taken for nanoseconds.

    Shows as: leases end at once.
    """

    leader_tracker = _UnitMixUp


@_SHORT.plant("refresh-without-quorum", "LS-M9", part="services.confirmations", caught_by=("LS-I2", "leased-lock"))
def _refresh_without_quorum(_: ReplicatedLog, serve: Serve, __: Trace) -> LeaderReads:
    """A leader answers refreshes without asking whether it still leads.

    Shows as: an owner on the side of a deposed leader believes in a lease that the next one ends.
    """
    return LocalReads(serve)


class _CountedFromReceipt(LeaseHolding):
    def counted_from(self, sent_us: int) -> int:
        return self._ports.clock.monotonic_us()


@_SHORT.plant(
    "lease-counted-from-receipt",
    "LS-M9",
    part="client",
    caught_by=("leased-lock",),
    options={"lease_margin_percent": "0"},
)
class _HoldsFromReceipt(ServicedClient):
    """An owner counts from the moment at which the answer came, and trusts it to the end.

    Shows as: an owner whose request or answer was late believes in a lease that has ended.
    """

    holding_type = _CountedFromReceipt


@_WATCHED.plant("attached-on-the-leader-only", "LS-M10", part="services.keeping", caught_by=("LS-I5", "watches"))
class _AttachedOnTheLeader(LeaseKeeping):
    """Only the leader notes which keys belong to a lease.

    Shows as: after a leader change the keys of a lease stay when it ends.
    """

    def applied(self, index: int) -> None:
        if not self.node.server.leads:
            for event in self.node.store.happened:
                self.node.store.leases.detach(event.key)
        super().applied(index)


@_WATCHED.plant(
    "orphan-attachment", "LS-M11", part="services.store", options={"lease_ttl_ms": "150", "lease_check_ms": "20"}
)
class _OrphanAttachment(ServicedStore):
    """A key that is to be attached to a lease that is over is stored all the same.

    Shows as: a key whose writer was refused is there, and never goes.
    """

    def attach(self, command: SetWithLease) -> bool:
        if not super().attach(command):
            self.values[command.key] = command.value
            self.note(command.key, command.value)
            return False
        return True


@_WATCHED.plant("silent-expiry", "LS-M15", part="services.store")
class _SilentExpiry(ServicedStore):
    """Keys that go with their lease make no event.

    Shows as: watchers take keys for present that lists do not show.
    """

    def note_removal(self, key: str) -> None:
        del self.positions[key]


@BUGS.plant("no-fencing", "LS-R27", part="services.store", caught_by=("leased-lock",))
class _NoFencing(ServicedStore):
    """A guarded resource accepts every token.

    Shows as: a write of a former owner that was on its way is accepted after one of the next owner.
    """

    def is_stale(self, held: Any, token: int) -> bool:
        return False
