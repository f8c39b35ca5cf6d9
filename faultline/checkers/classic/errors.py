"""Unexpected errors, grouped by their code (Jepsen's `unhandled-exceptions`).

Shape: any. An operation that ended `fail` or `info` has an error code; the client's author expects the codes in
`handled`, such as timeouts. All others are reported, most frequent first, with their outcome and a few examples. The
verdict is always *pass*: an error is no broken promise, but reading this list finds clients that misclassify their
errors."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from faultline.checkers.common.conclusion import EXAMPLES_MAX
from faultline.checkers.common.words import counted, told
from faultline.harness.history import OPEN, History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult, Verdict

__all__ = ["UnhandledErrorsChecker"]

_CODE_LENGTH_MAX = 120


class UnhandledErrorsChecker:
    """A checker that groups errors by code. `detail["errors"]` has a record for each, the most frequent first."""

    name = "errors"
    judges_the_test = True

    def __init__(self, *, handled: Collection[str] = ()) -> None:
        self.handled = frozenset(handled)

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """Return the errors of `history`; of `run` nothing is needed."""
        rows_by_code: dict[str, list[int]] = {}
        for row, error in enumerate(history.error):
            if error is not None and history.complete_index[row] != OPEN and error not in self.handled:
                rows_by_code.setdefault(error[:_CODE_LENGTH_MAX], []).append(row)
        ranked = sorted(rows_by_code.items(), key=lambda item: (-len(item[1]), item[0]))
        return CheckResult(
            checker=self.name,
            verdict=Verdict.PASS,
            sentence=_sentence(ranked),
            detail={"errors": [_record(history, code, rows) for code, rows in ranked]},
        )


def _sentence(ranked: Sequence[tuple[str, list[int]]]) -> str:
    if not ranked:
        return "No operation ended with an unexpected error."
    told_codes = ", ".join(f"{told(code)} ({len(rows)})" for code, rows in ranked[:3])
    return f"{counted(sum(len(rows) for _, rows in ranked), 'operation')} ended with unexpected errors: {told_codes}."


def _record(history: History, code: str, rows: Sequence[int]) -> dict[str, Any]:
    outcomes = [history.outcome[row] for row in rows]
    return {
        "code": code,
        "count": len(rows),
        "fail": outcomes.count("fail"),
        "info": outcomes.count("info"),
        "functions": sorted({history.f[row] for row in rows}),
        "operations": list(rows[:EXAMPLES_MAX]),
    }
