"""What a watch on a real store was told and nobody has taken yet: filled by one thread, drained by another.

The items are those of the workload `watches` (`faultline.checkers.watches`): a state, then events, and with every drain
up to where everything was told. Whoever fills it says where it stands; nothing is dropped or put in order here, so
that what a store repeats or mixes up is seen.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from faultline.systems_under_test.patterns.cluster_management.state_watch import end_of

__all__ = ["WatchLog"]


class WatchLog:
    """The items of one watch since the last drain. Every index is told whole or not at all."""

    def __init__(self) -> None:
        self._items: list[list[Any]] = []
        self._upto: int | None = None
        self._lock = threading.Lock()

    @property
    def upto(self) -> int | None:
        """Everything up to this index was told; None before the first state."""
        return self._upto

    def begin(self, index: int, values: Mapping[str, Any], reason: str | None) -> None:
        """The content at `index`: at first, and after a gap, for the reason that is given."""
        with self._lock:
            self._items.append(["state", list(end_of(index)), dict(values), reason])
            self._upto = index

    def add(self, index: int, ordinal: int, key: str, value: Any, *, is_deleted: bool) -> None:
        """One event; `told_upto` follows when all of its index were added."""
        with self._lock:
            self._items.append(["event", index, ordinal, key, value, is_deleted])

    def told_upto(self, index: int) -> None:
        """Everything up to `index` was told."""
        with self._lock:
            self._upto = max(self._upto or 0, index)

    def drain(self) -> list[list[Any]]:
        """What came since the last time, and up to where that is everything."""
        with self._lock:
            items, self._items = self._items, []
            return items if self._upto is None else [*items, ["upto", list(end_of(self._upto))]]
