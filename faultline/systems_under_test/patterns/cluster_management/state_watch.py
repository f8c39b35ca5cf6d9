"""State Watch: send clients each change, in order and without gaps, so that they need not poll.

*Problem.* Clients need to know when a key changes, for example when a server or the controller of the cluster
disappears. Polling is load even when nothing has changed, and a connection for each request is worse.

*Idea.* A client names a path and gets an event for every change of the key and of all keys below it: `/servers`
includes itself and `/servers/1`, but not `/servers2`. An event is created when the change is *applied*, never before it
can be read. It carries the index of its log entry and an ordinal in it, because one entry may change several keys. So
every server gives an event the same number. A client that moves to another server sends its position and continues from
there.

Past events come from one of three sources:

- `StoredState`: the present state. Changes in between are merged into one, and deletions show only as missing keys; so
  the client gets the whole state with its numbers, and finds the differences itself.
- `BoundedHistory`: the last thousand events, kept by every server while it applies entries.
- `VersionedHistory`: a multi-version store, whose versions are the events' numbers; the default.

The last two keep a bounded number of events. A client that needs older ones gets the error `events-compacted` and the
present state: a client can handle a gap that is reported, and not one that it does not know of.

*Replay, then live*: a request names the last position that the client has, and is answered with all later events and
the position up to which these are complete. From then on each batch names the position of the batch before. A client
that sees a batch whose predecessor it does not have asks again, so lost messages are found, and repeated ones are
recognised. The request itself is repeated at intervals: it confirms what was received, and shows that the client lives.

A slow client would fill the server's memory, so the number of its unconfirmed events is bounded. At the bound the
server cancels the watch and notifies the client.

*Invariants.* WA-I1 the events of a watch are a subsequence of the committed changes. WA-I2 a watch misses no event
except in a gap that was reported. WA-I3 each event belongs to a committed change. WA-I4 a client takes each event
exactly once. WA-I5 eventually a watcher's view is equal to the content of the store. WA-I6 both maps of a server agree.

*Tolerates.* Lost, repeated and late messages, leader changes, slow clients.

*Does not tolerate.* A client that needs events which are no longer kept: it gets the state, but not the changes that
led to it.

*Workloads.* `watches`: puts, deletes, leases that expire, watchers on nested paths.

*Checkers.* `watches`: missed, repeated, reordered and invented events, gaps that were not reported.

*Planted bugs.* `watch-starts-live` (WA-M2), `position-before-events` (WA-M3), `history-by-equal-key` (WA-M4),
`replay-to-all` (WA-M5), `history-on-the-leader-only` (WA-M7), `notify-at-append` (WA-M8), `replay-behind-live` (WA-M9),
`plain-prefix` (WA-M11), `resume-by-index` (WA-M13), `silent-eviction` (WA-M14), `watches-not-reset` (WA-M16). One
watcher per path (WA-M1) and the nearest watch alone (WA-M12) are healed by the next confirmation before a client can
notice; tests show them on the registry.

Variants (option `watch_delivery`): `stream`; `once`, ZooKeeper's one-time trigger, where the client sets the watch
again and reads the state; `pull`, Kafka's way, where the server keeps nothing and the client asks for all events after
its position. Each watch of a client has a position of its own: one number for all of them, as in the printed code,
would make a watch that is added later skip or repeat events that another has seen.

Sources: Patterns of Distributed Systems ch. 27; Hunt et al., "ZooKeeper" (ATC 2010) §2.1; etcd's watch API and its
compaction error; KIP-500 for pull.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from faultline.systems_under_test.patterns.data_replication.versioned_value import DELETED, OrderedVersions

__all__ = [
    "EVENTS_COMPACTED",
    "SLOW_WATCHER",
    "START",
    "BoundedHistory",
    "EventSource",
    "EventsCompacted",
    "KeyState",
    "Position",
    "StoredState",
    "VersionedHistory",
    "Watch",
    "WatchEvent",
    "WatchRegistry",
    "end_of",
    "is_below",
    "levels",
]

EVENTS_COMPACTED = "events-compacted"
"""The error code of a watch that needs events which are no longer kept."""

SLOW_WATCHER = "slow-watcher"
"""The error code of a watch that was cancelled because too many of its events were not confirmed."""

Position = tuple[int, int]
"""The place of an event: the index of its log entry, and its ordinal in that entry."""

START: Position = (0, 0)
"""The position before every event."""

_LAST_ORDINAL = 1 << 30
_COMPACT_EVERY = 64


def end_of(index: int) -> Position:
    """Return the position behind all events of the entry at `index`."""
    return index, _LAST_ORDINAL


def is_below(path: str, key: str) -> bool:
    """Return whether `key` is at `path` or below it; segments count, so `servers2` is not below `servers`."""
    return key == path or key.startswith(path + "/")


def levels(key: str) -> Iterator[str]:
    """Return all paths that a change of `key` concerns: `a/b/c` concerns `a`, `a/b` and `a/b/c`."""
    place = key.find("/", 1)
    while place > 0:
        yield key[:place]
        place = key.find("/", place + 1)
    yield key


class WatchEvent(msgspec.Struct, frozen=True, array_like=True):
    """One change: the key, its new value (none when it was deleted), and its place in the log."""

    index: int
    ordinal: int
    key: str
    value: Any = None
    is_deleted: bool = False

    @property
    def position(self) -> Position:
        """The place of the event among all events."""
        return self.index, self.ordinal


class KeyState(msgspec.Struct, frozen=True, array_like=True):
    """The value of a key, and the position of the event that wrote it."""

    key: str
    value: Any
    index: int
    ordinal: int


class EventsCompacted(Exception):
    """Some of the events after the given position are no longer kept."""


class EventSource(Protocol):
    """The source in which a server finds the events that a watcher has missed."""

    def record(self, event: WatchEvent) -> None:
        """Take note of an event; called on every server, in the order of the log."""

    def since(self, path: str, position: Position) -> list[WatchEvent]:
        """Return all events at and below `path` after `position`, in order. Raises EventsCompacted."""

    def content(self) -> tuple[Position, list[WatchEvent]]:
        """Return the kept events, for a snapshot, after the position from which on they are complete."""

    def restore(self, complete_after: Position, events: Iterable[WatchEvent]) -> None:
        """Replace the kept events with those of a snapshot."""


class StoredState:
    """A source that keeps no events: every replay reads the state (WA-R16)."""

    def record(self, event: WatchEvent) -> None:
        """Do nothing: the state itself has what is needed."""

    def since(self, path: str, position: Position) -> list[WatchEvent]:
        """Raise EventsCompacted: only the present state is known."""
        raise EventsCompacted("no events are kept")

    def content(self) -> tuple[Position, list[WatchEvent]]:
        """Return no events."""
        return START, []

    def restore(self, complete_after: Position, events: Iterable[WatchEvent]) -> None:
        """Do nothing: there are no events."""


class BoundedHistory:
    """The last `events_max` events, of all keys (WA-R17)."""

    def __init__(self, events_max: int) -> None:
        self._events_max = events_max
        self._events: deque[WatchEvent] = deque()
        self._complete_after = START

    def record(self, event: WatchEvent) -> None:
        """Keep `event`, and drop the oldest when there is one too many."""
        self._events.append(event)
        if len(self._events) > self._events_max:
            self._complete_after = self._events.popleft().position

    def since(self, path: str, position: Position) -> list[WatchEvent]:
        if self.lacks(position):
            raise EventsCompacted(f"events up to {self._complete_after} are not kept any more")
        return [event for event in self._events if event.position > position and self.matches(path, event.key)]

    def lacks(self, position: Position) -> bool:
        """Return whether an event after `position` has been forgotten."""
        return position < self._complete_after

    def matches(self, path: str, key: str) -> bool:
        """Return whether a watch on `path` wants the events of `key`."""
        return is_below(path, key)

    def content(self) -> tuple[Position, list[WatchEvent]]:
        return self._complete_after, list(self._events)

    def restore(self, complete_after: Position, events: Iterable[WatchEvent]) -> None:
        self._complete_after = complete_after
        self._events = deque(events)


class VersionedHistory:
    """A store of all versions of each key, under their positions; compacted to the newest `events_max` (WA-R18)."""

    def __init__(self, events_max: int) -> None:
        self._events_max = events_max
        self._versions: OrderedVersions[Position] = OrderedVersions()
        self._positions: deque[Position] = deque()
        self._complete_after = START

    def record(self, event: WatchEvent) -> None:
        """Write the value under the position. Compacting is work for all keys, so it is done now and then."""
        value = DELETED if event.is_deleted else event.value
        self._versions.put(event.key, event.position, value)
        self._positions.append(event.position)
        if len(self._positions) >= self._events_max + _COMPACT_EVERY:
            while len(self._positions) > self._events_max:
                self._complete_after = self._positions.popleft()
            self._versions.compact(self._complete_after)

    def since(self, path: str, position: Position) -> list[WatchEvent]:
        """Return the versions of each key after `position`, merged. Raises EventsCompacted."""
        if self.lacks(position):
            raise EventsCompacted(f"events up to {self._complete_after} are not kept any more")
        # The next possible position: versions are asked for from a place on, not after it.
        after = (position[0], position[1] + 1)
        known = self._versions.keys()
        keys = [key for key in known if self.matches(path, key)]
        return sorted(
            (_event(key, *version) for key in keys for version in self._versions.since(key, after)),
            key=lambda event: event.position,
        )

    def lacks(self, position: Position) -> bool:
        """Return whether an event after `position` has been forgotten."""
        return position < self._complete_after

    def matches(self, path: str, key: str) -> bool:
        """Return whether a watch on `path` wants the events of `key`."""
        return is_below(path, key)

    def content(self) -> tuple[Position, list[WatchEvent]]:
        """Return the kept events; values older than these are in the store itself."""
        return self._complete_after, self._kept()

    def _kept(self) -> list[WatchEvent]:
        events = (_event(key, version, value) for key, version, value in self._versions.entries())
        return sorted((event for event in events if event.position > self._complete_after), key=lambda e: e.position)

    def restore(self, complete_after: Position, events: Iterable[WatchEvent]) -> None:
        self._versions = OrderedVersions()
        self._positions = deque()
        self._complete_after = complete_after
        for event in events:
            self._versions.put(event.key, event.position, DELETED if event.is_deleted else event.value)
            self._positions.append(event.position)


def _event(key: str, position: Position, value: Any) -> WatchEvent:
    is_deleted = value is DELETED
    return WatchEvent(*position, key, None if is_deleted else value, is_deleted)


class Watch(NamedTuple):
    """One watch of one client, which gave it this `number`."""

    client: str
    path: str
    number: int


class _Sending(msgspec.Struct):
    """The position up to which a watch has been sent events, and those that are not confirmed."""

    sent: Position
    unconfirmed: deque[Position]


class WatchRegistry:
    """All watches in two maps.

    By path, to find those that a change concerns; by client, to forget a client that is gone.
    """

    def __init__(self, unconfirmed_max: int) -> None:
        self._unconfirmed_max = unconfirmed_max
        self._by_path: dict[str, dict[Watch, _Sending]] = {}
        self._by_client: dict[str, dict[Watch, None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_path.values()))

    def add(self, watch: Watch, sent: Position, unconfirmed: Iterable[WatchEvent]) -> None:
        """Add `watch`, which was sent everything up to `sent` and has not confirmed the events in `unconfirmed`."""
        positions = deque(event.position for event in unconfirmed)
        self._by_path.setdefault(watch.path, {})[watch] = _Sending(sent, positions)
        self._by_client.setdefault(watch.client, {})[watch] = None

    def of_key(self, key: str) -> list[Watch]:
        """Return the watches that a change of `key` concerns, level by level."""
        return [watch for path in levels(key) for watch in self._by_path.get(path, ())]

    def send(self, watch: Watch, events: Iterable[WatchEvent]) -> Position | None:
        """Note that `events` are sent to `watch` now, and return the position up to which it was sent events before.

        Return None, and remove the watch, when its client has confirmed too few (WA-R22).
        """
        sending = self._by_path[watch.path][watch]
        sending.unconfirmed.extend(event.position for event in events)
        if len(sending.unconfirmed) > self._unconfirmed_max:
            self.remove(watch)
            return None
        before, sending.sent = sending.sent, max(sending.sent, sending.unconfirmed[-1])
        return before

    def remove(self, watch: Watch) -> None:
        """Forget one watch."""
        for table, name in ((self._by_path, watch.path), (self._by_client, watch.client)):
            watches: Any = table.get(name)
            if watches is not None and watch in watches:
                del watches[watch]
                if not watches:
                    del table[name]

    def remove_client(self, client: str) -> None:
        """Forget all watches of a client, and only those (WA-R8)."""
        for watch in list(self._by_client.get(client, ())):
            self.remove(watch)

    def clear(self) -> None:
        """Forget all watches of all clients."""
        self._by_path.clear()
        self._by_client.clear()

    def content(self) -> Mapping[str, list[Watch]]:
        """Return all watches by client, for inspection."""
        return {client: list(watches) for client, watches in self._by_client.items()}

    def is_consistent(self) -> bool:
        """Return whether both maps hold the same watches (WA-I6)."""
        by_path = {watch for watches in self._by_path.values() for watch in watches}
        by_client = {watch for watches in self._by_client.values() for watch in watches}
        return by_path == by_client and all(self._by_path.values()) and all(self._by_client.values())
