"""Transactions of reads and writes on several keys at once, judged by the order that they imply.

`txn-append` appends unique elements to lists, where every read shows the whole past of its key; `txn-register` writes
unique values to registers, which shows less, but is what most stores have. `write-skew` does one thing only: read two
keys, append to one of them. Two of these that do not see each other cannot both have come first, and nothing but
serializability forbids it: under snapshot isolation they write different keys, so both commit.

Keys are used by some sixty transactions and then left, so that checking grows with the run and not with its square.

Sources: Kingsbury and Alvaro, "Elle" (VLDB 2020); Berenson et al., "A Critique of ANSI SQL Isolation Levels" (1995).
"""

from __future__ import annotations

from typing import Any

from faultline.harness.generator import Context, Draft, Generator, each_thread, emit, limit, stagger, unfold
from faultline.harness.workload import Checker
from faultline.workloads.objects import INTERVAL_US

__all__ = ["AppendTransactions", "RegisterTransactions", "WriteSkew"]

_KEYS = 5
_TRANSACTIONS_PER_KEYS = 60
_STEPS_MAX = 4
_SIZE_SALT = 0x9FB2_1C65_1E98_DF25
_SALTS = (0xEB44_ACCA_B455_D165, 0xC2B2_AE3D_27D4_EB4F, 0x9E37_79B9_7F4A_7C15, 0x5851_F42D_4C95_7F2D)
_TRANSACTIONS_PER_PAIR = 5


class AppendTransactions:
    """Up to four reads and appends in one transaction, on five lists at a time."""

    name = "txn-append"
    promise = "transactions on lists are strictly serializable"
    functions = ("txn",)
    _write = "append"

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = INTERVAL_US) -> Generator:
        """`operations` transactions, on average `interval_us` apart over all workers together."""
        return limit(operations, stagger(interval_us, unfold(self._transaction, 0)))

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Generator:
        """Every worker reads all keys of the last groups in one transaction."""
        last = operations // _TRANSACTIONS_PER_KEYS
        keys = [key for group in range(max(0, last - 1), last + 1) for key in _keys(group)]
        return each_thread(emit("txn", None, [["r", key, None] for key in keys]))

    def checkers(self) -> tuple[Checker, ...]:
        """The order of transactions first; then statistics, availability after the heal, and vacuity."""
        from faultline.checkers.transactions.checker import ListAppendChecker

        return (ListAppendChecker(), *_usual_checkers())

    def _transaction(self, context: Context, number: int) -> tuple[Draft, int]:
        keys = _keys(number // _TRANSACTIONS_PER_KEYS)
        size = 1 + context.below(_STEPS_MAX, _SIZE_SALT)
        return Draft("txn", None, [self._step(context, keys, number, place) for place in range(size)]), number + 1

    def _step(self, context: Context, keys: list[str], number: int, place: int) -> list[Any]:
        drawn = context.below(2 * len(keys), _SALTS[place])
        key = keys[drawn // 2]
        return ["r", key, None] if drawn % 2 else [self._write, key, number * _STEPS_MAX + place + 1]


class RegisterTransactions(AppendTransactions):
    """The same on registers."""

    name = "txn-register"
    promise = "transactions on registers are strictly serializable"
    _write = "w"

    def checkers(self) -> tuple[Checker, ...]:
        """The order of transactions first; then statistics, availability after the heal, and vacuity."""
        from faultline.checkers.transactions.checker import RwRegisterChecker

        return (RwRegisterChecker(), *_usual_checkers())


class WriteSkew:
    """Transactions that read both lists of a pair and append to one of them."""

    name = "write-skew"
    promise = "of two transactions that read two keys and write one of them, one sees the other"
    functions = ("txn",)

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = INTERVAL_US) -> Generator:
        """`operations` transactions, on average `interval_us` apart over all workers together."""
        return limit(operations, stagger(interval_us, unfold(_skewed, 0)))

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Generator:
        """Every worker reads the last pairs."""
        last = operations // _TRANSACTIONS_PER_PAIR
        keys = [key for number in range(max(0, last - 3), last + 1) for key in _pair(number)]
        return each_thread(emit("txn", None, [["r", key, None] for key in keys]))

    def checkers(self) -> tuple[Checker, ...]:
        """The order of transactions first; then statistics, availability after the heal, and vacuity."""
        from faultline.checkers.transactions.checker import ListAppendChecker

        return (ListAppendChecker(), *_usual_checkers())


def _skewed(context: Context, number: int) -> tuple[Draft, int]:
    pair = _pair(number // _TRANSACTIONS_PER_PAIR)
    written = pair[context.below(2, _SALTS[0])]
    return Draft("txn", None, [*(["r", key, None] for key in pair), ["append", written, number + 1]]), number + 1


def _keys(group: int) -> list[str]:
    return [f"k{group}-{number}" for number in range(_KEYS)]


def _pair(number: int) -> tuple[str, str]:
    return f"p{number}-left", f"p{number}-right"


def _usual_checkers() -> tuple[Checker, ...]:
    from faultline.checkers import AvailabilityChecker, StatsChecker, VacuityChecker

    return (StatsChecker(), AvailabilityChecker(), VacuityChecker(reads=("txn",)))
