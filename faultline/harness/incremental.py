"""Judgement while a run goes on: the protocol of incremental checkers, and the watch that feeds them.

A checker judges a finished run. Its incremental twin sees the same invocations and completions one by one, in the one
order of the history, and says as soon as a violation is certain. Certain means: whatever the operations in flight will
do, and whatever follows, the history until here has no explanation. Safety properties are closed under prefixes
(Alpern & Schneider, "Defining liveness", 1985; Lynch, "Distributed Algorithms", 1996, section 13.1 for
linearizability), so a violation of a prefix is one of every longer history.

A watch never gives a verdict. It ends a run early; then the ordinary checkers judge the shorter history.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome
from faultline.harness.run_record import CertainViolation
from faultline.harness.workload import Checker

__all__ = ["HasIncremental", "IncrementalChecker", "Watch", "incremental_checkers"]


class IncrementalChecker(Protocol):
    """A judge of one aspect of a run while it goes on. It keeps state for the operations in flight and for each key,
    but no history."""

    name: str
    """The name of the checker whose twin it is."""

    def invoke(self, row: int, operation: Operation) -> None:
        """Take the invocation of `operation`, which is in `row` of the history."""

    def complete(self, row: int, outcome: Outcome) -> tuple[int, ...]:
        """Take the completion of the operation in `row`; return rows that show a certain violation, none without one.

        The last row is the operation whose answer made it certain. After a violation it is asked no more.
        """


@runtime_checkable
class HasIncremental(Protocol):
    """A checker with an incremental twin."""

    def incremental(self) -> IncrementalChecker | None:
        """Return a new incremental twin; None when these settings have none."""


def incremental_checkers(checkers: Iterable[Checker]) -> tuple[IncrementalChecker, ...]:
    """Return new incremental twins of those of `checkers` that have one, in their order."""
    twins = (checker.incremental() for checker in checkers if isinstance(checker, HasIncremental))
    return tuple(twin for twin in twins if twin is not None)


class Watch:
    """Feeds `checkers` with the events of one run until one of them is certain of a violation.

    `violation` is that violation. `problems` has a sentence for each checker that failed: it is asked no more, and the
    run goes on without it.
    """

    def __init__(self, checkers: Iterable[IncrementalChecker]) -> None:
        self._checkers = list(checkers)
        self.violation: CertainViolation | None = None
        self.problems: list[str] = []

    def invoke(self, row: int, operation: Operation) -> None:
        """Show the invocation in `row` to all checkers."""
        for checker in tuple(self._checkers):
            try:
                checker.invoke(row, operation)
            except Exception as error:
                self._leave_out(checker, row, error)

    def complete(self, row: int, outcome: Outcome, now_us: int) -> bool:
        """Show the completion in `row`, at `now_us`, to all checkers; return whether a violation is certain."""
        for checker in tuple(self._checkers):
            try:
                rows = checker.complete(row, outcome)
            except Exception as error:
                self._leave_out(checker, row, error)
                continue
            if rows:
                self.violation = CertainViolation(checker=checker.name, rows=rows, time_us=now_us)
                return True
        return False

    def _leave_out(self, checker: IncrementalChecker, row: int, error: Exception) -> None:
        self._checkers.remove(checker)
        when = f"while the run went on, at operation {row}"
        self.problems.append(f"The check {checker.name} failed {when}: {type(error).__name__}: {error}.")
