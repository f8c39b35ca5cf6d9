"""From counted runs to verdicts, and from verdicts and expectations to an exit code.

Within a cell a violation outranks a harness error, that outranks not knowing, and that a pass; one run that tested
nothing does not spoil hundreds that did, so a cell is vacuous only when fewer than half of its runs tested something.

What was *expected* of a cell then decides what it means: an expected violation that was seen is as good as a pass. One
that was not seen is reported and changes nothing, unless the plan is strict: then the campaign is inconclusive.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from faultline.campaign.matrix import Expectation
from faultline.harness.verdict import Verdict, exit_code, merge

__all__ = ["INTERRUPTED_EXIT_CODE", "RunCounts", "campaign_exit_code", "campaign_verdict", "remaining", "standing"]

INTERRUPTED_EXIT_CODE = 130


class RunCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How the runs of a cell ended."""

    passed: int = 0
    violations: int = 0
    unknown: int = 0
    vacuous: int = 0
    harness_errors: int = 0

    @property
    def judged(self) -> int:
        """The runs that say something about the system."""
        return self.passed + self.violations

    @property
    def verdict(self) -> Verdict:
        """The verdict on the cell; a cell without any run is vacuous."""
        if self.violations:
            return Verdict.VIOLATION
        if self.harness_errors:
            return Verdict.HARNESS_ERROR
        if self.unknown:
            return Verdict.UNKNOWN
        return Verdict.VACUOUS if self.vacuous >= self.passed else Verdict.PASS


def standing(expected: Expectation, counts: RunCounts) -> str:
    """How the cell compares with what was expected of it, in words."""
    verdict = counts.verdict
    if verdict is Verdict.HARNESS_ERROR:
        return "harness error"
    if expected == "violation":
        return "as expected" if verdict is Verdict.VIOLATION else "expected violation not seen"
    if verdict is Verdict.VIOLATION:
        return "unexpected violation"
    return "as expected" if verdict is Verdict.PASS else "inconclusive"


def remaining(expected: Expectation, counts: RunCounts, *, strict: bool) -> Verdict:
    """The verdict on the cell that is left once the expectation is taken off."""
    verdict = counts.verdict
    if expected == "pass" or verdict is Verdict.HARNESS_ERROR:
        return verdict
    if verdict is Verdict.VIOLATION:
        return Verdict.HARNESS_ERROR if counts.harness_errors else Verdict.PASS
    if strict:
        return Verdict.VACUOUS
    return verdict if verdict is Verdict.UNKNOWN else Verdict.PASS


def campaign_verdict(cells: Iterable[Verdict], *, all_runs_finished: bool) -> Verdict:
    """The verdict on the campaign. Runs that are missing, for whatever reason, are a failure of the harness."""
    missing = () if all_runs_finished else (Verdict.HARNESS_ERROR,)
    return merge([*cells, *missing])


def campaign_exit_code(verdict: Verdict, *, interrupted: bool) -> int:
    """The exit code of the command that ran the campaign."""
    return INTERRUPTED_EXIT_CODE if interrupted else exit_code(verdict)
