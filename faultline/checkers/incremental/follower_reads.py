"""Reads that need not be fresh, while operations come and go: the incremental twin of `checkers.follower_reads`.

A session (a process) must not read a value that is older than one that it has written or read. Versions order two
writes that both have one; else the first must have completed before the second was called. The version of a write that
is open is not known yet, and may contradict these times. So both of its comparisons wait: a value that a session saw
counts for its later reads once the write has ended, and a read of a value whose write is open is not compared. The
session is found out by its next read, or by the check afterwards. A value that was never written, or whose write
failed after all, is certain as it is.

State for each key: its values, and for each session the newest of those that it has seen. A key whose value is written
again, or that has had more than VALUES_MAX, is left to the check afterwards, as is the bound in time.
"""

from __future__ import annotations

from collections.abc import Hashable

from faultline.checkers.common.words import token
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome

__all__ = ["VALUES_MAX", "IncrementalFollowerReads"]

VALUES_MAX = 10_000
"""The most values of one key that are kept."""

_NEVER = 1 << 62

_At = tuple[int, int]
"""A version or a moment, and the row that tells of it; a greater one is newer."""


class _Write:
    """The write of one value: its call and return, its version, and the first read that saw the value."""

    __slots__ = ("call", "has_failed", "is_known", "is_open", "reader", "returned", "version")

    def __init__(self, call: int) -> None:
        self.call, self.returned = call, _NEVER
        self.is_open, self.is_known, self.has_failed = True, False, False
        self.version: int | None = None
        self.reader: int | None = None


class _Session:
    """The newest writes of a key that a session has seen: by version, by call, and by call where versions are missing.

    `waiting` are writes that are open, with the row that has seen each.
    """

    __slots__ = ("call", "call_without_version", "version", "waiting")

    def __init__(self) -> None:
        self.version: _At = (-_NEVER, -1)
        self.call: _At = (-1, -1)
        self.call_without_version: _At = (-1, -1)
        self.waiting: dict[_Write, int] = {}

    def see(self, write: _Write, row: int) -> None:
        """Take that `row` has written or read the value of `write`."""
        if write.is_open:
            self.waiting.setdefault(write, row)
            return
        self.call = max(self.call, (write.call, row))
        if write.version is None:
            self.call_without_version = max(self.call_without_version, (write.call, row))
        else:
            self.version = max(self.version, (write.version, row))

    def newer_than(self, write: _Write | None) -> int | None:
        """Return a row that has seen a value newer than that of `write`, or any if that is None; None without one."""
        waiting, self.waiting = self.waiting, {}
        for one, row in waiting.items():
            self.see(one, row)
        if write is None:
            rows = [self.call[1], *self.waiting.values()]
            return next((row for row in rows if row >= 0), None)
        if write.version is not None and self.version[0] > write.version:
            return self.version[1]
        later = self.call if write.version is None else self.call_without_version
        return later[1] if write.is_known and write.returned < later[0] else None


class _Key:
    def __init__(self) -> None:
        self.writes: dict[Hashable, _Write] = {}
        self.is_left = False


class IncrementalFollowerReads:
    """Reads and writes, judged by session as far as the promises say."""

    name = "follower-reads"

    def __init__(self, *, read_your_writes: bool, monotonic_reads: bool, values_max: int = VALUES_MAX) -> None:
        self._own, self._monotonic = read_your_writes, monotonic_reads
        self._values_max = values_max
        self._keys: dict[str | None, _Key] = {}
        self._sessions: dict[int, dict[str | None, _Session]] = {}
        self._open: dict[int, tuple[Operation, _Key]] = {}
        self._now = 0

    @property
    def left(self) -> tuple[str | None, ...]:
        """The keys that are left to the check afterwards."""
        return tuple(name for name, key in self._keys.items() if key.is_left)

    def invoke(self, row: int, operation: Operation) -> None:
        """Take an invocation."""
        self._now += 1
        key = self._keys.setdefault(operation.key, _Key())
        self._open[row] = operation, key
        if operation.f == "write" and not key.is_left:
            value = token(operation.value)
            key.is_left = value in key.writes or len(key.writes) == self._values_max
            key.writes[value] = _Write(self._now)
            if key.is_left:
                key.writes.clear()

    def complete(self, row: int, outcome: Outcome) -> tuple[int, ...]:
        """Take a completion; return the rows that show a wrong read, none without one."""
        self._now += 1
        operation, key = self._open.pop(row)
        if outcome.kind == "info":
            # The process has retired: its session is over.
            self._sessions.pop(operation.process, None)
        if key.is_left:
            return ()
        if operation.f == "write":
            return self._written(operation, key.writes[token(operation.value)], row, outcome)
        if operation.f != "read" or outcome.kind != "ok":
            return ()
        return self._read(operation, key, row, outcome)

    def _written(self, operation: Operation, write: _Write, row: int, outcome: Outcome) -> tuple[int, ...]:
        write.is_open, write.returned = False, self._now
        write.is_known, write.has_failed = outcome.kind == "ok", outcome.kind == "fail"
        write.version = outcome.value if type(outcome.value) is int else None
        if write.has_failed:
            return () if write.reader is None else (write.reader, row)
        if self._own and write.is_known:
            self._session(operation).see(write, row)
        return ()

    def _read(self, operation: Operation, key: _Key, row: int, outcome: Outcome) -> tuple[int, ...]:
        write = None
        if outcome.value is not None:
            write = key.writes.get(token(outcome.value))
            if write is None or write.has_failed:
                return (row,)
            write.reader = row if write.reader is None else write.reader
        session = self._session(operation)
        newer = session.newer_than(write)
        if newer is not None:
            return (newer, row)
        if self._monotonic and write is not None:
            session.see(write, row)
        return ()

    def _session(self, operation: Operation) -> _Session:
        return self._sessions.setdefault(operation.process, {}).setdefault(operation.key, _Session())
