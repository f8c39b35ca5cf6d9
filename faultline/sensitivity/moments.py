"""The moments at which stores forget: the beginnings and ends of faults, as indices of the history."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import TypeVar

from faultline.harness.history import History

__all__ = ["NEVER", "Moments", "drawn"]

NEVER = 1 << 62
"""A moment after the end of the history."""

Item = TypeVar("Item")


class Moments:
    """The moments of a history. Without any fault every index is a moment, so that a write is lost at its
    acknowledgement."""

    def __init__(self, history: History) -> None:
        missed = {event.value.get("fault") for event in history.faults if event.value.get("applied")}
        self._indices = [
            event.index
            for event in history.faults
            if event.f.startswith(("start-", "stop-")) and event.value.get("fault") not in missed
        ]

    def between(self, begin: int, end: int = NEVER) -> Sequence[int]:
        """Return the moments after `begin` and before `end`."""
        if not self._indices:
            return [begin]
        return self._indices[bisect_right(self._indices, begin) : bisect_left(self._indices, end)]


def drawn(items: Sequence[Item], chance: int) -> Item:
    """Return one of `items`, chosen by `chance`."""
    return items[chance % len(items)]
