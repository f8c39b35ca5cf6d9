"""The planted bugs of `consistent-core` that break watches; `services.mutant_records` describes them.

They break consistent-core for good: never use them outside the harness.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
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
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import ServerRole
from faultline.systems_under_test.reference.leases_and_watches.client import ServicedClient
from faultline.systems_under_test.reference.leases_and_watches.extension import ServiceParts
from faultline.systems_under_test.reference.leases_and_watches.messages import WatchBatch
from faultline.systems_under_test.reference.leases_and_watches.settings import ServiceSettings
from faultline.systems_under_test.reference.leases_and_watches.store import ServicedStore
from faultline.systems_under_test.reference.leases_and_watches.watching import Watching
from faultline.systems_under_test.reference.leases_and_watches.watching_client import (
    ClientWatch,
    ClientWatches,
)
from faultline.systems_under_test.reference.shared.planted_bugs import in_front, layered, together

__all__ = ["WATCH_CHANGES"]


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
                index = node.wal.last_index
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
        usual: type[Any] = BoundedHistory if settings.watch_source == "history" else VersionedHistory
        source: EventSource = in_front(change, usual)(settings.watch_history_max)
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


def _client(change: type[Any]) -> Callable[[ServiceParts], ServiceParts]:
    return lambda parts: replace(parts, client=change)


def _source(change: type[Any]) -> Callable[[ServiceParts], ServiceParts]:
    return lambda parts: replace(parts, source=_source_with(change))


WATCH_CHANGES: dict[str, Callable[[ServiceParts], ServiceParts]] = {
    "watch-starts-live": layered("watching", _StartsLive),
    "position-before-events": _client(_PositionFirstClient),
    "history-by-equal-key": _source(_EqualKey),
    "replay-to-all": together(layered("watching", _ReplayToAll), _client(_TakesAllClient)),
    "history-on-the-leader-only": together(layered("watching", _LeaderKeepsEvents), layered("store", _RecordsNothing)),
    "notify-at-append": layered("watching", _AtAppend),
    "replay-behind-live": layered("watching", _ReplayBehindLive),
    "plain-prefix": together(_source(_PlainPrefix), layered("store", _ListsByPrefix)),
    "resume-by-index": layered("watching", _ResumeByIndex),
    "silent-eviction": _source(_SilentEviction),
    "watches-not-reset": _client(_NotResetClient),
}
"""What each bug changes in the parts of a node or client."""
