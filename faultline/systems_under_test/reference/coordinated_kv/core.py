"""The core, as a data node uses it: operations, leases and watched paths.

A node depends on this interface alone; `core_session` implements it with the client library of the core.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from faultline.harness.outcome import Outcome
from faultline.harness.world.ports import NodeId

__all__ = ["Core", "Done", "Enter", "Lease", "WatchedPath"]

Done = Callable[[Outcome], None]
"""A function that takes the outcome of an operation."""

Enter = Callable[[Callable[[], None]], None]
"""A function that runs a step on the update queue of the node."""


class WatchedPath:
    """The values at and below a path, as far as events have told."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.values: dict[str, Any] = {}
        self.is_known = False
        self.changed = changed

    def take(self, items: list[list[Any]]) -> bool:
        """Take the items that a watch of the core's client delivered; return whether they brought news."""
        for item in items:
            if item[0] == "state":
                self.is_known = True
                self.values = dict(item[2])
            elif item[0] == "event":
                self._take_event(*item[3:])
        return any(item[0] != "upto" for item in items)

    def _take_event(self, key: str, value: Any, is_deleted: bool) -> None:
        if is_deleted:
            self.values.pop(key, None)
        else:
            self.values[key] = value


class Lease(Protocol):
    """A lease that this node may still act under."""

    @property
    def token(self) -> int:
        """Its fencing token, greater than those of all earlier owners."""


class Core(Protocol):
    """The core, as one node uses it."""

    @property
    def messages(self) -> tuple[type, ...]:
        """The messages of the core to its clients, which `receive` takes."""

    def start(self) -> None:
        """Open a session."""

    def receive(self, source: NodeId, message: Any) -> None:
        """Take a message of the core."""

    def ask(self, f: str, key: str, value: Any, done: Done) -> None:
        """Perform the function `f` of the core's client after all earlier ones; `done` gets the outcome."""

    def held(self, lease: str) -> Lease | None:
        """Return the lease if this node may still act as its owner, else None."""

    def watch(self, path: str, changed: Callable[[], None]) -> WatchedPath:
        """Keep a copy of the values at and below `path`; call `changed` after each change."""

    def close(self, path: str) -> None:
        """Stop watching `path`."""
