"""Effects without their causes, while operations come and go: incremental twins of two checkers of order.

- `IncrementalCausalPairs`: a read must not see the right half of a pair with an older left half
  (`checkers.causal_pairs`). State: for each key the numbers that were written, until there are more than VALUES_MAX;
  numbers that no write had been called to put are then left to the check afterwards. Of numbers with attempts that are
  not acknowledged, how many there are.
- `IncrementalCausalReverse`: a read that sees a write sees all that were acknowledged before it was called
  (`checkers.classic.causal_reverse`). State: three numbers for each write. A read answers with all values, so that is
  no more than an answer. A key whose value is written again is left to the check afterwards, which refuses it.

Both compare an answer with what had happened by then, so that nothing later can explain it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable

from faultline.checkers.common.shape import is_number
from faultline.checkers.common.words import token, tokens
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome

__all__ = ["VALUES_MAX", "IncrementalCausalPairs", "IncrementalCausalReverse"]

VALUES_MAX = 10_000
"""The most numbers of one pair that are kept."""


class IncrementalCausalPairs:
    """Writes and reads of a pair for each key."""

    name = "causal-pairs"

    def __init__(self, *, values_max: int = VALUES_MAX) -> None:
        self._values_max = values_max
        self._written: dict[str | None, set[Hashable]] = {}
        self._unacknowledged: Counter[tuple[str | None, Hashable]] = Counter()
        self._open: dict[int, Operation] = {}

    @property
    def left(self) -> tuple[str | None, ...]:
        """The keys whose numbers are left to the check afterwards."""
        return tuple(key for key, written in self._written.items() if len(written) > self._values_max)

    def invoke(self, row: int, operation: Operation) -> None:
        """Take an invocation."""
        self._open[row] = operation
        written = self._written.setdefault(operation.key, set())
        if operation.f == "write-pair":
            self._unacknowledged[operation.key, token(operation.value)] += 1
            if len(written) <= self._values_max:
                written.add(token(operation.value))

    def complete(self, row: int, outcome: Outcome) -> tuple[int, ...]:
        """Take a completion; return the row of a wrong read, none without one."""
        operation, halves = self._open.pop(row), outcome.value
        if operation.f == "write-pair" and outcome.kind == "ok":
            self._acknowledge((operation.key, token(operation.value)))
        if operation.f != "read-pair" or outcome.kind != "ok":
            return ()
        if not isinstance(halves, list | tuple) or len(halves) != 2:
            return ()
        left, right = halves
        if not all(half is None or is_number(half) for half in halves):
            return ()
        written = self._written[operation.key]
        is_complete = len(written) <= self._values_max
        # A pair that failed may have written its left half, so that a number counts once its write was called.
        if is_complete and any(half is not None and half not in written for half in halves):
            return (row,)
        # An attempt that is not acknowledged may put its left half late, over that of a later pair.
        is_reverse = right is not None and (
            left is None or (left < right and not self._unacknowledged[operation.key, left])
        )
        return (row,) if is_reverse and (is_complete or right in written) else ()

    def _acknowledge(self, number: tuple[str | None, Hashable]) -> None:
        self._unacknowledged[number] -= 1
        if not self._unacknowledged[number]:
            del self._unacknowledged[number]


class _Write:
    """A write of one value: its call, whether it was acknowledged or failed, its return, and who saw the value."""

    __slots__ = ("call", "has_failed", "reader", "returned", "row")

    def __init__(self, row: int, call: int) -> None:
        self.row, self.call = row, call
        self.returned: int | None = None
        self.has_failed = False
        self.reader: int | None = None


class _Values:
    """The writes of one key by value, and the acknowledged ones in order of their returns."""

    def __init__(self) -> None:
        self.writes: dict[Hashable, _Write] = {}
        self.acknowledged: list[Hashable] = []
        self.ends: list[int] = []
        self.is_left = False

    def missing(self, seen: tuple[Hashable, ...]) -> tuple[int, ...]:
        """Return the rows of a write missing in `seen` and of the last write in it; none if no write is missing."""
        known = [self.writes[value] for value in seen]
        call, latest = max(((write.call, write.row) for write in known), default=(0, 0))
        due = bisect_left(self.ends, call)
        if sum(write.returned is not None and write.returned < call for write in known) == due:
            return ()
        lacks = next(value for value in self.acknowledged if value not in seen)
        return (self.writes[lacks].row, latest)


class IncrementalCausalReverse:
    """Writes of values that differ, and reads of all values, for each key."""

    name = "causal-reverse"

    def __init__(self) -> None:
        self._keys: dict[str | None, _Values] = {}
        self._open: dict[int, Operation] = {}
        self._now = 0

    @property
    def left(self) -> tuple[str | None, ...]:
        """The keys that are left to the check afterwards."""
        return tuple(name for name, key in self._keys.items() if key.is_left)

    def invoke(self, row: int, operation: Operation) -> None:
        """Take an invocation."""
        self._now += 1
        self._open[row] = operation
        key = self._keys.setdefault(operation.key, _Values())
        if operation.f == "write" and not key.is_left:
            write = key.writes.setdefault(token(operation.value), _Write(row, self._now))
            key.is_left = write.row != row

    def complete(self, row: int, outcome: Outcome) -> tuple[int, ...]:
        """Take a completion; return the rows that show a wrong read, none without one."""
        self._now += 1
        operation = self._open.pop(row)
        key = self._keys[operation.key]
        if key.is_left:
            return ()
        if operation.f == "write":
            return self._written(key, token(operation.value), row, outcome)
        answer = () if outcome.value is None else outcome.value
        if operation.f != "read" or outcome.kind != "ok" or not isinstance(answer, list | tuple):
            return ()
        seen = tuple(dict.fromkeys(tokens(answer)))
        for value in seen:
            write = key.writes.get(value)
            if write is None or write.has_failed:
                return (row,)
            write.reader = row if write.reader is None else write.reader
        missing = key.missing(seen)
        return (*missing, row) if missing else ()

    def _written(self, key: _Values, value: Hashable, row: int, outcome: Outcome) -> tuple[int, ...]:
        write = key.writes[value]
        if outcome.kind == "ok":
            write.returned = self._now
            key.acknowledged.append(value)
            key.ends.append(self._now)
        elif outcome.kind == "fail":
            write.has_failed = True
            return () if write.reader is None else (write.reader, row)
        return ()
