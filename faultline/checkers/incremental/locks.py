"""Locks while operations come and go: the incremental twins of `checkers.classic.lock` and `checkers.leased_lock`.

- `IncrementalLocks`: a client certainly holds the lock from the end of its acquire to the call of its next release that
  does not fail. An acquire of another client that ends in between is certain to be wrong. While that release is open,
  it is certain only once the release has failed.
- `IncrementalLeasedLocks`: a client certainly believed in its lease until the call of the last operation that it did
  not refuse itself. An acquire of another client that had ended by then is certain to be wrong once that operation has
  ended.

Both also judge fencing tokens (`tokens`). State per lock: the clients that hold it, and tokens.

A release without a hold is excused by an acquire of the same worker whose outcome is unknown. Workers are not seen
here, so after such an acquire by any client it is left to the check afterwards.
"""

from __future__ import annotations

from typing import Any

from faultline.checkers.incremental.tokens import PlacedTokens, Tokens
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome

__all__ = ["IncrementalLeasedLocks", "IncrementalLocks"]


class _Hold:
    """A hold by one client: its acquire, and the first acquire of another client that ended since."""

    __slots__ = ("acquire", "ending", "next_acquire", "next_end")

    def __init__(self, acquire: int) -> None:
        self.acquire = acquire
        self.ending = -1
        """The row of an open operation that may have ended this hold at its call; -1 without one."""
        self.next_acquire = -1
        self.next_end = 0


class _Lock:
    def __init__(self) -> None:
        self.holds: dict[int, _Hold] = {}
        self.granted, self.written = Tokens(are_unique=True), Tokens(are_unique=False)
        self.is_doubtful = False

    def acquired(self, row: int, process: int, now: int) -> tuple[int, ...]:
        """Give the lock to `process`; return its acquire with that of another one that certainly holds it now."""
        self.holds.pop(process, None)
        for hold in self.holds.values():
            if hold.ending < 0:
                return (hold.acquire, row)
            _note_next(hold, row, now)
        self.holds[process] = _Hold(row)
        return ()


class IncrementalLocks:
    """Locks that are held until they are released, with tokens or without."""

    name = "lock"

    def __init__(self) -> None:
        self._locks: dict[str | None, _Lock] = {}
        self._open: dict[int, tuple[_Lock, Operation]] = {}
        self._now = 0

    def invoke(self, row: int, operation: Operation) -> None:
        """Take an invocation."""
        self._now += 1
        lock = self._locks.setdefault(operation.key, _Lock())
        self._open[row] = lock, operation
        hold = lock.holds.get(operation.process)
        if operation.f == "write":
            lock.written.invoke(row, self._now)
            return
        if operation.f == "acquire":
            lock.granted.invoke(row, self._now)
        if hold is not None:
            hold.ending = row

    def complete(self, row: int, outcome: Outcome) -> tuple[int, ...]:
        """Take a completion; return rows that show two holders or a stale token, none without."""
        self._now += 1
        lock, operation = self._open.pop(row)
        is_ok = outcome.kind == "ok"
        if operation.f == "write":
            return lock.written.complete(row, self._now, _written(operation.value) if is_ok else None)
        if operation.f == "acquire":
            wrong = lock.granted.complete(row, self._now, _token(outcome.value) if is_ok else None)
            lock.is_doubtful |= outcome.kind == "info"
            if is_ok:
                return wrong or lock.acquired(row, operation.process, self._now)
        elif outcome.kind != "fail":
            return self._released(lock, operation.process, row, is_ok=is_ok)
        return self._goes_on(lock, operation.process, row)

    def _released(self, lock: _Lock, process: int, row: int, *, is_ok: bool) -> tuple[int, ...]:
        groundless = lock.holds.pop(process, None) is None and is_ok and not lock.is_doubtful
        return (row,) if groundless else ()

    def _goes_on(self, lock: _Lock, process: int, row: int) -> tuple[int, ...]:
        """Continue the hold of `process`: the operation in `row` did not end it."""
        hold = lock.holds.get(process)
        if hold is None:
            return ()
        hold.ending = -1
        return () if hold.next_acquire < 0 else (hold.acquire, hold.next_acquire, row)


class _Lease(_Lock):
    def __init__(self) -> None:
        super().__init__()
        self.places = PlacedTokens()

    def granted_to(self, row: int, process: int, now: int) -> None:
        """Give the lease to `process`; others may have lost it by now."""
        self.holds.pop(process, None)
        for hold in self.holds.values():
            _note_next(hold, row, now)
        self.holds[process] = _Hold(row)


class IncrementalLeasedLocks:
    """Leases, which end by themselves, and the resources that they guard."""

    name = "leased-lock"

    def __init__(self) -> None:
        self._leases: dict[str | None, _Lease] = {}
        self._open: dict[int, tuple[_Lease, Operation, int]] = {}
        self._now = 0

    def invoke(self, row: int, operation: Operation) -> None:
        """Take an invocation."""
        self._now += 1
        lease = self._leases.setdefault(operation.key, _Lease())
        self._open[row] = lease, operation, self._now
        if operation.f == "acquire":
            lease.granted.invoke(row, self._now)
        elif operation.f in ("abandon", "late-write"):
            lease.holds.pop(operation.process, None)

    def complete(self, row: int, outcome: Outcome) -> tuple[int, ...]:
        """Take a completion; return rows that show two holders or a stale token, none without."""
        self._now += 1
        lease, operation, call = self._open.pop(row)
        process, is_ok = operation.process, outcome.kind == "ok"
        wrong: tuple[int, ...] = ()
        if operation.f == "acquire":
            wrong = lease.granted.complete(row, self._now, _token(outcome.value) if is_ok else None)
            if is_ok:
                lease.granted_to(row, process, self._now)
        elif outcome.error != "not-held":
            wrong = _believed(lease, process, row, call)
            if operation.f == "release":
                lease.holds.pop(process, None)
        if outcome.kind == "info":
            # The process has retired and proves no belief any more.
            for each in self._leases.values():
                each.holds.pop(process, None)
        if operation.f.endswith("-write") and is_ok and not wrong:
            token, place = _token(outcome.value), _place(outcome.value)
            return () if token is None or place is None else lease.places.add(row, token, place)
        return wrong


def _believed(lease: _Lease, process: int, row: int, call: int) -> tuple[int, ...]:
    """Take a proof that `process` held the lease at `call`; return rows that show another holder before that."""
    hold = lease.holds.get(process)
    if hold is None or hold.next_acquire < 0 or hold.next_end > call:
        return ()
    return (hold.acquire, hold.next_acquire, row)


def _note_next(hold: _Hold, row: int, now: int) -> None:
    if hold.next_acquire < 0:
        hold.next_acquire, hold.next_end = row, now


def _token(answer: Any) -> int | None:
    token = answer.get("token") if isinstance(answer, dict) else answer
    return token if type(token) is int else None


def _place(answer: Any) -> int | None:
    place = answer.get("index") if isinstance(answer, dict) else None
    return place if type(place) is int else None


def _written(value: Any) -> int | None:
    """Return the token under which `value` is written; None for a shape that the check afterwards refuses."""
    if isinstance(value, list | tuple):
        return _token(value[0]) if value else None
    return _token(value) if isinstance(value, dict) else None
