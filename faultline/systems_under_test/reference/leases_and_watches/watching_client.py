"""The client's side of watches: finds the leader, notices what it missed, and keeps events until its user takes them.

Each watch has a position of its own. A batch that follows on it is taken, one that leaves something out makes the
client ask again from its position, one that it knows is dropped, and so is a state that is older than what was taken
before. At intervals the client confirms how far it got, to the leader as far as it is known: after a leader change the
confirmation is what sets the watch again. When events are not kept any more, or the server cancelled, the client is
given the state, and its user is told that there is a gap.

What the user gets is a list of items in order:

    ["state", [index, ordinal], {key: value, …}, reason]   at the beginning, and after each announced gap
    ["event", index, ordinal, key, value, is_deleted]
    ["upto", [index, ordinal]]                             everything up to here has been told
"""

from __future__ import annotations

from typing import Any

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.cluster_management.state_watch import Position, WatchEvent
from faultline.systems_under_test.reference.leases_and_watches.messages import (
    CloseWatch,
    WatchBatch,
    WatchRefused,
    WatchRequest,
    WatchState,
)
from faultline.systems_under_test.reference.leases_and_watches.settings import ServiceSettings
from faultline.systems_under_test.reference.leases_and_watches.watching import NOT_LEADER

__all__ = ["ClientWatch", "ClientWatches"]

REARMED = "re-armed"
"""The reason for a state between two events of a one-time watch."""


class ClientWatch:
    """One watch: what it has received, and what its user has not taken yet."""

    __slots__ = ("_queue_max", "items", "number", "path", "position", "reached", "reason")

    def __init__(self, path: str, number: int, queue_max: int) -> None:
        self.path = path
        self.number = number
        self.position: Position | None = None
        self.reached: Position | None = None
        """The position at which it last began anew: messages that a server had sent before that may come late."""
        self.reason: str | None = None
        self.items: list[list[Any]] = []
        self._queue_max = queue_max

    def take_state(self, message: WatchState) -> None:
        """Take the state at the beginning or after a gap, unless it is older than what was taken already."""
        if self.position is not None and message.error is None:
            return
        known = self.position or self.reached
        if known is not None and message.upto < known:
            return
        values = {state.key: state.value for state in message.state}
        self.items.append(["state", list(message.upto), values, message.error or self.reason])
        self.position = message.upto
        self.reason = None

    def take_batch(self, batch: WatchBatch) -> bool:
        """Take what is new in `batch`; False when something before it is missing."""
        if self.position is None or self.is_full:
            return True
        if batch.after > self.position:
            return False
        for event in batch.events:
            if self.is_new(event):
                self.items.append(["event", event.index, event.ordinal, event.key, event.value, event.is_deleted])
        self.position = max(self.position, batch.upto)
        return True

    def is_new(self, event: WatchEvent) -> bool:
        """Return whether it has not been taken before."""
        assert self.position is not None
        return event.position > self.position

    def lose(self, reason: str) -> None:
        """Begin anew with the state: events between here and there are lost, for that reason."""
        self.reached = self.position or self.reached
        self.position = None
        self.reason = reason

    @property
    def is_full(self) -> bool:
        """Full, so that nothing is taken, and the position stays where it is."""
        return len(self.items) >= self._queue_max

    def drain(self) -> list[list[Any]]:
        """Return all items since the last call, and the position reached."""
        items, self.items = self.items, []
        if self.position is not None:
            items.append(["upto", list(self.position)])
        return items


class ClientWatches:
    """All watches of one client; they share its channel to the leader."""

    watch_type: type[ClientWatch] = ClientWatch

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], node: NodeId, settings: ServiceSettings) -> None:
        self._ports = ports
        self._members = members
        self._target = node
        self._settings = settings
        self._watches: dict[str, ClientWatch] = {}
        self._numbers = 0
        self._heard_us = 0
        self._is_confirming = False

    def watch(self, path: str) -> ClientWatch:
        """Begin to watch `path`, in the place of an earlier watch on it."""
        self.close(path)
        self._numbers += 1
        watch = self._watches[path] = self.watch_type(path, self._numbers, self._settings.watch_queue_max)
        self._ask(watch)
        if not self._is_confirming:
            self._is_confirming = True
            self._heard_us = self._ports.clock.monotonic_us()
            self._ports.timers.every(self._settings.watch_confirm_us, self._confirm)
        return watch

    def get(self, path: str) -> ClientWatch | None:
        """Return the watch on `path`, if there is one."""
        return self._watches.get(path)

    def drain(self, watch: ClientWatch) -> list[list[Any]]:
        """Return everything that came since the last time; a watch that was full asks for more at once."""
        was_full = watch.is_full
        items = watch.drain()
        if was_full:
            self._ask(watch)
        return items

    def close(self, path: str) -> None:
        """Watch `path` no longer."""
        watch = self._watches.pop(path, None)
        if watch is not None:
            self._ports.network.send(self._target, CloseWatch(path, watch.number))

    def _ask(self, watch: ClientWatch) -> None:
        delivery = self._settings.watch_delivery
        request = WatchRequest(watch.path, watch.number, watch.position, delivery != "pull", delivery == "once")
        self._ports.network.send(self._target, request)

    def _confirm(self) -> None:
        """Tell how far each watch got; to the next server if this one has been silent for too long."""
        silence_us = self._ports.clock.monotonic_us() - self._heard_us
        if self._watches and silence_us > self._settings.watch_silence_us:
            self._turn_to_next_member()
        self.confirm()

    def confirm(self) -> None:
        """Set all watches again, where they are."""
        for watch in self._watches.values():
            self._ask(watch)

    def _turn_to_next_member(self) -> None:
        members = self._members
        self._target = members[(members.index(self._target) + 1) % len(members)]
        self._heard_us = self._ports.clock.monotonic_us()

    def receive(self, source: NodeId, message: Any) -> None:
        """Take what a server says about a watch; what is said about an earlier one is late."""
        watch = self._watches.get(message.path)
        if watch is None or watch.number != message.number:
            return
        kind = type(message)
        if kind is WatchRefused:
            self._handle_refused(source, watch, message)
            return
        self._heard_us = self._ports.clock.monotonic_us()
        if kind is WatchState:
            self._ports.trace.sometimes("watch-set")
            watch.take_state(message)
        elif kind is WatchBatch:
            self._handle_batch(watch, message)

    def _handle_batch(self, watch: ClientWatch, batch: WatchBatch) -> None:
        if not watch.take_batch(batch):
            self._ports.trace.sometimes("watch-batch-missed")
            self._ask(watch)
        elif batch.events and self._settings.watch_delivery == "once":
            watch.lose(REARMED)
            self._ask(watch)

    def _handle_refused(self, source: NodeId, watch: ClientWatch, refused: WatchRefused) -> None:
        if refused.error != NOT_LEADER:
            watch.lose(refused.error)
            self._ask(watch)
        elif source == self._target and refused.leader_id not in (None, source):
            self._target = NodeId(str(refused.leader_id))
            self._ports.trace.sometimes("watch-resumed")
            self._ask(watch)
        elif source == self._target:
            self._turn_to_next_member()
