"""The planted bugs of `coordination-service` that break watches.

They break the service for good: never use them outside the harness.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from faultline.systems_under_test.patterns.cluster_management.state_watch import (
    BoundedHistory,
    EventSource,
    Position,
    VersionedHistory,
    Watch,
    WatchEvent,
    end_of,
)
from faultline.systems_under_test.reference.coordination_service.parts import CoordinationParts
from faultline.systems_under_test.reference.leases_and_watches.client import ServicedClient
from faultline.systems_under_test.reference.leases_and_watches.messages import WatchBatch
from faultline.systems_under_test.reference.leases_and_watches.settings import ServiceSettings
from faultline.systems_under_test.reference.leases_and_watches.store import ServicedStore
from faultline.systems_under_test.reference.leases_and_watches.watching import Watching
from faultline.systems_under_test.reference.leases_and_watches.watching_client import (
    ClientWatch,
    ClientWatches,
)
from faultline.systems_under_test.reference.shared.planted_bugs import PlantedBugs, in_front

__all__ = ["BUGS"]

BUGS = PlantedBugs(
    "coordination-service", CoordinationParts, pattern="state-watch", campaign="watches", caught_by=("watches",)
)
_SLOW = BUGS.group(campaign="slow-watchers")


def _new_source(change: type[Any], settings: ServiceSettings) -> EventSource:
    """Return the source of events that the options ask for, with `change` in front."""
    usual: type[Any] = BoundedHistory if settings.watch_source == "history" else VersionedHistory
    source: EventSource = in_front(change, usual)(settings.watch_history_max)
    return source


@BUGS.plant("watch-starts-live", "WA-M2", part="services.watching")
class _StartsLive(Watching):
    """A watch that is set again gets what happens from then on, not what it missed.

    Shows as: events between two connections are missing.
    """

    def missed(self, path: str, position: Position) -> list[WatchEvent]:
        return []


class _PositionFirst(ClientWatch):
    __slots__ = ()

    def take_batch(self, batch: WatchBatch) -> bool:
        is_next = super().take_batch(batch)
        if is_next and self.position is not None:
            self.position = max(self.position, batch.upto)
        return is_next


class _PositionFirstWatches(ClientWatches):
    watch_type = _PositionFirst


@_SLOW.plant("position-before-events", "WA-M3", part="client")
class _PositionFirstClient(ServicedClient):
    """A client notes how far it got before its user's queue has taken the events.

    Shows as: events that found the queue full are missing.
    """

    watches_type = _PositionFirstWatches


class _EqualKey:
    def matches(self, path: str, key: str) -> bool:
        return path == key


@BUGS.plant(
    "history-by-equal-key",
    "WA-M4",
    summary="what was missed is looked up by the path itself, not by what is below it",
    part="services.source",
)
def _by_equal_key(settings: ServiceSettings) -> EventSource:
    """Missed events are looked up by the path itself, not by what is below it.

    Shows as: replay has nothing for a watch on a parent.
    """
    return _new_source(_EqualKey, settings)


@BUGS.plant("replay-to-all", "WA-M5, WA-I4", part="services.watching")
class _ReplayToAll(Watching):
    """A replay goes to all clients that watch the path, and clients take whatever comes.

    Shows as: a watcher is told of old events again.
    """

    def replay(self, watch: Watch, position: Position, missed: Sequence[WatchEvent], upto: Position) -> None:
        super().replay(watch, position, missed, upto)
        for other in self.registry.of_key(watch.path):
            if other.path == watch.path and missed:
                self.send(other, position, missed, upto)


class _TakesAll(ClientWatch):
    __slots__ = ()

    def is_new(self, event: WatchEvent) -> bool:
        return True


class _TakesAllWatches(ClientWatches):
    watch_type = _TakesAll


@BUGS.also("replay-to-all", part="client")
class _TakesAllClient(ServicedClient):
    watches_type = _TakesAllWatches


@BUGS.plant("history-on-the-leader-only", "WA-M7", part="services.watching")
class _LeaderKeepsEvents(Watching):
    """Only the leader keeps events.

    Shows as: events are missing after a leader change.
    """

    def applied(self, index: int, events: Sequence[WatchEvent]) -> None:
        if self.node.server.leads:
            for event in events:
                self.node.store.events.record(event)
        super().applied(index, events)


@BUGS.also("history-on-the-leader-only", part="services.store")
class _RecordsNothing(ServicedStore):
    def record(self, event: WatchEvent) -> None:
        pass


@BUGS.plant("notify-at-append", "WA-M8", part="services.watching")
class _AtAppend(Watching):
    """Watchers are told of a change when it is appended, not when it is applied.

    Shows as: watchers are told of a change that is never committed, or differently from others.
    """

    def __init__(self, node: Any) -> None:
        super().__init__(node)
        append = node.log.append_and_replicate

        def append_and_tell(kind: int, data: bytes) -> Any:
            done = append(kind, data)
            command = msgspec.msgpack.decode(data).get("command", {}) if data else {}
            if command.get("type") == "set-value":
                index = node.server.wal.last_index
                super(_AtAppend, self).applied(index, [WatchEvent(index, 0, command["key"], command["value"])])
            return done

        node.log.append_and_replicate = append_and_tell


@BUGS.plant(
    "replay-behind-live",
    "WA-M9",
    summary="what was missed is looked up, and sent later as complete up to then",
    part="services.watching",
)
class _ReplayBehindLive(Watching):
    """Missed events are looked up, and sent later as complete up to then.

    Shows as: events in between are missing.
    """

    def replay(self, watch: Watch, position: Position, missed: Sequence[WatchEvent], upto: Position) -> None:
        def later() -> None:
            self.send(watch, position, missed, max(position, end_of(self.node.log.last_applied)))

        self.node.ports.timers.after(30_000, lambda: self.node.server.enter(later))


class _PlainPrefix:
    def matches(self, path: str, key: str) -> bool:
        return key.startswith(path)


@BUGS.plant("plain-prefix", "WA-M11, CC-M9", part="services.source")
def _by_plain_prefix(settings: ServiceSettings) -> EventSource:
    """A path stands for every key that begins like it.

    Shows as: who watches or lists `servers` is shown `servers2/1`.
    """
    return _new_source(_PlainPrefix, settings)


@BUGS.also("plain-prefix", part="services.store")
class _ListsByPrefix(ServicedStore):
    def is_listed(self, path: str, key: str) -> bool:
        return key.startswith(path)


@_SLOW.plant("resume-by-index", "WA-M13", part="services.watching")
class _ResumeByIndex(Watching):
    """A watch is resumed behind the entry of its last event, whatever else that entry changed.

    Shows as: of several keys that went with a lease some are never told.
    """

    def missed(self, path: str, position: Position) -> list[WatchEvent]:
        return super().missed(path, end_of(position[0]))


class _SilentEviction:
    """`VersionedHistory` refuses twice; the store of versions must not notice either."""

    def lacks(self, position: Position) -> bool:
        versions: Any = self.__dict__["_versions"]
        versions.compacted = None
        return False


@_SLOW.plant(
    "silent-eviction",
    "WA-M14",
    summary="what is not kept any more is passed over without a word",
    part="services.source",
)
def _evicting_silently(settings: ServiceSettings) -> EventSource:
    """Events that are not kept any more are passed over without a word.

    Shows as: events are missing, and no gap was announced.
    """
    return _new_source(_SilentEviction, settings)


class _NotReset(ClientWatches):
    def confirm(self) -> None:
        pass

    def _ask(self, watch: ClientWatch) -> None:
        if watch.position is None:
            super()._ask(watch)


@BUGS.plant("watches-not-reset", "WA-M16", part="client")
class _NotResetClient(ServicedClient):
    """A client sets its watches once, and not again at the next leader.

    Shows as: after a leader change a watcher is told of nothing, for ever.
    """

    watches_type = _NotReset
