"""Zones of one register while operations come and go: the incremental form of `linearizability.engine.zones`.

Every value has one writer, so the operations on a value form its *cluster*. Let f(v) be the first return of an
operation of cluster v and s(v) the last call of one (Gibbons & Korach, "Testing shared memories", 1997, section 4). The
value v must come before u exactly when f(v) < s(u). A history is illegal exactly when two clusters must come before
each other, a read saw a value that no write had been called to put, or a write that was seen has certainly failed.

f(v) is fixed by the first return of the cluster, and s(v) only grows. So the state that decides is small: the *line* of
values in order of f, and for each value its *deadline* d(v), the smallest f(u) over all u that v must come before.

*Each conflict is seen at the later of the two returns that make it.* Let u and v conflict: f(v) < s(u), f(u) < s(v).
Let the later return of the operations that have these four times be one of cluster v (else exchange the names). At that
return u stands in the line with its final s(u) and f(u). `_see` raises s(v), gives d(u) <= f(v) to every u in the line
with f(u) < s(v), and finds s(u) > d(u). A violation that was present before is found earlier for the same reason.

*A value may be dropped when it has a deadline and every open read was called after that.* A further read of v would
have a call after d(v) = f(u), so f(u) < s(v) and f(v) < s(u) would conflict: a read of a value that is not there is a
violation, as if it had never been written. The writer of v changes nothing if it is still open: the value was seen, so
its call counted then, and f(v) is earlier than its return. Hence s(v) is final, and s(v) <= d(v), or a violation was
found before. A conflict of v with some w that shows later needs f(w) < s(v). Then w stood in the line at the return
that set s(v), and got d(w) <= f(v) at the latest then. The operation of w that makes f(v) < s(w) is past that deadline.

An operation that is open when values are dropped keeps them only if it is a read, since it can return any value written
since its call. So memory is bounded by the number of writes during the longest open read, and of writes whose outcome
is unknown and which no read has seen.
"""

from __future__ import annotations

from collections.abc import Iterator

from faultline.checkers.linearizability.operations import Value

__all__ = ["INITIAL", "ZoneRegister"]

INITIAL: Value = None
"""The value of a register that was never written."""

_NEVER = 1 << 62
_SWEEP_LEAST = 16


class _Cluster:
    """The operations on one value that returned, and its writer. Rows stand beside the times for evidence."""

    # The cluster that sets the deadline is named by a row: a reference would keep a chain of all that went before.
    __slots__ = (
        *("value", "writer", "write_call", "crashed"),
        *("first_return", "first_row", "last_call", "deadline", "deadline_row"),
    )

    def __init__(self, value: Value, writer: int, write_call: int) -> None:
        self.value = value
        self.writer = writer
        self.write_call = write_call
        self.first_return = _NEVER
        self.first_row = writer
        self.last_call = write_call
        self.deadline = _NEVER
        self.deadline_row = writer
        self.crashed = False


class ZoneRegister:
    """One register whose writes put values that are not alive. Rows are those of the history."""

    def __init__(self) -> None:
        self._now = 0
        initial = _Cluster(INITIAL, -1, -1)
        initial.first_return = -1
        self._alive: dict[Value, _Cluster] = {INITIAL: initial}
        self._line = [initial]
        self._reads: dict[int, int] = {}
        self._writes: dict[int, _Cluster] = {}
        self._sweep_at = _SWEEP_LEAST

    @property
    def is_quiescent(self) -> bool:
        """True when no operation is open, apart from writes whose outcome stays unknown."""
        return not self._reads and not self._writes

    @property
    def size(self) -> int:
        """The number of values and open operations that are kept."""
        return len(self._alive) + len(self._reads) + len(self._writes)

    def is_alive(self, value: Value) -> bool:
        """Return whether a read could still return `value`: then another write of it has no cluster of its own."""
        if value in self._alive:
            self._sweep()
        return value in self._alive

    def last_values(self) -> Iterator[Value]:
        """Return the values that the register may hold at this quiescent moment, in order of their first return.

        Clusters without a conflict are partially ordered by what must come before what, and each maximal one can be
        the last.
        """
        return (cluster.value for cluster in self._line if cluster.deadline == _NEVER)

    def unseen_writes(self) -> Iterator[tuple[int, Value]]:
        """Return row and value of the writes whose outcome stays unknown and which no read has seen."""
        return ((one.writer, one.value) for one in self._alive.values() if one.crashed and one.first_return == _NEVER)

    def invoke_read(self, row: int) -> None:
        """Take the call of a read."""
        self._now = self._reads[row] = self._now + 1

    def invoke_write(self, row: int, value: Value) -> None:
        """Take the call of a write of `value`, which must not be alive."""
        self._now += 1
        self._alive[value] = self._writes[row] = _Cluster(value, row, self._now)

    def complete_read(self, row: int, value: Value) -> tuple[int, ...]:
        """Take the return of a read that saw `value`; return rows that conflict, none when there is no conflict."""
        self._now += 1
        call = self._reads.pop(row)
        cluster = self._alive.get(value)
        if cluster is None:
            return (row,)
        return self._see(cluster, call, row)

    def abandon_read(self, row: int) -> None:
        """Take the end of a read that tells nothing."""
        del self._reads[row]

    def complete_write(self, row: int) -> tuple[int, ...]:
        """Take the return of a write; return rows that conflict, none when there is no conflict."""
        self._now += 1
        cluster = self._writes.pop(row)
        return self._see(cluster, cluster.write_call, row)

    def crash_write(self, row: int) -> None:
        """Take the end of a write whose outcome stays unknown."""
        self._writes.pop(row).crashed = True

    def fail_write(self, row: int) -> tuple[int, ...]:
        """Take the end of a write that certainly did not happen; return the read that saw its value and its row."""
        cluster = self._writes.pop(row)
        if cluster.first_return != _NEVER:
            return (cluster.first_row, row)
        del self._alive[cluster.value]
        return ()

    def _see(self, cluster: _Cluster, call: int, row: int) -> tuple[int, ...]:
        """Take an operation of `cluster` that returns now: the step of the proof in the module's docstring."""
        told_until = cluster.last_call
        if cluster.first_return == _NEVER:
            cluster.first_return, cluster.first_row = self._now, row
            self._line.append(cluster)
            told_until = -1
        elif call <= told_until:
            return ()
        last_call = cluster.last_call = max(cluster.last_call, call)
        if last_call > cluster.deadline:
            return (cluster.first_row, cluster.deadline_row, row)
        first_return = cluster.first_return
        for other in reversed(self._line):
            # Values whose first return is before `told_until` were told of this cluster when it had that last call.
            if other.first_return < told_until:
                break
            if other.first_return < last_call and first_return < other.deadline and other is not cluster:
                other.deadline, other.deadline_row = first_return, cluster.first_row
                if other.last_call > first_return:
                    return (other.first_row, cluster.first_row, row)
        if len(self._line) >= self._sweep_at:
            self._sweep()
        return ()

    def _sweep(self) -> None:
        """Drop the values that no open or later read may return. The next sweep waits until the line has doubled."""
        oldest_read = next(iter(self._reads.values()), self._now + 1)
        kept = []
        for cluster in self._line:
            if cluster.deadline >= oldest_read:
                kept.append(cluster)
            else:
                del self._alive[cluster.value]
        self._line = kept
        self._sweep_at = max(2 * len(kept), _SWEEP_LEAST)
