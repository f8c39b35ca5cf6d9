"""A data node as a client of the core: the core's own client library, with a queue of operations.

The library performs one operation at a time, and meanwhile keeps leases alive and watches set. This module adds a queue
for a node's operations, and for each watched path a copy of the values below it, kept up to date by the events, with a
call after each change. Calls from the library go through the node's queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.cluster_management.lease import HeldLease
from faultline.systems_under_test.reference.coordinated_kv.core import Done, Enter, WatchedPath
from faultline.systems_under_test.reference.coordinated_kv.options import CoordinatedSettings
from faultline.systems_under_test.reference.leases_and_watches.client import ServicedClient
from faultline.systems_under_test.reference.leases_and_watches.messages import (
    LeaseRefreshed,
    WatchBatch,
    WatchRefused,
    WatchState,
)
from faultline.systems_under_test.reference.shared.client_messages import (
    ClientResponse,
    RedirectToLeader,
    RegisterClientResponse,
)

__all__ = ["OF_THE_CORE", "CoreSession"]

OF_THE_CORE = (
    ClientResponse,
    RedirectToLeader,
    RegisterClientResponse,
    LeaseRefreshed,
    WatchBatch,
    WatchState,
    WatchRefused,
)
"""The messages of the core to its clients."""


class CoreSession:
    """One node's session with the core: implements `Core`."""

    messages = OF_THE_CORE

    def __init__(self, ports: Ports, settings: CoordinatedSettings, enter: Enter) -> None:
        core = settings.core_members
        self._client = ServicedClient(ports, core, core[0], settings.core)
        self._enter = enter
        self._asked: deque[tuple[Operation, Done]] = deque()
        self._is_busy = False
        self._watched: dict[str, WatchedPath] = {}

    def start(self) -> None:
        """Open a session."""
        self._client.start()

    def receive(self, source: NodeId, message: Any) -> None:
        """Take a message of the core."""
        self._client.receive(source, message)
        if isinstance(message, WatchBatch | WatchState):
            self._take_news(message.path)

    def ask(self, f: str, key: str, value: Any, done: Done) -> None:
        """Perform the function `f` of the core's client after all earlier ones; `done` gets the outcome."""
        self._asked.append((Operation(0, f, key, value), done))
        self._next()

    def _next(self) -> None:
        if self._is_busy or not self._asked:
            return
        self._is_busy = True
        operation, done = self._asked.popleft()

        def finished(outcome: Outcome) -> None:
            self._is_busy = False
            self._enter(lambda: done(outcome))
            self._enter(self._next)

        self._client.invoke(operation, finished)

    def held(self, lease: str) -> HeldLease | None:
        """Return the lease if this node may still act as its owner, else None."""
        return self._client.holding.held(lease)

    def watch(self, path: str, changed: Callable[[], None]) -> WatchedPath:
        """Keep a copy of the values at and below `path`; call `changed` after each change."""
        watched = self._watched[path] = WatchedPath(changed)
        self._client.watches.watch(path)
        return watched

    def close(self, path: str) -> None:
        """Stop watching `path`."""
        self._watched.pop(path, None)
        self._client.watches.close(path)

    def _take_news(self, path: str) -> None:
        watch, watched = self._client.watches.get(path), self._watched.get(path)
        if watch is not None and watched is not None and watched.take(self._client.watches.drain(watch)):
            self._enter(watched.changed)
