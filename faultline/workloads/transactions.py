"""Transactions of reads and writes on several keys at once, judged by the order that they imply.

`txn-append` appends unique elements to lists, where every read shows the whole past of its key; `txn-register` writes
unique values to registers, which show less, but which most stores have. `lost-update` does so with registers that the
same transaction has read, which makes their order known: the write follows the value that was read. `write-skew` reads
two keys and appends to one of them. Two such transactions that do not see each other cannot both have come first, and
only serializability forbids it: under snapshot isolation they write different keys, so both commit. `long-fork` writes
two keys at almost the same time while others read both: a client that sees one write alone and a client that sees the
other alone cannot both be right, not even under snapshot isolation.

Keys are used by some sixty transactions and then left, so that checking grows with the run and not with its square.

Sources: Kingsbury and Alvaro, "Elle" (VLDB 2020); Jepsen's long-fork workload, after Sovran et al., "Transactional
storage for geo-replicated systems" (SOSP 2011); Berenson et al., "A Critique of ANSI SQL Isolation Levels" (1995).
"""

from __future__ import annotations

from typing import Any

from faultline.harness.access import FINAL_OBJECTS_MAX, Access
from faultline.harness.generator import (
    Context,
    Draft,
    Generator,
    each_thread,
    emit,
    limit,
    sequence,
    sleep,
    stagger,
    unfold,
)
from faultline.harness.workload import Checker
from faultline.workloads.objects import INTERVAL_US

__all__ = ["AppendTransactions", "LongFork", "LostUpdates", "RegisterTransactions", "WriteSkew"]

_KEYS = 5
_UPDATED_KEYS = 3
_UPDATES = ((0,), (0,), (0,), (1,), (1,), (0, 1), (0, 1), ())
"""The registers of a pair that a transaction writes, as likely as they stand here: the first, which it reads alone; the
second or both, after it has read both; none, and it reads every register."""

_TRANSACTIONS_PER_KEYS = 60
_STEPS_MAX = 4
_SIZE_SALT = 0x9FB2_1C65_1E98_DF25
_SALTS = (0xEB44_ACCA_B455_D165, 0xC2B2_AE3D_27D4_EB4F, 0x9E37_79B9_7F4A_7C15, 0x5851_F42D_4C95_7F2D)
_TRANSACTIONS_PER_PAIR = 5
_TRANSACTIONS_PER_FORK = 9
_FORK_GAP_US = 1_500
"""The time between the beginnings of the transactions of one pair: less than a transaction takes."""


_ACCESS = Access(reads=("txn",), final_read="txn")


class AppendTransactions:
    """Up to four reads and appends in one transaction, on five lists at a time."""

    name = "txn-append"
    promise = "transactions on lists are strictly serializable"
    functions = ("txn",)
    access = _ACCESS
    _write = "append"

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = INTERVAL_US) -> Generator:
        """Return `operations` transactions, on average `interval_us` apart over all workers together."""
        return limit(operations, stagger(interval_us, unfold(self._transaction, 0)))

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Generator:
        """Return reads of all keys of the last groups by every worker, in one transaction."""
        last = operations // _TRANSACTIONS_PER_KEYS
        keys = [key for group in range(max(0, last - 1), last + 1) for key in _keys(group)]
        return each_thread(emit("txn", None, [["r", key, None] for key in keys]))

    def checkers(self) -> tuple[Checker, ...]:
        """Return the order of transactions first; then statistics, availability after the heal, and vacuity."""
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
    """The same transactions on registers."""

    name = "txn-register"
    promise = "transactions on registers are strictly serializable"
    _write = "w"

    def checkers(self) -> tuple[Checker, ...]:
        """Return the order of transactions first; then statistics, availability after the heal, and vacuity."""
        from faultline.checkers.transactions.checker import RwRegisterChecker

        return (RwRegisterChecker(), *_usual_checkers())


class LostUpdates(RegisterTransactions):
    """Transactions that read each register before they write it, on three registers at a time."""

    name = "lost-update"
    promise = "transactions that write registers which they have read are strictly serializable"
    included_in = "txn-register"

    def _transaction(self, context: Context, number: int) -> tuple[Draft, int]:
        keys = _keys(number // _TRANSACTIONS_PER_KEYS)[:_UPDATED_KEYS]
        first = context.below(len(keys), _SALTS[0])
        one, other = keys[first], keys[(first + 1 + context.below(len(keys) - 1, _SALTS[1])) % len(keys)]
        written = _UPDATES[context.below(len(_UPDATES), _SIZE_SALT)]
        read = keys if not written else [one] if written == (0,) else [one, other]
        values = [["w", (one, other)[place], number * _STEPS_MAX + place + 1] for place in written]
        return Draft("txn", None, [*(["r", key, None] for key in read), *values]), number + 1


class WriteSkew:
    """Transactions that read both lists of a pair and append to one of them."""

    name = "write-skew"
    promise = "of two transactions that read two keys and write one of them, one sees the other"
    functions = ("txn",)
    access = _ACCESS

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = INTERVAL_US) -> Generator:
        """Return `operations` transactions, on average `interval_us` apart over all workers together."""
        return limit(operations, stagger(interval_us, unfold(_skewed, 0)))

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Generator:
        """Return reads of the last pairs by every worker."""
        last = operations // _TRANSACTIONS_PER_PAIR
        keys = [key for number in range(max(0, last - 3), last + 1) for key in _pair(number)]
        return each_thread(emit("txn", None, [["r", key, None] for key in keys]))

    def checkers(self) -> tuple[Checker, ...]:
        """Return the order of transactions first; then statistics, availability after the heal, and vacuity."""
        from faultline.checkers.transactions.checker import ListAppendChecker

        return (ListAppendChecker(), *_usual_checkers())


class LongFork:
    """Both keys of a pair are written once, by two clients, while others read the pair."""

    name = "long-fork"
    promise = "of two writes, all clients that read both keys see the same one first"
    functions = ("txn",)
    access = Access(reads=("txn",))

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = INTERVAL_US) -> Generator:
        """Return `operations` transactions, those of one pair at almost the same time, with pauses in between."""
        pause_us = max(0, _TRANSACTIONS_PER_FORK * (interval_us - _FORK_GAP_US))
        parts: list[Generator] = []
        for number in range(0, operations, _TRANSACTIONS_PER_FORK):
            close_together = stagger(_FORK_GAP_US, unfold(_forking, number))
            parts += (limit(_TRANSACTIONS_PER_FORK, close_together), sleep(pause_us))
        return limit(operations, sequence(*parts))

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Generator:
        """Return reads of the last pairs by every worker, one after the other; then of earlier ones, a pair at a
        time."""
        pairs = operations // _TRANSACTIONS_PER_FORK + 1
        last = range(max(0, pairs - 3), pairs)
        earlier = range(max(0, last.start - FINAL_OBJECTS_MAX // 2), last.start)
        return sequence(each_thread(sequence(*map(_read_of_pair, last))), *map(_read_of_pair, earlier))

    def checkers(self) -> tuple[Checker, ...]:
        """Return the forks first; then statistics, availability after the heal, and vacuity."""
        from faultline.checkers.classic.long_fork import LongForkChecker

        return (LongForkChecker(), *_usual_checkers())


def _forking(_context: Context, number: int) -> tuple[Draft, int]:
    pair, place = divmod(number, _TRANSACTIONS_PER_FORK)
    # A read comes first, so that a pair is known before it is written; then both writes, and reads while they commit.
    steps = [["w", _pair(pair)[place - 1], pair + 1]] if place in (1, 2) else _pair_read(pair)
    return Draft("txn", None, steps), number + 1


def _read_of_pair(number: int) -> Generator:
    return emit("txn", None, _pair_read(number))


def _pair_read(number: int) -> list[list[Any]]:
    return [["r", key, None] for key in _pair(number)]


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

    return (StatsChecker(), AvailabilityChecker(), VacuityChecker(_ACCESS))
