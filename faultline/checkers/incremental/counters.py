"""Counters while operations come and go: incremental twins of `classic.counter` and `classic.transfers`.

An addition in flight may count or not, so it widens the bounds of the counter at its call, and narrows them when it is
acknowledged or has certainly failed. One whose outcome is unknown leaves them wide. A read must lie between the least
lower bound and the greatest upper bound since its call.

The check afterwards knows from the beginning which additions failed. A read that returned before that was known was
judged here by wider bounds, so a few violations are left to that check. None is invented.

An account is a counter, to which transfers to it add and from which those from it subtract.

State per counter: two bounds, and their extremes since the call of the oldest open read.
"""

from __future__ import annotations

from collections.abc import Mapping

from faultline.checkers.common.minima import Minima
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome

__all__ = ["IncrementalCounters", "IncrementalTransfers"]


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

    def end(self, now: int, delta: int, outcome: Outcome) -> None:
        """Take the end of an addition."""
        if outcome.kind == "ok":
            self.move(now, delta, is_begin=False)
        elif outcome.kind == "fail":
            self.undo(now, delta)
        self.forget(now)

    def allows(self, call: int, value: int) -> bool:
        """Return whether a read that was called then may see `value` now."""
        return self.lower.since(call) <= value <= -self.upper.since(call)


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
            counter.end(self._now, delta, outcome)
            return ()
        call, value = counter.reads.pop(row), outcome.value
        if outcome.kind != "ok" or type(value) is not int:
            return ()
        return () if counter.allows(call, value) else (row,)


class IncrementalTransfers:
    """Transfers between accounts, and reads of all of them, for each key; accounts begin with `opening`, or with 0."""

    name = "transfers"

    def __init__(self, opening: Mapping[str, int]) -> None:
        self._opening = opening
        self._accounts: dict[str | None, dict[str, _Counter]] = {}
        self._changes: dict[int, list[tuple[_Counter, int]]] = {}
        self._reads: dict[int, tuple[dict[str, _Counter], int]] = {}
        self._now = 0

    def invoke(self, row: int, operation: Operation) -> None:
        """Take an invocation. Raise ValueError for one that changes no account."""
        self._now += 1
        accounts = self._accounts.setdefault(operation.key, {})
        if operation.f == "read":
            self._reads[row] = accounts, self._now
            for account in accounts.values():
                account.reads[row] = self._now
            return
        value = operation.value
        if operation.f != "transfer" or not isinstance(value, dict) or type(value.get("amount")) is not int:
            raise ValueError(f"{operation.f} of {value!r} is no transfer between accounts")
        # In one step, as the check takes it: a transfer to the same account changes nothing.
        changes: dict[str, int] = {}
        for role, sign in (("to", 1), ("from", -1)):
            changes[str(value[role])] = changes.get(str(value[role]), 0) + sign * value["amount"]
        self._changes[row] = [(self._account(accounts, name), delta) for name, delta in changes.items()]
        for account, delta in self._changes[row]:
            account.move(self._now, delta, is_begin=True)

    def complete(self, row: int, outcome: Outcome) -> tuple[int, ...]:
        """Take a completion; return the row of a read with a balance out of bounds, none without one."""
        self._now += 1
        for account, delta in self._changes.pop(row, ()):
            account.end(self._now, delta, outcome)
        accounts, call = self._reads.pop(row, ({}, 0))
        for account in accounts.values():
            account.reads.pop(row, None)
        if outcome.kind != "ok" or not isinstance(outcome.value, dict):
            return ()
        read = {name: balance for name, balance in outcome.value.items() if type(balance) is int}
        is_right = all(self._account(accounts, name).allows(call, balance) for name, balance in read.items())
        return () if is_right else (row,)

    def _account(self, accounts: dict[str, _Counter], name: str) -> _Counter:
        if name not in accounts:
            accounts[name] = _Counter(self._opening.get(name, 0))
            # Reads that are open have been since before the account was first named.
            accounts[name].reads.update((row, call) for row, (there, call) in self._reads.items() if there is accounts)
        return accounts[name]
