"""Watches on a server: while it leads, it tells clients what is applied.

Nothing here is replicated. What a watcher has missed is in the store, on every server; the watchers are known to the
leader alone, and clients ask the next leader again. A deposed leader that has not noticed does no harm: what it tells
was committed, and it learns of nothing new.
"""

from __future__ import annotations

from collections.abc import Sequence

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.cluster_management.state_watch import (
    EVENTS_COMPACTED,
    SLOW_WATCHER,
    EventsCompacted,
    Position,
    Watch,
    WatchEvent,
    WatchRegistry,
    end_of,
)
from faultline.systems_under_test.reference.leases_and_watches.host import ServiceHost
from faultline.systems_under_test.reference.leases_and_watches.messages import (
    CloseWatch,
    WatchBatch,
    WatchRefused,
    WatchRequest,
    WatchState,
)

__all__ = ["NOT_LEADER", "Watching"]

NOT_LEADER = "not-leader"
"""The error code of a server that cannot serve watches, because it does not lead."""

_EVENTS_PER_BATCH = 2


class Watching:
    """One server's watchers."""

    registry_type: type[WatchRegistry] = WatchRegistry

    def __init__(self, node: ServiceHost) -> None:
        self.node = node
        self.registry = self.registry_type(node.settings.watch_unconfirmed_max)
        self._heard_us: dict[str, int] = {}

    # Requests.

    def handle_request(self, source: NodeId, request: WatchRequest) -> None:
        """Replay what was missed, then go on live, in one step: nothing can be applied in between (WA-R24)."""
        if not self.node.server.leads:
            refused = WatchRefused(request.path, request.number, NOT_LEADER, self.node.server.leader_id)
            self.node.ports.network.send_ahead(source, refused)
            return
        self._heard_us[source] = self.node.ports.clock.monotonic_us()
        watch = Watch(source, request.path, request.number)
        if request.position is None:
            self._start(watch, request, None)
            return
        try:
            missed = self.missed(request.path, request.position)
        except EventsCompacted:
            self.node.ports.trace.sometimes("watch-gap-announced")
            self._start(watch, request, EVENTS_COMPACTED)
        else:
            self._resume(watch, request, request.position, missed)

    def missed(self, path: str, position: Position) -> list[WatchEvent]:
        """Return the events that a watcher at `position` has not seen."""
        return self.node.store.events.since(path, position)

    def _start(self, watch: Watch, request: WatchRequest, error: str | None) -> None:
        """Send the state as it is, and everything from there on."""
        upto = end_of(self.node.log.last_applied)
        state = self.node.store.state(watch.path)
        if request.is_live:
            self.registry.add(watch, upto, ())
        self.node.ports.network.send(NodeId(watch.client), WatchState(watch.path, watch.number, upto, state, error))

    def _resume(self, watch: Watch, request: WatchRequest, position: Position, missed: list[WatchEvent]) -> None:
        """Send all that came after `position`, and what comes from now on; if that is too much, a part at a time."""
        most = self.node.settings.watch_unconfirmed_max
        upto = max(position, end_of(self.node.log.last_applied))
        self.registry.remove(watch)
        if len(missed) > most:
            missed = missed[:most]
            upto = missed[-1].position
        elif request.is_live and not (request.is_once and missed):
            self.registry.add(watch, upto, missed)
        if missed:
            self.node.ports.trace.sometimes("events-replayed")
        self.replay(watch, position, missed, upto)

    def replay(self, watch: Watch, position: Position, missed: Sequence[WatchEvent], upto: Position) -> None:
        """Send `missed` to this watcher alone."""
        self.send(watch, position, missed, upto)

    def handle_close(self, source: NodeId, request: CloseWatch) -> None:
        """Forget a watch that its client closed."""
        self.registry.remove(Watch(source, request.path, request.number))

    # Events.

    def applied(self, index: int, events: Sequence[WatchEvent]) -> None:
        """Tell the watchers concerned of the events that the entry at `index` made when it was applied."""
        if not len(self.registry):
            return
        told: dict[Watch, list[WatchEvent]] = {}
        for event in events:
            for watch in self.registry.of_key(event.key):
                told.setdefault(watch, []).append(event)
        for watch, concerned in told.items():
            self.tell(watch, index, concerned)

    def tell(self, watch: Watch, index: int, events: Sequence[WatchEvent]) -> None:
        """Send events as they happen, unless the watcher is too far behind."""
        before = self.registry.send(watch, events)
        if before is None:
            self.node.ports.trace.sometimes("slow-watcher-cancelled")
            refused = WatchRefused(watch.path, watch.number, SLOW_WATCHER)
            self.node.ports.network.send(NodeId(watch.client), refused)
            return
        self.send(watch, before, events, end_of(index))
        if self.node.settings.watch_delivery == "once":
            self.registry.remove(watch)

    def send(self, watch: Watch, after: Position, events: Sequence[WatchEvent], upto: Position) -> None:
        """Send these events in batches, each naming the place where the one before it ended."""
        batches = [tuple(events[at : at + _EVENTS_PER_BATCH]) for at in range(0, len(events), _EVENTS_PER_BATCH)]
        for number, batch in enumerate(batches or [()], 1):
            end = upto if number >= len(batches) else batch[-1].position
            message = WatchBatch(watch.path, watch.number, after, end, batch)
            self.node.ports.network.send(NodeId(watch.client), message)
            after = end

    # Watchers come and go.

    def forget_silent(self) -> None:
        """Drop the watches of clients that gave no sign of life."""
        oldest_us = self.node.ports.clock.monotonic_us() - self.node.settings.watch_silence_us
        for client in [client for client, heard_us in self._heard_us.items() if heard_us < oldest_us]:
            del self._heard_us[client]
            self.registry.remove_client(client)
            self.node.ports.trace.sometimes("silent-watcher-forgotten")

    def stop_leading(self) -> None:
        """Send all watchers away: only a leader tells of events."""
        for client, watches in self.registry.content().items():
            for watch in watches:
                refused = WatchRefused(watch.path, watch.number, NOT_LEADER)
                self.node.ports.network.send_ahead(NodeId(client), refused)
        self.registry.clear()
        self._heard_us.clear()
