"""Counters while operations come and go: the incremental twin of `checkers.classic.counter`.

An addition in flight may count or not, so it widens the bounds of the counter at its call, and narrows them when it is
acknowledged or has certainly failed. One whose outcome is unknown leaves them wide. A read must lie between the least
lower bound and the greatest upper bound since its call.

The check afterwards knows from the beginning which additions failed. A read that returned before that was known was
judged here by wider bounds, so a few violations are left to that check. None is invented.

State per counter: two bounds, and their extremes since the call of the oldest open read.
"""

from __future__ import annotations

from collections.abc import Mapping

from faultline.checkers.common.minima import Minima
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome

__all__ = ["IncrementalCounters"]


class _Counter:
    def __init__(self, initial: int) -> None:
        self.lower, self.upper = Minima(initial), Minima(-initial)
        self.reads: dict[int, int] = {}

    def move(self, now: int, delta: int, *, is_begin: bool) -> None:
        """Let an addition of `delta` begin, which widens, or be acknowledged, which narrows."""
        if is_begin == (delta < 0):
            self.lower.move(now, delta)
        else:
            self.upper.move(now, -delta)

    def undo(self, now: int, delta: int) -> None:
        """Take back the beginning of an addition."""
        if delta < 0:
            self.lower.move(now, -delta)
        else:
            self.upper.move(now, delta)

    def forget(self, now: int) -> None:
        """Forget bounds that no open read can need."""
        oldest = next(iter(self.reads.values()), now)
        self.lower.forget(oldest)
        self.upper.forget(oldest)


class IncrementalCounters:
    """Additions to and reads of a counter for each key, which begins with `initial`.

    `signs` are the functions that add, with the sign of their amounts.
    """

    name = "counter"

    def __init__(self, initial: int, signs: Mapping[str, int]) -> None:
        self._initial, self._signs = initial, signs
        self._counters: dict[str | None, _Counter] = {}
        self._open: dict[int, tuple[_Counter, int | None]] = {}
        self._now = 0

    def invoke(self, row: int, operation: Operation) -> None:
        """Take an invocation. Raise ValueError for one that changes no counter."""
        self._now += 1
        counter = self._counters.setdefault(operation.key, _Counter(self._initial))
        if operation.f == "read":
            counter.reads[row] = self._now
            self._open[row] = counter, None
            return
        amount = 1 if operation.value is None and operation.f != "add" else operation.value
        if operation.f not in self._signs or type(amount) is not int:
            raise ValueError(f"{operation.f} of {operation.value!r} is no addition to a counter")
        delta = self._signs[operation.f] * amount
        counter.move(self._now, delta, is_begin=True)
        self._open[row] = counter, delta

    def complete(self, row: int, outcome: Outcome) -> tuple[int, ...]:
        """Take a completion; return the row of a read out of bounds, none without one."""
        self._now += 1
        counter, delta = self._open.pop(row)
        if delta is not None:
            if outcome.kind == "ok":
                counter.move(self._now, delta, is_begin=False)
            elif outcome.kind == "fail":
                counter.undo(self._now, delta)
            counter.forget(self._now)
            return ()
        call, value = counter.reads.pop(row), outcome.value
        if outcome.kind != "ok" or type(value) is not int:
            return ()
        return () if counter.lower.since(call) <= value <= -counter.upper.since(call) else (row,)
