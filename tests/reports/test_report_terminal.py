"""The same facts on a terminal."""

from __future__ import annotations

import pytest
from report_samples import (
    REPLAY,
    SENTENCE,
    campaign_summary,
    findings_of,
    judgement,
    long_run,
    passing_run,
    violating_run,
)

from faultline.checkers.transactions.checker import ListAppendChecker
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import ok
from faultline.harness.verdict import Cause, CheckResult, Finding, Reason, Verdict
from faultline.reports.run_page import run_values
from faultline.reports.sentences import decimals_for, operation_sentence, verdict_sentence
from faultline.reports.terminal import LINES_PER_VIOLATION, campaign_lines, run_lines
from faultline.reports.text import duration, percent


def test_a_violation_is_told_in_order_sentence_operations_faults_replay() -> None:
    lines = run_lines(*violating_run())
    assert lines[0] == f"✖ {SENTENCE}"
    assert lines[1] == "  Counterexample (4 of 205 operations show it):"
    assert lines[2].startswith("     1. Client 0 wrote 7 to k3")
    assert lines[5].startswith("  ✖  4. Client 4 read 7")
    assert lines[6] == "  Meanwhile:"
    assert lines[-1] == f"  Replay: {REPLAY}"


def test_a_violation_never_takes_more_than_twenty_five_lines() -> None:
    record, _ = long_run(2_000)
    every = tuple(range(len(record.history)))
    big = Finding(checker="c", anomaly="a", sentence="s", operations=every, time_us=record.history.end_us())
    judged = judgement([big, *findings_of(())] * 9, warnings=["w"] * 9, errors=["e"] * 9)
    record.faults = [fault for fault in record.faults if fault.kind == "kill"] * 30
    lines = run_lines(record, judged)
    assert len(lines) <= LINES_PER_VIOLATION
    assert "the 12 operations nearest to the anomaly, of 2,000 that show it" in lines[1]
    assert any("read 7 from late" in line for line in lines)
    assert lines[-1].startswith("  Replay: ")


def test_a_pass_is_one_line_and_its_replay() -> None:
    assert run_lines(*passing_run()) == [
        "✔ Everything that was checked held: 3 keys are linearizable over 200 operations.",
        f"  Replay: {REPLAY}",
    ]


def test_what_was_not_decided_says_what_is_known() -> None:
    told = "The search of k3 was given up after 9 steps: none of 4 completed operations could be placed."
    known = {"undecided": [{"sentence": told}, {"sentence": told.replace("k3", "k4")}]}
    check = CheckResult(checker="linearizability", verdict=Verdict.UNKNOWN, sentence=f"Undecided. {told}", detail=known)
    judged = judgement([], verdict=Verdict.UNKNOWN, sentence=check.sentence, checks=[check], warnings=[])
    lines = run_lines(passing_run()[0], judged)
    assert lines[:2] == [f"? Undecided. {told}", f"  ? {told.replace('k3', 'k4')}"]
    assert lines[2].startswith("  Next: The checker gives no reason; ")
    assert lines[3:] == [f"  Replay: {REPLAY}"]


def test_cycles_that_were_not_ruled_out_are_no_keys_of_a_search() -> None:
    history = History()
    rows = []
    for number, (key, after) in enumerate(zip("abcdefghij", "bcdefghija", strict=True)):
        steps = [["append", key, 1], ["r", after, None]]
        rows.append(history.invoke(Operation(number, "txn", None, steps), number, number, "athens"))
    for row, (key, after) in zip(rows, zip("abcdefghij", "bcdefghija", strict=True), strict=True):
        history.complete(row, ok([["append", key, 1], ["r", after, []]]), 100 + row)
    check = ListAppendChecker("consistent-view", steps=8).check(history)
    judged = judgement([], verdict=check.verdict, sentence=check.sentence, checks=[check], warnings=[])
    lines = run_lines(passing_run()[0], judged)
    assert (check.verdict, lines[0]) == (Verdict.UNKNOWN, f"? {check.sentence}")
    assert lines[1].startswith("  Next: Repeat the run, which keeps its history (faultline run --system ")
    assert run_values(passing_run()[0], judged)["next_step"] in lines[1]


def test_what_was_not_decided_names_the_next_step_by_its_reason() -> None:
    reason = Reason(cause=Cause.BUDGET, option="steps_max", value=200_000)
    check = CheckResult(checker="linearizability", verdict=Verdict.UNKNOWN, sentence="Undecided.", reason=reason)
    stored = "faultline replay faultline-results/runs/r"
    judged = judgement([], verdict=Verdict.UNKNOWN, sentence="Undecided.", checks=[check], replay=stored)
    record = passing_run()[0]
    step = next(line for line in run_lines(record, judged) if line.startswith("  Next: "))
    assert "faultline check faultline-results/runs/r --option steps-max=5000000" in step
    assert step.removeprefix("  Next: ") == run_values(record, judged)["next_step"]
    assert not [line for line in run_lines(*violating_run()) if "Next:" in line]


def test_there_are_no_colour_codes_unless_asked_for() -> None:
    plain, coloured = run_lines(*violating_run()), run_lines(*violating_run(), colour=True)
    assert not any("\x1b" in line for line in plain)
    assert coloured[0] == f"\x1b[31m{plain[0]}\x1b[0m"
    assert coloured[1:] == plain[1:]


def test_a_campaign_is_told_with_its_sums_its_cells_and_its_violations() -> None:
    text = "\n".join(campaign_lines(campaign_summary()))
    assert text.startswith("✖ Campaign demo")
    assert "300 runs scheduled = 269 passed + 3 violated + 14 expected" in text
    assert "≈ expected violation 14/50  consistent-core+stale-read / register / partition" in text
    assert "Seen in 14 runs (28 %, 95 % interval 17 % to 42 %); first with seed 17" in text
    assert text.count(f"Replay: {REPLAY}") == 2
    assert "Never reached: entries-truncated" in text


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (0, "Client 0 wrote 7 to k3 through athens, from 2.050 s to 2.053 s."),
        (2, "Client 2 wrote 9 to k3 through byzantium, from 2.096 s to 2.104 s."),
        (3, "Client 4 read 7 from k3 through athens, from 2.417 s to 2.420 s."),
    ],
)
def test_an_operation_is_a_sentence(row: int, sentence: str) -> None:
    record, judged = violating_run()
    assert operation_sentence(record.history.row(judged.findings[0].operations[row])) == sentence


def test_a_failed_operation_certainly_did_not_happen() -> None:
    record, _ = violating_run()
    failed = record.history.row(record.history.outcome.index("fail"))
    assert "it certainly did not happen (not-leader)" in operation_sentence(failed)


def test_a_verdict_sentence_is_one_line_and_never_empty() -> None:
    assert verdict_sentence("violation", "One\nline.") == "✖ One line."
    assert verdict_sentence("vacuous", "") == "∅ Vacuous: the run tested nothing that could have failed."
    assert len(verdict_sentence("pass", "x" * 100_000)) < 700


def test_decimals_tell_moments_apart() -> None:
    assert decimals_for([1_000_000, 1_002_000]) == 3
    assert decimals_for([1_000_000, 1_000_400]) == 4
    assert decimals_for([2_967_600, 2_968_400]) == 4, "both would be written 2.968"
    assert decimals_for([1_000_000, 1_000_001]) == 6
    assert decimals_for([]) == 3


def test_lengths_and_shares_are_written_as_people_write_them() -> None:
    assert [duration(time) for time in (7, 1_500, 12_000, 310_000, 2_000_000)] == [
        "7 µs",
        "1.50 ms",
        "12.0 ms",
        "310 ms",
        "2.00 s",
    ]
    assert [percent(share) for share in (0.0, 0.004, 0.06, 0.28, 1.0)] == ["0 %", "0.4 %", "6.0 %", "28 %", "100 %"]


def test_a_run_that_was_interrupted_says_so_on_the_terminal() -> None:
    record, judged = violating_run()
    words = "  ! The run was interrupted; this is the record until then."
    assert words not in run_lines(record, judged)
    record.interrupted = True
    assert run_lines(record, judged)[1] == words
