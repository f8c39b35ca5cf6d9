"""Judging a run: every checker is heard, and none can take the others' verdicts with it."""

from copy import copy
from dataclasses import replace

import pytest

from faultline.harness.errors import HarnessError
from faultline.harness.judge import judge, run_id_of
from faultline.harness.parts import Parts
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult, Finding, Verdict
from faultline.registry import resolve

REQUEST = RunRequest(system="consistent-core", faults=("partition",), operations=60, seed=4)


@pytest.fixture(scope="module")
def parts() -> Parts:
    return resolve(REQUEST)


@pytest.fixture(scope="module")
def record(parts) -> RunRecord:
    return run_simulated(make_plan(REQUEST, parts), parts)


class Says:
    """A checker with a fixed answer."""

    def __init__(self, verdict: Verdict, name: str = "says") -> None:
        self.name = name
        self.verdict = verdict

    def check(self, history, run) -> CheckResult:
        findings = (Finding(checker=self.name, anomaly="odd", sentence="It is odd."),)
        return CheckResult(
            checker=self.name,
            verdict=self.verdict,
            sentence=f"{self.name} says {self.verdict.value}.",
            findings=findings if self.verdict is Verdict.VIOLATION else (),
        )


class Raises:
    name = "raises"

    def __init__(self, error: Exception) -> None:
        self.error = error

    def check(self, history, run) -> CheckResult:
        raise self.error


def judged(parts, record, *checkers):
    return judge(record, replace(parts, checkers=checkers), run_id="r")


def test_a_violation_outranks_a_checker_that_does_not_know(parts, record):
    judgement = judged(parts, record, Says(Verdict.UNKNOWN), Says(Verdict.VIOLATION, "strict"))
    assert judgement.verdict is Verdict.VIOLATION
    assert judgement.sentence == "It is odd."
    assert judgement.signature == "strict/odd"


def test_a_checker_that_crashes_is_unknown_and_the_others_are_heard(parts, record):
    judgement = judged(parts, record, Raises(ZeroDivisionError("by zero")), Says(Verdict.PASS))
    assert judgement.verdict is Verdict.UNKNOWN
    assert "ZeroDivisionError" in judgement.sentence
    assert [check.verdict for check in judgement.checks] == [Verdict.UNKNOWN, Verdict.PASS]


def test_a_checker_that_contradicts_itself_is_a_harness_error(parts, record):
    judgement = judged(parts, record, Raises(HarnessError("Search and port disagree.")))
    assert judgement.verdict is Verdict.HARNESS_ERROR
    assert "disagree" in judgement.sentence


def test_an_error_of_the_harness_is_no_pass(parts, record):
    failed = RunRecord(plan=record.plan, world="simulated", history=record.history, errors=["The cut did not bite."])
    judgement = judged(parts, failed, Says(Verdict.PASS))
    assert judgement.verdict is Verdict.HARNESS_ERROR
    assert judgement.sentence == "The cut did not bite."


def test_counts_and_overlap_reconcile_with_the_history(parts, record):
    judgement = judge(record, parts, run_id="r")
    counts = judgement.counts
    assert counts["invoked"] == len(record.history) == counts["ok"] + counts["fail"] + counts["info"]
    assert set(judgement.overlap) == {fault.kind for fault in record.faults}


def test_a_run_id_is_fit_for_a_file_name():
    assert run_id_of("consistent-core+stale-read/register/leadership", 7) == (
        "consistent-core+stale-read.register.leadership.7"
    )


@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.VACUOUS, Verdict.UNKNOWN])
def test_a_run_that_somebody_stopped_says_that_first(parts, record, verdict):
    stopped = copy(record)
    stopped.interrupted = True
    sentence = judged(parts, stopped, Says(verdict)).sentence
    assert sentence.startswith(f"Interrupted after {len(record.history)} operations. ")
    assert sentence.endswith(f"says {verdict.value}.")
    assert "Interrupted" not in judged(parts, record, Says(verdict)).sentence


def test_a_violation_comes_before_the_interruption_of_its_run(parts, record):
    stopped = copy(record)
    stopped.interrupted = True
    assert judged(parts, stopped, Says(Verdict.VIOLATION)).sentence == "It is odd."
