"""Counting operations by function and outcome, and refusing to judge a run in which some function never worked.

A checker can be satisfied by a history in which every compare-and-set failed; a reader of "pass" would think it had
been tested. So a function that was called and never once succeeded makes the verdict *vacuous* (Jepsen documents the
same for its `stats` checker, and answers *invalid*).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult, Verdict

__all__ = ["StatsChecker", "counts_by_function"]

OUTCOMES = ("ok", "fail", "info")


def counts_by_function(history: History) -> dict[str, dict[str, int]]:
    """Count the operations of each function that ended ok, fail and info, in order of first use."""
    tally = Counter(zip(history.f, history.outcome, strict=True))
    functions = dict.fromkeys(history.f)
    return {f: {outcome: tally[f, outcome] for outcome in OUTCOMES} for f in functions}


class StatsChecker:
    """Counts operations; *vacuous* when a function that was called never succeeded, or nothing was called at all.

    `refusals` names functions that need not succeed, with the error of the refusal that says as much.
    """

    name = "stats"
    judges_the_test = True

    def __init__(self, *, refusals: Mapping[str, str] | None = None) -> None:
        self._refusals = dict(refusals or {})

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """Count operations by outcome, in `detail["by_function"]` and `detail["totals"]`."""
        by_function = counts_by_function(history)
        totals = {outcome: sum(counts[outcome] for counts in by_function.values()) for outcome in OUTCOMES}
        refused = {f for f, error in zip(history.f, history.error, strict=True) if error == self._refusals.get(f, "")}
        never = [f for f, counts in by_function.items() if counts["ok"] == 0 and f not in refused]
        return CheckResult(
            checker=self.name,
            verdict=Verdict.VACUOUS if never or not by_function else Verdict.PASS,
            sentence=_sentence(totals, never),
            detail={"by_function": by_function, "totals": totals, "never_ok": never},
        )


def _sentence(totals: dict[str, int], never: list[str]) -> str:
    total = sum(totals.values())
    if not total:
        return "No operation was invoked."
    if never:
        return f"Not one {' or '.join(never)} of {total:,} operations succeeded, so nothing is known about it."
    return f"{total:,} operations: {totals['ok']:,} ok, {totals['fail']:,} failed, {totals['info']:,} indeterminate."
