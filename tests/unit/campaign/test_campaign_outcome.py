"""Verdicts of cells and campaigns, expectations, exit codes."""

from __future__ import annotations

import pytest

from faultline.campaign.expectation import Expectation
from faultline.campaign.outcome import RunCounts, campaign_exit_code, campaign_verdict, remaining, standing
from faultline.harness.verdict import Verdict

STALE = ("stale-read",)


@pytest.mark.parametrize(
    ("counts", "verdict"),
    [
        (RunCounts(passed=3), Verdict.PASS),
        (RunCounts(passed=3, violations=1, unknown=1, harness_errors=1), Verdict.VIOLATION),
        (RunCounts(passed=3, harness_errors=1, unknown=1), Verdict.HARNESS_ERROR),
        (RunCounts(passed=3, unknown=1, vacuous=9), Verdict.UNKNOWN),
        (RunCounts(passed=3, vacuous=2), Verdict.PASS),
        (RunCounts(passed=3, vacuous=3), Verdict.VACUOUS),
        (RunCounts(), Verdict.VACUOUS),
        (RunCounts(passed=2, missing=1), Verdict.UNKNOWN),
        (RunCounts(missing=1), Verdict.UNKNOWN),
        (RunCounts(violations=1, missing=9), Verdict.VIOLATION),
    ],
)
def test_within_a_cell_the_worst_verdict_speaks_but_few_empty_runs_do_not(counts: RunCounts, verdict: Verdict) -> None:
    assert counts.verdict is verdict


@pytest.mark.parametrize(
    ("expected", "counts", "words", "left", "left_when_strict"),
    [
        ((), RunCounts(passed=1), "as expected", Verdict.PASS, Verdict.PASS),
        ((), RunCounts(violations=1), "unexpected violation", Verdict.VIOLATION, Verdict.VIOLATION),
        ((), RunCounts(unknown=1), "inconclusive", Verdict.UNKNOWN, Verdict.UNKNOWN),
        (STALE, RunCounts(passed=9, violations=1, expected=1), "as expected", Verdict.PASS, Verdict.PASS),
        (STALE, RunCounts(violations=9, expected=8), "unexpected violation", Verdict.VIOLATION, Verdict.VIOLATION),
        (STALE, RunCounts(passed=9), "expected violation not seen", Verdict.PASS, Verdict.VACUOUS),
        (STALE, RunCounts(harness_errors=1), "harness error", Verdict.HARNESS_ERROR, Verdict.HARNESS_ERROR),
        (
            STALE,
            RunCounts(violations=1, expected=1, harness_errors=1),
            "harness error",
            Verdict.HARNESS_ERROR,
            Verdict.HARNESS_ERROR,
        ),
        (STALE, RunCounts(violations=5, expected=5, unknown=1), "inconclusive", Verdict.UNKNOWN, Verdict.UNKNOWN),
        (STALE, RunCounts(unknown=1), "inconclusive", Verdict.UNKNOWN, Verdict.UNKNOWN),
        (STALE, RunCounts(vacuous=3), "inconclusive", Verdict.VACUOUS, Verdict.VACUOUS),
    ],
)
def test_what_was_expected_decides_what_a_verdict_means(
    expected: Expectation, counts: RunCounts, words: str, left: Verdict, left_when_strict: Verdict
) -> None:
    assert standing(expected, counts) == words
    assert remaining(expected, counts, strict=False) is left
    assert remaining(expected, counts, strict=True) is left_when_strict


@pytest.mark.parametrize(
    ("cells", "exit_code"),
    [
        ([Verdict.PASS, Verdict.PASS], 0),
        ([Verdict.PASS, Verdict.VACUOUS], 3),
        ([Verdict.UNKNOWN, Verdict.VACUOUS], 3),
        ([Verdict.UNKNOWN, Verdict.HARNESS_ERROR], 4),
        ([Verdict.HARNESS_ERROR, Verdict.VIOLATION, Verdict.PASS], 1),
    ],
)
def test_the_exit_code_is_that_of_the_worst_cell(cells: list[Verdict], exit_code: int) -> None:
    verdict = campaign_verdict(cells, finished=True, failed=False)
    assert campaign_exit_code(verdict, interrupted=False) == exit_code


def test_a_campaign_whose_runs_have_not_all_ended_does_not_pass() -> None:
    assert campaign_verdict([Verdict.PASS], finished=False, failed=False) is Verdict.UNKNOWN
    assert campaign_verdict([Verdict.VIOLATION], finished=False, failed=False) is Verdict.VIOLATION


def test_what_failed_is_a_failure_of_the_harness() -> None:
    assert campaign_verdict([Verdict.PASS], finished=True, failed=True) is Verdict.HARNESS_ERROR
    assert campaign_verdict([Verdict.PASS], finished=False, failed=True) is Verdict.HARNESS_ERROR


def test_an_interrupted_campaign_ends_with_130_unless_it_found_a_violation() -> None:
    assert campaign_exit_code(Verdict.UNKNOWN, interrupted=True) == 130
    assert campaign_exit_code(Verdict.VIOLATION, interrupted=True) == 1
