"""One result of parts that were checked apart: the worst verdict, and the sums of the figures."""

from __future__ import annotations

import pytest

from faultline.checkers.merging import merged
from faultline.harness.verdict import Cause, CheckResult, Reason, Verdict


def test_merging_takes_the_worst_verdict_and_adds_figures():
    good = CheckResult(
        checker="c", verdict=Verdict.PASS, sentence="Good.", detail={"keys": 2, "model": "m", "t": {"a": 1}}
    )
    bad = CheckResult(
        checker="c", verdict=Verdict.UNKNOWN, sentence="Bad.", detail={"keys": 3, "model": "m", "t": {"b": 2}}
    )
    result = merged([good, bad], 7)
    assert result.verdict is Verdict.UNKNOWN
    assert result.sentence.startswith("Bad.")
    assert result.detail == {"keys": 5, "model": "m", "t": {"a": 1, "b": 2}, "parts": 2}


@pytest.mark.parametrize(
    "silent",
    [
        CheckResult(checker="c", verdict=Verdict.VACUOUS, sentence="Nothing."),
        CheckResult(checker="c", verdict=Verdict.VACUOUS, sentence="Nothing.", reason=Reason(cause=Cause.NOTHING_SEEN)),
    ],
    ids=["vacuous", "nothing seen"],
)
def test_a_part_in_which_nothing_was_to_be_judged_counts_only_when_all_are_so(silent):
    good = CheckResult(checker="c", verdict=Verdict.PASS, sentence="Good.")
    unread = CheckResult(
        checker="c", verdict=Verdict.UNKNOWN, sentence="Unread.", reason=Reason(cause=Cause.NOT_READ_OUT)
    )
    assert merged([silent, good], 7).verdict is Verdict.PASS
    assert merged([silent, silent], 7).verdict is silent.verdict
    assert merged([silent, good, unread], 7).verdict is Verdict.UNKNOWN
