"""The planted bugs of `consistent-core` in leases and watches; see `consistent_core_mutants`.

They break consistent-core for good: never use them outside the harness.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from faultline.harness.system import Mutant
from faultline.systems_under_test.patterns.cluster_management.lease import (
    LeaderLeaseTracker,
    Lease,
    LeaseTable,
)
from faultline.systems_under_test.patterns.cluster_management.state_watch import (
    BoundedHistory,
    EventSource,
    Position,
    VersionedHistory,
    Watch,
    WatchEvent,
    end_of,
)
from faultline.systems_under_test.patterns.clusters.key_commands import SetWithLease
from faultline.systems_under_test.patterns.clusters.lease_holding import LeaseHolding
from faultline.systems_under_test.patterns.clusters.lease_keeping import LeaseKeeping
from faultline.systems_under_test.patterns.clusters.planted_bugs import layered
from faultline.systems_under_test.patterns.clusters.service_messages import WatchBatch
from faultline.systems_under_test.patterns.clusters.service_options import ServiceSettings
from faultline.systems_under_test.patterns.clusters.serviced_client import ServicedClient
from faultline.systems_under_test.patterns.clusters.serviced_node import ServiceParts
from faultline.systems_under_test.patterns.clusters.serviced_store import ServicedStore
from faultline.systems_under_test.patterns.clusters.watching import Watching
from faultline.systems_under_test.patterns.clusters.watching_client import ClientWatch, ClientWatches
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import ServerRole
from faultline.systems_under_test.patterns.data_replication.leader_reads import LocalReads

__all__ = ["SERVICE_CHANGES", "SERVICE_MUTANTS", "service_parts"]


def _lease_bug(name: str, row: str, summary: str, shows_as: str, *caught_by: str, **rest: Any) -> Mutant:
    return Mutant(
        name=name,
        pattern="lease",
        id=row,
        summary=summary,
        shows_as=shows_as,
        campaign=rest.pop("campaign", "leases"),
        caught_by=caught_by,
        **rest,
    )


def _watch_bug(name: str, row: str, summary: str, shows_as: str, *caught_by: str, **rest: Any) -> Mutant:
    return Mutant(
        name=name,
        pattern=rest.pop("pattern", "state-watch"),
        id=row,
        summary=summary,
        shows_as=shows_as,
        campaign=rest.pop("campaign", "watches"),
        caught_by=caught_by or ("watches",),
        **rest,
    )


SERVICE_MUTANTS = (
    _lease_bug(
        "follower-expires-leases",
        "LS-M1",
        "every server ends leases by its own clock, without the log",
        "servers that have applied the same entries hold different leases",
        "LS-I5",
        "LS-I6",
    ),
    _lease_bug(
        "duplicate-lease-granted",
        "LS-M2",
        "whether a name is taken is looked up when the request comes, not when its entry is applied",
        "of two requests on their way at once both are granted",
        "LS-I6",
        "leased-lock",
    ),
    _lease_bug(
        "lease-removed-before-commit",
        "LS-M3",
        "a leader ends a lease that is over at once, and tells the log about it afterwards",
        "a leader that is cut off shows a lease as gone that the others hold",
        "LS-I5",
        "LS-I6",
        "LS-I2",
    ),
    _lease_bug(
        "leases-not-refreshed-by-new-leader",
        "LS-M4",
        "a new leader counts leases from their grants, of which alone it knows",
        "leases that were refreshed in time end right after an election",
        "LS-I2",
        "leased-lock",
        options={"lease_ttl_ms": "1500"},
    ),
    _lease_bug(
        "new-leader-tracks-no-leases",
        "LS-M5",
        "a new leader counts the time of the leases that it grants, not of those it finds",
        "the lease of a dead owner never ends, and owners that are alive are told that theirs is gone",
        "LS-I3",
        "availability",
    ),
    _lease_bug(
        "tracker-never-stops",
        "LS-M6",
        "a leader that steps down goes on looking for leases that are over",
        "a server that does not lead proposes expiries",
        "LS-I7",
    ),
    _lease_bug(
        "wall-clock-lease-expiry",
        "LS-M7",
        "the leader counts the time of leases by its wall clock",
        "a step of the clock ends leases early, or makes them live on",
        "LS-I2",
        "LS-I3",
        campaign="lease-clocks",
    ),
    _lease_bug(
        "lease-unit-mix-up",
        "LS-M8",
        "a time to live in microseconds is taken for nanoseconds",
        "leases end at once",
        "LS-I2",
    ),
    _lease_bug(
        "refresh-without-quorum",
        "LS-M9",
        "a leader answers refreshes without asking whether it still leads",
        "an owner on the side of a deposed leader believes in a lease that the next one ends",
        "LS-I2",
        "leased-lock",
        options={"lease_ttl_ms": "150", "lease_check_ms": "20"},
    ),
    _lease_bug(
        "lease-counted-from-receipt",
        "LS-M9",
        "an owner counts from the moment at which the answer came, and trusts it to the end",
        "an owner whose request or answer was late believes in a lease that has ended",
        "leased-lock",
        options={"lease_margin_percent": "0", "lease_ttl_ms": "150", "lease_check_ms": "20"},
    ),
    _lease_bug(
        "attached-on-the-leader-only",
        "LS-M10",
        "only the leader notes which keys belong to a lease",
        "after a leader change the keys of a lease stay when it ends",
        "LS-I5",
        "watches",
        campaign="watches",
    ),
    _lease_bug(
        "orphan-attachment",
        "LS-M11",
        "a key that is to be attached to a lease that is over is stored all the same",
        "a key whose writer was refused is there, and never goes",
        "watches",
        campaign="watches",
        options={"lease_ttl_ms": "150", "lease_check_ms": "20"},
    ),
    _lease_bug(
        "silent-expiry",
        "LS-M15",
        "keys that go with their lease make no event",
        "watchers take keys for present that lists do not show",
        "watches",
        campaign="watches",
    ),
    _lease_bug(
        "no-fencing",
        "LS-R27",
        "a guarded resource accepts every token",
        "a write of a former owner that was on its way is accepted after one of the next owner",
        "leased-lock",
    ),
    _watch_bug(
        "watch-starts-live",
        "WA-M2",
        "a watch that is set again gets what happens from then on, not what it missed",
        "events between two connections are missing",
    ),
    _watch_bug(
        "position-before-events",
        "WA-M3",
        "a client notes how far it got before its user's queue has taken the events",
        "events that found the queue full are missing",
        campaign="slow-watchers",
    ),
    _watch_bug(
        "history-by-equal-key",
        "WA-M4",
        "what was missed is looked up by the path itself, not by what is below it",
        "replay has nothing for a watch on a parent",
    ),
    _watch_bug(
        "replay-to-all",
        "WA-M5, WA-I4",
        "a replay goes to everybody who watches the path, and clients take whatever comes",
        "a watcher is told of old events again",
    ),
    _watch_bug(
        "history-on-the-leader-only",
        "WA-M7",
        "only the leader keeps events",
        "events are missing after a leader change",
    ),
    _watch_bug(
        "notify-at-append",
        "WA-M8",
        "watchers are told of a change when it is appended, not when it is applied",
        "watchers are told of a change that is never committed, or differently from others",
    ),
    _watch_bug(
        "replay-behind-live",
        "WA-M9",
        "what was missed is looked up, and sent later as complete up to then",
        "events in between are missing",
    ),
    _watch_bug(
        "plain-prefix",
        "WA-M11, CC-M9",
        "a path stands for every key that begins like it",
        "who watches or lists `servers` is shown `servers2/1`",
    ),
    _watch_bug(
        "resume-by-index",
        "WA-M13",
        "a watch is resumed behind the entry of its last event, whatever else that entry changed",
        "of several keys that went with a lease some are never told",
        campaign="slow-watchers",
    ),
    _watch_bug(
        "silent-eviction",
        "WA-M14",
        "what is not kept any more is passed over without a word",
        "events are missing, and no gap was announced",
        campaign="slow-watchers",
    ),
    _watch_bug(
        "watches-not-reset",
        "WA-M16",
        "a client sets its watches once, and not again at the next leader",
        "after a leader change a watcher is told of nothing, for ever",
    ),
)


# -- leases: the server ------------------------------------------------------------------------------------------------


class _FollowerExpires(LeaseKeeping):
    def stop_leading(self) -> None:
        self.stop_checks()
        self.tracker = self.leader_tracker(self.node.ports.clock, self.node.store.leases.all())
        self._timer = self.node.ports.timers.every(self.node.settings.service.lease_check_us, self._check_is_due)

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


# -- watches: the server -----------------------------------------------------------------------------------------------


class _StartsLive(Watching):
    def missed(self, path: str, position: Position) -> list[WatchEvent]:
        return []


class _ReplayToAll(Watching):
    def replay(self, watch: Watch, position: Position, missed: Sequence[WatchEvent], upto: Position) -> None:
        super().replay(watch, position, missed, upto)
        for other in self.registry.of_key(watch.path):
            if other.path == watch.path and missed:
                self.send(other, position, missed, upto)


class _LeaderKeepsEvents(Watching):
    def applied(self, index: int, events: Sequence[WatchEvent]) -> None:
        if self.node.election.role is ServerRole.LEADING:
            for event in events:
                self.node.store.events.record(event)
        super().applied(index, events)


class _RecordsNothing(ServicedStore):
    def record(self, event: WatchEvent) -> None:
        pass


class _AtAppend(Watching):
    def __init__(self, node: Any) -> None:
        super().__init__(node)
        append = node.log.append_and_replicate

        def append_and_tell(kind: int, data: bytes) -> Any:
            done = append(kind, data)
            command = msgspec.msgpack.decode(data).get("command", {}) if data else {}
            if command.get("type") == "set-value":
                index = node._log.last_index
                super(_AtAppend, self).applied(index, [WatchEvent(index, 0, command["key"], command["value"])])
            return done

        node.log.append_and_replicate = append_and_tell


class _ReplayBehindLive(Watching):
    def replay(self, watch: Watch, position: Position, missed: Sequence[WatchEvent], upto: Position) -> None:
        def later() -> None:
            self.send(watch, position, missed, max(position, end_of(self.node.log.last_applied)))

        self.node.ports.timers.after(30_000, lambda: self.node.run_in_queue(later))


class _ResumeByIndex(Watching):
    def missed(self, path: str, position: Position) -> list[WatchEvent]:
        return super().missed(path, end_of(position[0]))


def _source_with(change: type[Any]) -> Callable[[ServiceSettings], EventSource]:
    def new(settings: ServiceSettings) -> EventSource:
        usual = BoundedHistory if settings.watch_source == "history" else VersionedHistory
        source: EventSource = type(change.__name__, (change, usual), {})(settings.watch_history_max)
        return source

    return new


class _EqualKey:
    def matches(self, path: str, key: str) -> bool:
        return path == key


class _PlainPrefix:
    def matches(self, path: str, key: str) -> bool:
        return key.startswith(path)


class _ListsByPrefix(ServicedStore):
    def is_listed(self, path: str, key: str) -> bool:
        return key.startswith(path)


class _SilentEviction:
    """`VersionedHistory` refuses twice; the store of versions must not notice either."""

    def lacks(self, position: Position) -> bool:
        versions: Any = self.__dict__["_versions"]
        versions.compacted = None
        return False


# -- watches: the client -----------------------------------------------------------------------------------------------


class _PositionFirst(ClientWatch):
    __slots__ = ()

    def take_batch(self, batch: WatchBatch) -> bool:
        is_next = super().take_batch(batch)
        if is_next and self.position is not None:
            self.position = max(self.position, batch.upto)
        return is_next


class _TakesAll(ClientWatch):
    __slots__ = ()

    def is_new(self, event: WatchEvent) -> bool:
        return True


class _PositionFirstWatches(ClientWatches):
    watch_type = _PositionFirst


class _TakesAllWatches(ClientWatches):
    watch_type = _TakesAll


class _NotReset(ClientWatches):
    def confirm(self) -> None:
        pass

    def _ask(self, watch: ClientWatch) -> None:
        if watch.position is None:
            super()._ask(watch)


class _PositionFirstClient(ServicedClient):
    watches_type = _PositionFirstWatches


class _TakesAllClient(ServicedClient):
    watches_type = _TakesAllWatches


class _NotResetClient(ServicedClient):
    watches_type = _NotReset


def _both(*changes: Callable[[ServiceParts], ServiceParts]) -> Callable[[ServiceParts], ServiceParts]:
    def changed(parts: ServiceParts) -> ServiceParts:
        for change in changes:
            parts = change(parts)
        return parts

    return changed


def _client(change: type[Any]) -> Callable[[ServiceParts], ServiceParts]:
    return lambda parts: replace(parts, client=change)


def _source(change: type[Any]) -> Callable[[ServiceParts], ServiceParts]:
    return lambda parts: replace(parts, source=_source_with(change))


SERVICE_CHANGES: dict[str, Callable[[ServiceParts], ServiceParts]] = {
    "follower-expires-leases": layered("keeping", _FollowerExpires),
    "duplicate-lease-granted": layered("leases", _DuplicateGranted),
    "lease-removed-before-commit": layered("keeping", _RemovedBeforeCommit),
    "leases-not-refreshed-by-new-leader": layered("keeping", _CountedFromGrants),
    "new-leader-tracks-no-leases": layered("keeping", _TracksOwnGrants),
    "tracker-never-stops": layered("keeping", _NeverStops),
    "wall-clock-lease-expiry": layered("keeping", _WallClockKeeping),
    "lease-unit-mix-up": layered("keeping", _UnitMixUpKeeping),
    "refresh-without-quorum": lambda parts: replace(parts, confirmations=lambda _, serve, __: LocalReads(serve)),
    "lease-counted-from-receipt": _client(_HoldsFromReceipt),
    "attached-on-the-leader-only": layered("keeping", _AttachedOnTheLeader),
    "orphan-attachment": layered("store", _OrphanAttachment),
    "silent-expiry": layered("store", _SilentExpiry),
    "no-fencing": layered("store", _NoFencing),
    "watch-starts-live": layered("watching", _StartsLive),
    "position-before-events": _client(_PositionFirstClient),
    "history-by-equal-key": _source(_EqualKey),
    "replay-to-all": _both(layered("watching", _ReplayToAll), _client(_TakesAllClient)),
    "history-on-the-leader-only": _both(layered("watching", _LeaderKeepsEvents), layered("store", _RecordsNothing)),
    "notify-at-append": layered("watching", _AtAppend),
    "replay-behind-live": layered("watching", _ReplayBehindLive),
    "plain-prefix": _both(_source(_PlainPrefix), layered("store", _ListsByPrefix)),
    "resume-by-index": layered("watching", _ResumeByIndex),
    "silent-eviction": _source(_SilentEviction),
    "watches-not-reset": _client(_NotResetClient),
}
"""What each bug changes in the parts of a node or client."""


def service_parts(names: Iterable[str]) -> ServiceParts:
    """The parts of leases and watches with those of the planted bugs `names` that concern them."""
    parts = ServiceParts()
    for name in sorted(names):
        if name in SERVICE_CHANGES:
            parts = SERVICE_CHANGES[name](parts)
    return parts
