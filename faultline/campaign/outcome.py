"""From counted runs to verdicts, and from verdicts and expectations to an exit code.

Within a cell a violation outranks a harness error, that outranks *unknown* (as when runs are missing), and that a pass.
One vacuous run does not spoil hundreds of others, so a cell is vacuous only when fewer than half of its runs tested
something.

The *expectations* of the cell come next: a run with only allowed anomalies counts as a pass, and one with any other
finding is a violation. When none of the allowed anomalies was seen, this is reported and changes nothing, unless the
plan is strict: then the campaign is inconclusive.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from faultline.campaign.expectation import Expectation
from faultline.harness.verdict import Verdict, exit_code, merge

__all__ = [
    "INTERRUPTED_EXIT_CODE",
    "NOT_SEEN",
    "RunCounts",
    "campaign_exit_code",
    "campaign_verdict",
    "remaining",
    "standing",
]

INTERRUPTED_EXIT_CODE = 130

NOT_SEEN = "expected violation not seen"
"""The standing of a cell that shows none of the anomalies that its plan allows."""


class RunCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The results of the runs of a cell; `expected` of the `violations` are allowed by the plan.

    `missing` runs were planned and have no verdict.
    """

    passed: int = 0
    violations: int = 0
    expected: int = 0
    unknown: int = 0
    vacuous: int = 0
    harness_errors: int = 0
    missing: int = 0

    @property
    def planned(self) -> int:
        """All runs that were planned."""
        ended = self.passed + self.violations + self.unknown + self.vacuous + self.harness_errors
        return ended + self.missing

    @property
    def judged(self) -> int:
        """The runs that say something about the system."""
        return self.passed + self.violations

    @property
    def unexpected(self) -> int:
        """The runs with a violation that the plan does not allow."""
        return self.violations - self.expected

    @property
    def without_expected(self) -> RunCounts:
        """The same, with each expected violation counted as a pass."""
        return msgspec.structs.replace(self, passed=self.passed + self.expected, violations=self.unexpected, expected=0)

    @property
    def verdict(self) -> Verdict:
        """The verdict on the cell: never a pass before all of its runs have ended; without any run it is vacuous."""
        if self.violations:
            return Verdict.VIOLATION
        if self.harness_errors:
            return Verdict.HARNESS_ERROR
        if self.unknown or self.missing:
            return Verdict.UNKNOWN
        return Verdict.VACUOUS if self.vacuous >= self.passed else Verdict.PASS


_STANDINGS = {
    Verdict.VIOLATION: "unexpected violation",
    Verdict.HARNESS_ERROR: "harness error",
    Verdict.UNKNOWN: "inconclusive",
    Verdict.VACUOUS: "inconclusive",
    Verdict.PASS: "as expected",
}


def standing(expected: Expectation, counts: RunCounts) -> str:
    """Return the comparison of the cell with its expectations, in words."""
    left = counts.without_expected.verdict
    return NOT_SEEN if left is Verdict.PASS and _is_unseen(expected, counts) else _STANDINGS[left]


def remaining(expected: Expectation, counts: RunCounts, *, strict: bool) -> Verdict:
    """Return the verdict on the cell with its expected violations counted as passes."""
    left = counts.without_expected.verdict
    return Verdict.VACUOUS if strict and left is Verdict.PASS and _is_unseen(expected, counts) else left


def _is_unseen(expected: Expectation, counts: RunCounts) -> bool:
    return bool(expected) and not counts.expected


def campaign_verdict(cells: Iterable[Verdict], *, finished: bool, failed: bool) -> Verdict:
    """Return the verdict on the campaign: no pass before all runs have `finished`; if it `failed`, a harness error."""
    unfinished = () if finished else (Verdict.UNKNOWN,)
    failure = (Verdict.HARNESS_ERROR,) if failed else ()
    return merge([*cells, *unfinished, *failure])


def campaign_exit_code(verdict: Verdict, *, interrupted: bool) -> int:
    """Return the exit code of the command that ran the campaign. A violation that was found outranks the
    interruption."""
    return INTERRUPTED_EXIT_CODE if interrupted and verdict is not Verdict.VIOLATION else exit_code(verdict)
