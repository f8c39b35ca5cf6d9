"""The workloads `append` and `log-order`: elements are appended to lists, and whole lists are read.

A list is the object that shows most of a replicated log: a read returns the entries of its key, all of them, in the
order in which they were committed. An entry that was lost is missing from a later read, two servers that disagree on
the order show it to whoever reads at both, and an entry that was executed twice stands there twice. Each operation is
handed to the checker of list-append transactions (Jepsen's `elle`) as a transaction of its own.

`append` asks for strict serializability: every read contains all that was acknowledged before it began.

`log-order` asks for less, and so can be put to servers that lag behind (read mode `stale`): there is one order of all
appends, and every read, wherever it was answered, is a beginning of it. No committed entry is reordered, none appears
that was not appended, none twice.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from faultline.harness.access import Access
from faultline.harness.generator import Context, Draft, Generator
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult
from faultline.harness.workload import Checker
from faultline.workloads.objects import INTERVAL_US, Objects

if TYPE_CHECKING:
    from faultline.checkers.transactions.checker import ListAppendChecker

__all__ = ["Appends", "LogOrder"]

_SALT = 0xC2B2_AE3D_27D4_EB4F
_APPENDS_OF_100 = 50


class Appends:
    """Appends to and reads of a list or two at a time."""

    name = "append"
    promise = "every read of a list contains all elements acknowledged before it, once each, in one order"
    functions = ("read", "append")
    access = Access(final_read="read")
    model = "strict-serializable"

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = INTERVAL_US) -> Generator:
        """`operations` operations, on average `interval_us` apart over all workers together."""
        return Objects.drawn("list", workers, seed).generator(_step, operations, interval_us)

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Generator:
        """Every worker reads each of the last lists."""
        return Objects.drawn("list", workers, seed).final_reads(operations)

    def checkers(self) -> tuple[Checker, ...]:
        """The order of appends and reads first; then statistics, availability after the heal, and vacuity."""
        from faultline.checkers import AvailabilityChecker, StatsChecker, VacuityChecker
        from faultline.checkers.transactions.checker import ListAppendChecker

        lists = _AsTransactions(ListAppendChecker(self.model))
        return (lists, StatsChecker(), AvailabilityChecker(), VacuityChecker(self.access))


class LogOrder(Appends):
    """The same operations, of which only the order is asked, not that reads are up to date."""

    name = "log-order"
    promise = "all servers show beginnings of one order of appends"
    model = "serializable"


class _AsTransactions:
    """Shows `checker` each operation as a transaction of one append or one read; rows and times stay as they are."""

    def __init__(self, checker: ListAppendChecker) -> None:
        self.name = checker.name
        self._checker = checker

    def check(self, history: History, run: RunRecord) -> CheckResult:
        return self._checker.check(_view(history), run)

    def refutes(self, history: History, run: RunRecord) -> bool:
        return self._checker.refutes(_view(history), run)


def _view(history: History) -> History:
    view = copy(history)
    rows = range(len(history))
    view.f = ["txn"] * len(history)
    view.value = [_invoked(history, row) for row in rows]
    view.result = [_completed(history, row) for row in rows]
    return view


def _invoked(history: History, row: int) -> list[list[Any]]:
    if history.f[row] == "append":
        return [["append", history.key[row], history.value[row]]]
    return [["r", history.key[row], None]]


def _completed(history: History, row: int) -> Any:
    if history.outcome[row] != "ok":
        return history.result[row]
    if history.f[row] == "append":
        return _invoked(history, row)
    # A list that nobody has appended to is not there.
    return [["r", history.key[row], history.result[row] or []]]


def _step(context: Context, name: str, number: int) -> tuple[Draft, int]:
    if context.below(100, _SALT) < _APPENDS_OF_100:
        return Draft("append", name, number), number + 1
    return Draft("read", name), number
