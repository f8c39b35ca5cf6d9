"""The least value that a number had since some moment, for numbers that move."""

from __future__ import annotations

from bisect import bisect_right

__all__ = ["Minima"]


class Minima:
    """A number that moves over time, and its least value from any past moment until now.

    Kept as a stack: values grow from the bottom to the top, and each covers the time from `since` on.
    """

    def __init__(self, value: int) -> None:
        self._now = value
        self._covers = [-1]
        self._values = [value]

    def move(self, index: int, delta: int) -> None:
        """Change the number by `delta` at `index`."""
        self._now += delta
        covers = index
        while self._values and self._values[-1] >= self._now:
            covers = self._covers.pop()
            self._values.pop()
        self._covers.append(covers)
        self._values.append(self._now)

    def forget(self, before: int) -> None:
        """Forget what only matters to questions about times before `before`."""
        first = bisect_right(self._covers, before) - 1
        del self._covers[:first], self._values[:first]

    def since(self, index: int) -> int:
        """Return the least value from `index` until now."""
        return self._values[bisect_right(self._covers, index) - 1]
