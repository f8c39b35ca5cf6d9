"""Answers that are wrong beside earlier ones: incremental twins of checkers of orders, banks, bookings and identifiers.

- `IncrementalMonotonic`: a value that was seen before a read was called must not be greater than the one it sees
  (`checkers.classic.monotonic`). State: the greatest value of each key, or of each client and key.
- `IncrementalBank`: each read adds up to one total over the same accounts, none overdrawn (`checkers.classic.bank`).
  State: accounts and total.
- `IncrementalBookings`: both things belong to one guest, who asked for them and keeps them (`checkers.bookings`).
  State: for each day the guest and, until there is one, those who have asked.
- `IncrementalUniqueIds`: no identifier twice (`checkers.classic.unique_ids`). State: a row for each identifier, as any
  of them can come again.

An answer that the checker could not read is skipped; the check afterwards tells of it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Literal

from faultline.checkers.common.shape import is_number
from faultline.checkers.common.words import token
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome

__all__ = ["IncrementalBank", "IncrementalBookings", "IncrementalMonotonic", "IncrementalUniqueIds"]

_Seen = tuple[tuple[Any, ...], int]
"""A value in a comparable form, and the row that saw it."""


class IncrementalMonotonic:
    """Reads that must not go back, for each `process` or for all clients (`global`)."""

    name = "monotonic"

    def __init__(self, scope: Literal["process", "global"]) -> None:
        self._is_global = scope == "global"
        self._greatest: dict[tuple[str | None, int], _Seen] = {}
        self._open: dict[int, tuple[Operation, _Seen | None]] = {}

    def invoke(self, row: int, operation: Operation) -> None:
        """Take an invocation."""
        self._open[row] = operation, self._greatest.get(self._place(operation))

    def complete(self, row: int, outcome: Outcome) -> tuple[int, ...]:
        """Take a completion; return the rows of a greater value and of the answer that goes back, none without one."""
        operation, before = self._open.pop(row)
        place, value = self._place(operation), outcome.value
        if outcome.kind == "info" and not self._is_global:
            # The process has retired and sees nothing more.
            self._greatest.pop(place, None)
        if outcome.kind != "ok" or operation.f not in ("read", "increment"):
            return ()
        if operation.f == "increment" and value is None:
            return ()
        parts = () if value is None else tuple(value) if isinstance(value, list | tuple) else (value,)
        if not all(map(is_number, parts)):
            return ()
        if before is not None and parts < before[0]:
            return (before[1], row)
        if place not in self._greatest or parts > self._greatest[place][0]:
            self._greatest[place] = parts, row
        return ()

    def _place(self, operation: Operation) -> tuple[str | None, int]:
        return operation.key, 0 if self._is_global else operation.process


class IncrementalBank:
    """Reads of all accounts; `total` and `accounts` are those of the first read where they are None."""

    name = "bank"

    def __init__(self, total: Any, accounts: frozenset[str] | None, *, negative_balances: bool) -> None:
        self._total, self._accounts = total, accounts
        self._negative_balances = negative_balances
        self._open: dict[int, str] = {}

    def invoke(self, row: int, operation: Operation) -> None:
        """Take an invocation."""
        self._open[row] = operation.f

    def complete(self, row: int, outcome: Outcome) -> tuple[int, ...]:
        """Take a completion; return the row of a wrong read, none without one."""
        f, read = self._open.pop(row), outcome.value
        if f != "read" or outcome.kind != "ok" or not isinstance(read, dict):
            return ()
        balances = {str(account).removeprefix(":"): balance for account, balance in read.items()}
        there = [balance for balance in balances.values() if balance is not None]
        if not all(map(is_number, there)):
            return ()
        if self._accounts is None:
            self._accounts = frozenset(balances)
        if self._total is None:
            self._total = sum(there)
        is_whole = all(balances.get(account) is not None for account in sorted(self._accounts))
        is_right = is_whole and balances.keys() <= self._accounts and sum(there) == self._total
        overdrawn = not self._negative_balances and any(balance < 0 for balance in there)
        return () if is_right and not overdrawn else (row,)


class _Day:
    """A day: the guests who have asked, and the first one who was named, with the row that named him."""

    def __init__(self) -> None:
        self.asked: set[Hashable] = set()
        self.guest: tuple[Hashable, int] | None = None


class IncrementalBookings:
    """Days, on each of which two things are booked by one guest.

    That the guest was later told that he gets nothing is left to the check afterwards.
    """

    name = "booking"

    def __init__(self) -> None:
        self._days: dict[str | None, _Day] = {}
        self._open: dict[int, tuple[_Day, tuple[Hashable, int] | None]] = {}

    def invoke(self, row: int, operation: Operation) -> None:
        """Take an invocation."""
        day = self._days.setdefault(operation.key, _Day())
        self._open[row] = day, day.guest
        if operation.f == "book" and day.guest is None:
            day.asked.add(token(operation.value))

    def complete(self, row: int, outcome: Outcome) -> tuple[int, ...]:
        """Take a completion; return the rows that show a wrong booking, none without one."""
        day, before = self._open.pop(row)
        answer = outcome.value
        if outcome.kind != "ok" or not isinstance(answer, list | tuple) or len(answer) != 2:
            return ()
        if answer[0] != answer[1]:
            return (row,)
        if answer[0] is None:
            return () if before is None else (before[1], row)
        guest = token(answer[0])
        if day.guest is not None:
            return () if guest == day.guest[0] else (day.guest[1], row)
        if guest not in day.asked:
            return (row,)
        day.guest = guest, row
        day.asked.clear()
        return ()


class IncrementalUniqueIds:
    """Identifiers, each of which may be handed out once."""

    name = "unique-ids"

    def __init__(self) -> None:
        self._rows: dict[Hashable, int] = {}

    def invoke(self, row: int, operation: Operation) -> None:
        """Take an invocation: nothing of it is needed."""

    def complete(self, row: int, outcome: Outcome) -> tuple[int, ...]:
        """Take a completion; return the rows that were given one identifier, none while all differ."""
        if outcome.kind != "ok" or outcome.value is None:
            return ()
        first = self._rows.setdefault(token(outcome.value), row)
        return () if first == row else (first, row)
