"""The events of a watch on a real store that were not taken yet: filled by one thread, drained by another.

The items are those of the workload `watches` (`faultline.checkers.watches`): a state, then events, and with every drain
the index up to which all events were told. The filling thread sets that index. No event is dropped or put in order
here, so that events which a store repeats or mixes up are seen.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from faultline.harness.errors import HarnessError
from faultline.systems_under_test.patterns.cluster_management.state_watch import end_of

__all__ = ["WatchLog"]


class WatchLog:
    """The items of one watch since the last drain; every index is told whole or not at all."""

    def __init__(self) -> None:
        self._items: list[list[Any]] = []
        self._upto: int | None = None
        self._broken = ""
        self._lock = threading.Lock()

    @property
    def upto(self) -> int | None:
        """The index up to which all events were told; None before the first state."""
        return self._upto

    def begin(self, index: int, values: Mapping[str, Any], reason: str | None) -> None:
        """Begin with the content at `index`: at first, and after a gap, with its reason."""
        with self._lock:
            self._items.append(["state", list(end_of(index)), dict(values), reason])
            self._upto = index

    def add(self, index: int, ordinal: int, key: str, value: Any, *, is_deleted: bool) -> None:
        """Add one event; `told_upto` follows when all of its index were added."""
        with self._lock:
            self._items.append(["event", index, ordinal, key, value, is_deleted])

    def told_upto(self, index: int) -> None:
        """Note that all events up to `index` were told."""
        with self._lock:
            self._upto = max(self._upto or 0, index)

    def break_off(self, why: str) -> None:
        """Note that nothing more will be told, for the reason `why`, which is none of the store's."""
        with self._lock:
            self._broken = why

    def drain(self) -> list[list[Any]]:
        """Take the items since the last drain, and the index up to which they are complete.

        Raises HarnessError when the watch has ended by a mistake of its adapter.
        """
        with self._lock:
            if self._broken:
                raise HarnessError(self._broken, "Report it with the run's folder: the store has done nothing wrong.")
            items, self._items = self._items, []
            return items if self._upto is None else [*items, ["upto", list(end_of(self._upto))]]
