"""A history in the words that a checker expects.

Checkers follow Jepsen's names for functions and shapes of answers; a workload may call things by the names of its own
store. `adapted` shows the checker the same history under other names: the rows, their times and their order stay as
they are, so that findings point to the operations as they happened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

from msgspec.structs import replace

from faultline.harness.history import History
from faultline.harness.incremental import HasIncremental, IncrementalChecker
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult
from faultline.harness.workload import Checker

__all__ = ["adapted", "renamed"]

Request = tuple[str, Any]
"""A function and its argument."""


def adapted(
    checker: Checker,
    *,
    requests: Callable[[str, Any], Request] | None = None,
    answers: Callable[[Any], Any] | None = None,
) -> Checker:
    """Return `checker` behind a view: requests as `requests` makes them, ok answers to its `read` as `answers` does."""
    return _Adapted(checker, requests, answers)


def renamed(names: Mapping[str, str]) -> Callable[[str, Any], Request]:
    """Return a value for `requests` that gives functions the names that the checker knows, arguments unchanged."""
    return lambda f, value: (names.get(f, f), value)


class _Adapted:
    def __init__(
        self,
        checker: Checker,
        requests: Callable[[str, Any], Request] | None,
        answers: Callable[[Any], Any] | None,
    ) -> None:
        self.name = checker.name
        self._checker = checker
        self._requests = requests
        self._answers = answers

    def check(self, history: History, run: RunRecord) -> CheckResult:
        return self._checker.check(self._view(history), run)

    def incremental(self) -> IncrementalChecker | None:
        """Return the twin of the checker that judges while a run goes on, with the same view; None when it has none."""
        twin = self._checker.incremental() if isinstance(self._checker, HasIncremental) else None
        return None if twin is None else _AdaptedTwin(twin, self._requests, self._answers)

    def _view(self, history: History) -> History:
        view = copy(history)
        if self._requests is not None:
            requests = [self._requests(f, value) for f, value in zip(history.f, history.value, strict=True)]
            view.f = [f for f, _ in requests]
            view.value = [value for _, value in requests]
        if self._answers is not None:
            columns = zip(view.f, history.outcome, history.result, strict=True)
            view.result = [
                self._answers(result) if f == "read" and outcome == "ok" else result for f, outcome, result in columns
            ]
        return view


class _AdaptedTwin:
    def __init__(
        self,
        twin: IncrementalChecker,
        requests: Callable[[str, Any], Request] | None,
        answers: Callable[[Any], Any] | None,
    ) -> None:
        self.name = twin.name
        self._twin = twin
        self._requests = requests
        self._answers = answers
        self._reads: set[int] = set()

    def invoke(self, row: int, operation: Operation) -> None:
        if self._requests is not None:
            f, value = self._requests(operation.f, operation.value)
            operation = Operation(operation.process, f, operation.key, value)
        if operation.f == "read" and self._answers is not None:
            self._reads.add(row)
        self._twin.invoke(row, operation)

    def complete(self, row: int, outcome: Outcome) -> tuple[int, ...]:
        if row in self._reads:
            self._reads.remove(row)
            if self._answers is not None and outcome.kind == "ok":
                outcome = replace(outcome, value=self._answers(outcome.value))
        return self._twin.complete(row, outcome)
