"""A watch that follows its store in a thread: at one member while that answers, at the next one when it does not.

Each adapter reads the content and the changes in its own way (`follow`). When a store says that it has discarded the
next events, the adapter notes the `gap`, stops, and begins again with the present content, so that the gap is announced
with it. A watch that broke without a gap goes on behind the last index that was told.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from faultline.systems_under_test.stores.watch_log import WatchLog

__all__ = ["FollowedWatch"]

_PAUSE_S = 0.05


class FollowedWatch(ABC):
    """A watch on `path` from `start` to `close`; `log` holds its events.

    `failures` are the exceptions that mean trouble with a member, after which the next one is followed.
    """

    failures: ClassVar[tuple[type[Exception], ...]]

    def __init__(self, path: str, first_member: int) -> None:
        self.path = path
        self.log = WatchLog()
        self.gap: str | None = None
        """The reason why the content has to be read anew, if it has."""
        self._member = first_member
        self._is_over = threading.Event()
        self._following = threading.Thread(target=self._follow_on, name=f"watch-{path}", daemon=True)

    @abstractmethod
    def follow(self, member: int) -> None:
        """Follow the member of this number for as long as `goes_on`. Raises the failure that ends it."""

    def start(self) -> None:
        """Follow from now on; an adapter calls this when it is ready."""
        self._following.start()

    def close(self) -> None:
        """End the watch, and wait for its thread."""
        self._is_over.set()
        self._following.join()

    @property
    def is_over(self) -> bool:
        """True once the watch was closed."""
        return self._is_over.is_set()

    @property
    def is_following(self) -> bool:
        """True until the watch was closed, or ended by a mistake of the adapter."""
        return self._following.is_alive()

    @property
    def goes_on(self) -> bool:
        """True while more changes are wanted: it is open, and no event is missing."""
        return not self.is_over and self.gap is None

    @property
    def is_new(self) -> bool:
        """True if the content has to be read before any change is told."""
        return self.log.upto is None or self.gap is not None

    def begin(self, index: int, values: Mapping[str, Any]) -> None:
        """Log the content at `index`, with the gap that it closes."""
        self.log.begin(index, values, self.gap)
        self.gap = None

    def _follow_on(self) -> None:
        """Follow one member after the other, until the end."""
        while not self.is_over:
            try:
                self.follow(self._member)
            except self.failures:
                self._member += 1
                self._is_over.wait(_PAUSE_S)
            except Exception as error:
                # Without this the thread would end unseen, and the store be accused of telling nothing more.
                self.log.break_off(f"The watch on {self.path} ended by a mistake of the adapter: {error!r}.")
                return
