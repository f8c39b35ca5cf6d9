"""Verdicts in words."""

from __future__ import annotations

from faultline.campaign.outcome import RunCounts
from faultline.campaign.sentences import (
    cell_sentence,
    faults_sentence,
    in_short,
    marks_sentence,
    never_reached,
    percent,
    signature_sentence,
)


def test_a_violated_cell_says_how_often_with_its_interval_and_the_smallest_case() -> None:
    counts = RunCounts(passed=463, violations=37)
    sentence = cell_sentence("core/register/leadership", (), counts, ["linearizability"], (17, 4, ["partition"]))
    assert sentence == (
        "core/register/leadership: 37 of 500 runs violate linearizability (7.4 %, 95 % interval 5.4–10.0 %); "
        "smallest: seed 17, 4 operations, partition."
    )


def test_a_passing_cell_says_what_its_runs_exclude() -> None:
    sentence = cell_sentence("core/register/calm", (), RunCounts(passed=500), [], None)
    assert sentence == "core/register/calm: 0 of 500 runs violate anything: below 0.6 % of runs do."


def test_runs_that_say_nothing_are_counted_apart() -> None:
    counts = RunCounts(passed=2, unknown=1, vacuous=2, harness_errors=3)
    sentence = cell_sentence("c", (), counts, [], None, "No port was free.")
    assert "0 of 2 runs" in sentence
    assert "3 runs failed in the harness, the first with: No port was free; " in sentence
    assert "1 run could not be decided; 2 runs tested too little." in sentence


def test_an_expectation_is_said_whether_it_was_met_or_not() -> None:
    allowed = ("LDR-I1", "stale-read")
    met = cell_sentence("c", allowed, RunCounts(violations=1, expected=1), ["LDR-I1"], (3, 0, []))
    unmet = cell_sentence("c", allowed, RunCounts(passed=5), [], None)
    mixed = RunCounts(violations=5, expected=3)
    beyond = cell_sentence("c", allowed, mixed, ["linearizability"], None, unexpected=["linearizability/lost-update"])
    assert met.endswith("smallest: seed 3, seen inside the system, no fault; as expected.")
    assert "1 of 1 run violates LDR-I1" in met
    assert unmet.endswith("; expected and not seen: LDR-I1 and stale-read.")
    assert beyond.endswith("; 2 runs show what the plan does not allow: linearizability/lost-update.")


def test_small_rates_keep_two_significant_digits() -> None:
    assert [percent(rate) for rate in (0, 1, 0.0741, 0.00098, 0.0000123)] == ["0.0", "100.0", "7.4", "0.098", "0.0012"]


def test_a_signature_names_count_first_seed_and_the_smallest_example() -> None:
    row = {
        "cell": "c",
        "signature": "l/stale",
        "count": 3,
        "first_seed": 2,
        "seed": 17,
        "example": "It was stale.",
    }
    assert signature_sentence(row, 40) == "c: l/stale in 3 of 40 runs, first at seed 2. Seed 17: It was stale."


def test_marks_are_told_most_frequent_first_and_those_never_reached_by_cell() -> None:
    assert marks_sentence({"cut": 2, "elected": 5}, 5) == "Reached in 5 runs: elected in 5, cut in 2."
    assert marks_sentence({}, 5) == "No run reached any mark."
    marks = [{"cell": "c", "mark": "cut", "runs": 4}, {"cell": "c", "mark": "elected", "runs": 0}]
    assert never_reached(marks) == ["c: never reached elected."]


def test_faults_are_counted_only_when_they_took_effect() -> None:
    rows = [
        {"kind": "kill", "injections": 3, "not_applied": 1},
        {"kind": "cut", "injections": 1, "not_applied": 0},
        {"kind": "kill", "injections": 2, "not_applied": 0},
    ]
    assert faults_sentence(rows, 5) == "Faults that took effect: cut 1 time, kill 4 times."
    assert faults_sentence([], 5) == "No fault was injected."


def test_of_runs_that_left_only_their_verdicts_no_fault_is_denied() -> None:
    only = faults_sentence([], 7, verdicts_only=7)
    assert only == "Faults that took effect: not known: 7 runs left only their verdicts."
    some = faults_sentence([{"kind": "kill", "injections": 2, "not_applied": 0}], 9, verdicts_only=1)
    assert some == "Faults that took effect: kill 2 times; not known: 1 run left only their verdicts."
    assert faults_sentence([], 0) == "Faults that took effect: not known: no run ended."
    told = cell_sentence("c", (), RunCounts(violations=1), ["LDR-I1"], (7, 2, None))
    assert "smallest: seed 7, 2 operations, faults not known" in told


def test_a_cell_says_how_many_of_its_runs_did_not_end() -> None:
    told = cell_sentence("c", (), RunCounts(passed=2, missing=1998), [], None)
    assert told.endswith("; 1998 runs did not end.")


def test_a_dozen_fault_sets_that_all_cells_have_are_told_once() -> None:
    sets = ("leadership", "clocks", "disk", "fsync")
    lines = ["Campaign c: pass.", "core/register/leadership+clocks+disk+fsync: 0 of 6 runs violate anything."]
    assert in_short(lines, [sets, sets]) == [
        "Campaign c: pass.",
        "In the names of cells, * stands for the fault sets leadership, clocks, disk and fsync.",
        "core/register/*: 0 of 6 runs violate anything.",
    ]


def test_names_of_cells_stay_whole_where_fault_sets_are_few_or_differ() -> None:
    lines = ["Campaign c: pass.", "core/register/leadership+clocks: 0 of 6 runs violate anything."]
    assert in_short(lines, [("leadership", "clocks")]) == lines
    assert in_short(lines, [("leadership", "clocks", "disk", "fsync"), ("leadership", "clocks")]) == lines
    assert in_short(lines, []) == lines
