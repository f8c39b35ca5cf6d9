"""Transactions on tables: rows are inserted, changed and deleted, and selected by a condition.

A row is a doctor, and an odd value means on call. Two doctors who each see that both are on
call, and sign off, are write skew over a condition; a transaction that selects, while another inserts a row that meets
the condition, sees a phantom or does not; two that change the row which both have seen lose an update. One transaction
in six only selects, twice, so that answers from two moments disagree.

A table has six rows at most, and is left after two dozen transactions. So an answer shows which rows are *not* in it
(`faultline.checkers.transactions.closed_predicate`), and checking grows with the run and not with its square. Most rows
are never deleted: who misses a row that was deleted at some time may have looked before its insert or after its end.

Sources: Berenson et al., "A Critique of ANSI SQL Isolation Levels" (1995), A3 and A5B; Adya, "Weak Consistency" (1999),
chapter 3; Cahill, Röhm and Fekete, "Serializable Isolation for Snapshot Databases" (SIGMOD 2008), for the doctors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faultline.harness.access import FINAL_OBJECTS_MAX, Access
from faultline.harness.generator import Context, Draft, Generator, each_thread, emit, limit, sequence, stagger, unfold
from faultline.harness.workload import Checker
from faultline.workloads.objects import INTERVAL_US

__all__ = ["Predicates"]

_TRANSACTIONS_PER_TABLE = 24
_DOCTORS = ("a", "b")
_OTHERS = ("c", "d", "e", "f")
_PLACES = 2
"""The rows that one transaction may write."""

_RECENT = 6
"""The number of transactions whose values a condition `>` is meant to select."""

_KIND_SALT = 0x9FB2_1C65_1E98_DF25
_ROW_SALT = 0xEB44_ACCA_B455_D165
_CONDITION_SALT = 0xC2B2_AE3D_27D4_EB4F
_ODD_SALT = 0x5851_F42D_4C95_7F2D

_ODD = ["mod", 2, 1]
_Steps = list[list[Any]]


class Predicates:
    """Transactions that select rows by a condition, and insert, change or delete others."""

    name = "predicates"
    promise = "transactions that select rows by a condition are strictly serializable, or isolated as the options say"
    functions = ("txn",)
    answers = "conditions"
    follows_isolation = True
    access = Access(reads=("txn",))

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = INTERVAL_US) -> Generator:
        """Return `operations` transactions, on average `interval_us` apart over all workers together."""
        return limit(operations, stagger(interval_us, unfold(_transaction, 0)))

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Generator:
        """Return selections of all rows of the last tables by every worker, then of each earlier table by one."""
        last = max(0, operations - 1) // _TRANSACTIONS_PER_TABLE
        recent = range(max(0, last - 1), last + 1)
        earlier = range(max(0, recent.start - FINAL_OBJECTS_MAX), recent.start)
        return sequence(each_thread(sequence(*map(_everything, recent))), *map(_everything, earlier))

    def checkers(self) -> tuple[Checker, ...]:
        """Return the order of transactions first; then statistics, availability after the heal, and vacuity."""
        from faultline.checkers import AvailabilityChecker, StatsChecker, VacuityChecker
        from faultline.checkers.transactions.checker import ClosedPredicateChecker

        return (ClosedPredicateChecker(), StatsChecker(), AvailabilityChecker(), VacuityChecker(self.access))


def _transaction(context: Context, number: int) -> tuple[Draft, int]:
    table, place = divmod(number, _TRANSACTIONS_PER_TABLE)
    # The doctors of a table come first, both on call. A transaction that selects before they do finds no row.
    kind = _KINDS[context.below(len(_KINDS), _KIND_SALT)] if place else _open
    return Draft("txn", _table(table), kind(context, number)), number + 1


def _open(_context: Context, number: int) -> _Steps:
    return [["insert", row, _value(number, place, odd=True)] for place, row in enumerate(_DOCTORS)]


def _sign_off(context: Context, number: int) -> _Steps:
    return [_selection(context, number), ["w", _row(context, _DOCTORS), _value(number, 0, odd=False)]]


def _change(context: Context, number: int) -> _Steps:
    row, odd = _row(context, (*_DOCTORS, *_OTHERS)), context.below(2, _ODD_SALT) == 1
    return [_selection(context, number), ["w", row, _value(number, 0, odd=odd)]]


def _join(context: Context, number: int) -> _Steps:
    return [_selection(context, number), ["insert", _row(context, _OTHERS), _value(number, 0, odd=True)]]


def _leave(context: Context, number: int) -> _Steps:
    return [_selection(context, number), ["delete", _row(context, _OTHERS[-1:])]]


def _join_together(context: Context, number: int) -> _Steps:
    first = context.below(len(_OTHERS) - 1, _ROW_SALT)
    return [
        ["insert", row, _value(number, place, odd=True)] for place, row in enumerate(_OTHERS[first : first + _PLACES])
    ]


def _look(context: Context, number: int) -> _Steps:
    return [_selection(context, number), ["rp", "true", None]]


_KINDS: tuple[Callable[[Context, int], _Steps], ...] = (
    *(_sign_off,) * 3,
    *(_change,) * 2,
    *(_join,) * 3,
    _leave,
    _join_together,
    *(_look,) * 2,
)
"""The kinds of transactions, as likely as they stand here."""


def _selection(context: Context, number: int) -> list[Any]:
    recent = [">", _value(max(0, number - _RECENT), 0, odd=False)]
    return ["rp", (_ODD, recent, "true")[context.below(3, _CONDITION_SALT)], None]


def _row(context: Context, rows: tuple[str, ...]) -> str:
    return rows[context.below(len(rows), _ROW_SALT)]


def _value(number: int, place: int, *, odd: bool) -> int:
    """Return a value that no other write of the run has."""
    return 2 * (_PLACES * number + place + 1) + odd


def _everything(table: int) -> Generator:
    return emit("txn", _table(table), [["rp", "true", None]])


def _table(number: int) -> str:
    return f"t{number}"
