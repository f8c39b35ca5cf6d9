"""The workloads `append` and `log-order`: elements are appended to lists, and whole lists are read.

A list is the object that shows most of a replicated log: a read returns all entries of its key, in the order in which
they were committed. A lost entry is missing from a later read, two servers that disagree on the order show it to a
client that reads at both, and an entry that was executed twice appears twice. Each operation is
handed to the checker of list-append transactions (Jepsen's `elle`) as a transaction of its own.

`append` asks for strict serializability: every read contains all elements acknowledged before it began.

`log-order` asks for less, so servers that lag behind can pass it (read mode `stale`): there is one order of all
appends, and every read at any server is a prefix of it. No committed entry is reordered or appears twice, and none
appears that was not appended."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from faultline.harness.access import Access
from faultline.harness.generator import Context, Draft, Generator
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, ok
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult
from faultline.harness.workload import Checker
from faultline.workloads.objects import INTERVAL_US, Objects

if TYPE_CHECKING:
    from faultline.checkers.transactions.checker import ListAppendChecker
    from faultline.harness.incremental import IncrementalChecker

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
        """Return `operations` operations, on average `interval_us` apart over all workers together."""
        return Objects.drawn("list", workers, seed).generator(_step, operations, interval_us)

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Generator:
        """Return reads of each of the last lists by every worker."""
        return Objects.drawn("list", workers, seed).final_reads(operations)

    def checkers(self) -> tuple[Checker, ...]:
        """Return the order of appends and reads first; then statistics, availability after the heal, and vacuity."""
        from faultline.checkers import AvailabilityChecker, StatsChecker, VacuityChecker
        from faultline.checkers.transactions.checker import ListAppendChecker

        lists = _AsTransactions(ListAppendChecker(self.model))
        return (lists, StatsChecker(), AvailabilityChecker(), VacuityChecker(self.access))


class LogOrder(Appends):
    """The same operations, judged by their order alone; reads may be old."""

    name = "log-order"
    promise = "all servers show prefixes of one order of appends"
    model = "serializable"


class _AsTransactions:
    """An adapter that gives `checker` each operation as a transaction of one append or read, in the same row and
    time."""

    def __init__(self, checker: ListAppendChecker) -> None:
        self.name = checker.name
        self._checker = checker

    def check(self, history: History, run: RunRecord) -> CheckResult:
        return self._checker.check(_view(history), run)

    def refutes(self, history: History, run: RunRecord) -> bool:
        return self._checker.refutes(_view(history), run)

    def incremental(self) -> IncrementalChecker | None:
        twin = self._checker.incremental()
        return None if twin is None else _TwinOfTransactions(twin)


class _TwinOfTransactions:
    """The same for the twin that judges while a run goes on."""

    def __init__(self, twin: IncrementalChecker) -> None:
        self.name = twin.name
        self._twin = twin
        self._open: dict[int, Operation] = {}

    def invoke(self, row: int, operation: Operation) -> None:
        self._open[row] = operation
        steps = _invoked(operation.f, operation.key, operation.value)
        self._twin.invoke(row, Operation(operation.process, "txn", None, steps))

    def complete(self, row: int, outcome: Outcome) -> tuple[int, ...]:
        operation = self._open.pop(row)
        if outcome.kind != "ok":
            return self._twin.complete(row, outcome)
        return self._twin.complete(row, ok(_completed(operation.f, operation.key, operation.value, outcome.value)))


def _view(history: History) -> History:
    view = copy(history)
    rows = range(len(history))
    view.f = ["txn"] * len(history)
    view.value = [_invoked(history.f[row], history.key[row], history.value[row]) for row in rows]
    view.result = [
        _completed(history.f[row], history.key[row], history.value[row], history.result[row])
        if history.outcome[row] == "ok"
        else history.result[row]
        for row in rows
    ]
    return view


def _invoked(f: str, key: str | None, value: Any) -> list[list[Any]]:
    return [["append", key, value] if f == "append" else ["r", key, None]]


def _completed(f: str, key: str | None, value: Any, answer: Any) -> list[list[Any]]:
    # A list without an append does not exist, so its read answers None.
    return _invoked(f, key, value) if f == "append" else [["r", key, answer or []]]


def _step(context: Context, name: str, number: int) -> tuple[Draft, int]:
    if context.below(100, _SALT) < _APPENDS_OF_100:
        return Draft("append", name, number), number + 1
    return Draft("read", name), number
