"""Several checkers as one: the worst verdict of all, and every finding.

Violation outranks unknown, which outranks pass; harness errors and vacuous runs are ranked as in `merge`. A checker
that crashes is *unknown*, and the findings of the others stand.

`parallel` runs them in threads. Checkers in pure Python share one interpreter lock and gain nothing; those that spend
their time in native kernels, or reading files, do. The results are in the order of the checkers either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from faultline.harness.errors import HarnessError
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Cause, CheckResult, Reason, Verdict, merge
from faultline.harness.workload import Checker

__all__ = ["ComposedChecker", "compose"]


def compose(*checkers: Checker, name: str = "compose", parallel: bool = False) -> ComposedChecker:
    """Return one checker that asks all of `checkers`."""
    return ComposedChecker(checkers, name=name, parallel=parallel)


class ComposedChecker:
    """A checker that asks each of `checkers`. `detail["checks"]` has their results by name, a repeated name
    numbered."""

    def __init__(self, checkers: Sequence[Checker], *, name: str = "compose", parallel: bool = False) -> None:
        self.name = name
        self.checkers = tuple(checkers)
        self.parallel = parallel

    def check(self, history: History, run: RunRecord) -> CheckResult:
        """Return the merged result; without any checker it is *vacuous*."""
        results = self._results(history, run)
        return CheckResult(
            checker=self.name,
            verdict=merge(result.verdict for result in results) if results else Verdict.VACUOUS,
            sentence=_sentence(results),
            findings=tuple(finding for result in results for finding in result.findings),
            detail={"checks": _by_name(results)},
            reason=_reason(results),
        )

    def _results(self, history: History, run: RunRecord) -> list[CheckResult]:
        if not self.parallel:
            return [_checked(checker, history, run) for checker in self.checkers]
        with ThreadPoolExecutor(max_workers=max(1, len(self.checkers))) as pool:
            return list(pool.map(lambda checker: _checked(checker, history, run), self.checkers))


def _checked(checker: Checker, history: History, run: RunRecord) -> CheckResult:
    try:
        return checker.check(history, run)
    except Exception as error:
        is_harness = isinstance(error, HarnessError)
        return CheckResult(
            checker=checker.name,
            verdict=Verdict.HARNESS_ERROR if is_harness else Verdict.UNKNOWN,
            sentence=f"The checker {checker.name} itself failed: {type(error).__name__}: {error}",
            reason=None if is_harness else Reason(cause=Cause.CHECKER),
        )


def _sentence(results: Sequence[CheckResult]) -> str:
    if not results:
        return "No checker was asked."
    worst = merge(result.verdict for result in results)
    telling = [result.sentence for result in results if result.verdict is worst]
    return " ".join(telling[:3])


def _reason(results: Sequence[CheckResult]) -> Reason | None:
    """Return the reason of the first of the worst results, if they have one."""
    worst = merge(result.verdict for result in results)
    return next((result.reason for result in results if result.verdict is worst), None)


def _by_name(results: Sequence[CheckResult]) -> dict[str, object]:
    named: dict[str, object] = {}
    for result in results:
        name, number = result.checker, 2
        while name in named:
            name, number = f"{result.checker}-{number}", number + 1
        named[name] = msgspec.to_builtins(result)
    return named
