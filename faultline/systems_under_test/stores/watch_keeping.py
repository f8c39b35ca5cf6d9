"""The watches of one client: `watch` begins one, `drain` takes its events, and neither waits for the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, fail, ok
from faultline.systems_under_test.stores.watch_log import WatchLog

__all__ = ["NOT_WATCHING", "StoreWatch", "WatchKeeping"]

NOT_WATCHING = "not-watching"
"""The error of a drain without a watch: definite, since no request was sent."""


class StoreWatch(Protocol):
    """A watch that follows its store by itself once it is made."""

    log: WatchLog

    def close(self) -> None:
        """End the watch."""


class WatchKeeping:
    """The watches of one client, at most one on each path; `begin` makes a watch on a path."""

    def __init__(self, begin: Callable[[str], StoreWatch]) -> None:
        self._begin = begin
        self._watches: dict[str, tuple[int, StoreWatch]] = {}
        self._numbers = 0

    def serve(self, operation: Operation) -> Outcome | None:
        """Return the outcome of `watch` or `drain`; None for any other function."""
        path = str(operation.key)
        if operation.f == "watch":
            return ok({"number": self._watch(path)})
        return self._drain(path) if operation.f == "drain" else None

    def close(self) -> None:
        """End all watches."""
        for _, watch in self._watches.values():
            watch.close()
        self._watches.clear()

    def _watch(self, path: str) -> int:
        """Begin to watch `path`, in the place of an earlier watch on it."""
        if path in self._watches:
            self._watches.pop(path)[1].close()
        self._numbers += 1
        self._watches[path] = self._numbers, self._begin(path)
        return self._numbers

    def _drain(self, path: str) -> Outcome:
        if path not in self._watches:
            return fail(NOT_WATCHING)
        number, watch = self._watches[path]
        return ok({"number": number, "items": watch.log.drain()})
