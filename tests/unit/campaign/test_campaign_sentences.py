"""Verdicts in words."""

from __future__ import annotations

from faultline.campaign.outcome import RunCounts
from faultline.campaign.sentences import cell_sentence, marks_sentences, percent, signature_sentence


def test_a_violated_cell_says_how_often_with_its_interval_and_the_smallest_case() -> None:
    counts = RunCounts(passed=463, violations=37)
    sentence = cell_sentence("core/register/leadership", "pass", counts, ["linearizability"], (17, 4, ["partition"]))
    assert sentence == (
        "core/register/leadership: 37 of 500 runs violate linearizability (7.4 %, 95 % interval 5.4–10.0 %); "
        "smallest: seed 17, 4 operations, partition."
    )


def test_a_passing_cell_says_what_its_runs_exclude() -> None:
    sentence = cell_sentence("core/register/calm", "pass", RunCounts(passed=500), [], None)
    assert sentence == "core/register/calm: 0 of 500 runs violate anything: below 0.6 % of runs do."


def test_runs_that_say_nothing_are_counted_apart() -> None:
    counts = RunCounts(passed=2, unknown=1, vacuous=2, harness_errors=3)
    sentence = cell_sentence("c", "pass", counts, [], None, "No port was free.")
    assert "0 of 2 runs" in sentence
    assert "3 runs failed in the harness, the first with: No port was free; " in sentence
    assert "1 run could not be decided; 2 runs tested too little." in sentence


def test_an_expectation_is_said_whether_it_was_met_or_not() -> None:
    met = cell_sentence("c", "violation", RunCounts(violations=1), ["LDR-I1"], (3, 0, []))
    unmet = cell_sentence("c", "violation", RunCounts(passed=5), [], None)
    assert met.endswith("smallest: seed 3, seen inside the system, no fault; as expected.")
    assert "1 of 1 run violates LDR-I1" in met
    assert unmet.endswith("a violation was expected.")


def test_small_rates_keep_two_significant_digits() -> None:
    assert [percent(rate) for rate in (0, 1, 0.0741, 0.00098, 0.0000123)] == ["0.0", "100.0", "7.4", "0.098", "0.0012"]


def test_a_signature_names_count_first_seed_and_the_smallest_example() -> None:
    row = {
        "cell": "c",
        "signature": "l/stale-read",
        "count": 3,
        "first_seed": 2,
        "seed": 17,
        "example": "It was stale.",
    }
    assert signature_sentence(row, 40) == "c: l/stale in 3 of 40 runs, first at seed 2. Seed 17: It was stale."


def test_marks_that_were_never_reached_are_told_apart_from_those_that_were() -> None:
    marks = [{"cell": "c", "mark": "cut", "runs": 4}, {"cell": "c", "mark": "elected", "runs": 0}]
    assert marks_sentences(marks, {"c": 5}) == (["c: reached cut in 4, of 5 runs."], ["c: never reached elected."])
