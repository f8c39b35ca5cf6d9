"""Judging a run: every checker is heard, and none can take the others' verdicts with it."""

from copy import copy
from dataclasses import replace

import msgspec
import pytest

from faultline.checkers.invariants import InvariantChecker
from faultline.checkers.stats import StatsChecker
from faultline.harness.errors import HarnessError
from faultline.harness.judge import judge, judge_by
from faultline.harness.judgement import Judgement
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


@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.VACUOUS, Verdict.UNKNOWN])
def test_an_interrupted_run_says_that_first(parts, record, verdict):
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


# -- checkers that answer with nonsense --------------------------------------------------------------------------------


class Answers:
    """A checker that returns whatever it was given."""

    name = "answers"

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def check(self, history, run) -> CheckResult:
        return self.answer  # type: ignore[return-value]


def result(verdict: object = Verdict.PASS, **fields: object) -> CheckResult:
    return CheckResult(**({"checker": "answers", "verdict": verdict, "sentence": "So it is."} | fields))


NONSENSE = {
    "nothing": None,
    "a word": "fail",
    "a truth": True,
    "a verdict that is none": result("PASS"),
    "a detail with an object": result(detail={"what": object()}),
    "a detail with half a character": result(detail={"what": "\ud800"}),
    "warnings that are none": result(detail={"warnings": None}),
    "warnings that are one text": result(detail={"warnings": "beware"}),
    "findings that are none": result(findings=None),
    "a sentence that is a number": result(sentence=7),
}


@pytest.mark.parametrize("answer", NONSENSE.values(), ids=NONSENSE.keys())
def test_an_answer_that_is_no_result_makes_its_checker_unknown_by_name(parts, record, answer):
    judgement = judged(parts, record, Answers(answer), Says(Verdict.PASS))
    assert judgement.verdict is Verdict.UNKNOWN
    assert "The checker answers itself failed" in judgement.sentence
    assert msgspec.json.decode(msgspec.json.encode(judgement), type=Judgement).checks_due == ["answers", "says"]


@pytest.mark.parametrize("answer", NONSENSE.values(), ids=NONSENSE.keys())
def test_an_answer_that_is_no_result_costs_no_violation_of_another_checker(parts, record, answer):
    judgement = judged(parts, record, Answers(answer), Says(Verdict.VIOLATION))
    assert judgement.verdict is Verdict.VIOLATION
    assert [finding.anomaly for finding in judgement.findings] == ["odd"]
    msgspec.json.encode(judgement)


@pytest.mark.parametrize("detail", [{"what": object()}, {"what": "\ud800"}, {"warnings": None}])
def test_a_violation_whose_details_cannot_be_written_stays_a_violation(parts, record, detail):
    finding = Finding(checker="answers", anomaly="odd", sentence="It is odd.", operations=(3,), detail=detail)
    judgement = judged(parts, record, Answers(result(Verdict.VIOLATION, findings=(finding,), detail=detail)))
    assert judgement.verdict is Verdict.VIOLATION
    assert [(each.anomaly, each.operations) for each in judgement.findings] == [("odd", (3,))]
    assert any("itself failed" in warning for warning in judgement.warnings)
    msgspec.json.encode(judgement)


def test_a_checker_that_exits_is_unknown_and_the_others_are_heard(parts, record):
    judgement = judged(parts, record, Raises(SystemExit(0)), Says(Verdict.VIOLATION))
    assert judgement.verdict is Verdict.VIOLATION
    assert judgement.checks[0].verdict is Verdict.UNKNOWN
    assert "sys.exit(0)" in judgement.checks[0].sentence


@pytest.mark.parametrize("checkers", [(), (InvariantChecker(),), (StatsChecker(), InvariantChecker())])
def test_a_run_that_no_checker_of_its_workload_judged_is_no_pass(parts, record, checkers):
    judgement = judged(parts, record, *checkers)
    assert judgement.verdict is Verdict.VACUOUS
    assert "No check judged what the clients saw" in judgement.sentence


def test_a_checker_that_changes_the_history_makes_a_harness_error(parts):
    class Wipes(Says):
        def check(self, history, run):
            history.outcome[:] = ["info"] * len(history)
            return super().check(history, run)

    again = run_simulated(make_plan(REQUEST, parts), parts)
    digest = again.history.digest()
    judgement = judged(parts, again, Wipes(Verdict.PASS))
    assert judgement.verdict is Verdict.HARNESS_ERROR
    assert "changed the history" in judgement.sentence
    assert judgement.history_sha256 == digest


def test_a_check_that_cannot_be_asked_is_unknown_with_its_name_and_why(record):
    checkers = [Says(Verdict.PASS), Says(Verdict.PASS, "absent")]
    judgement = judge_by(checkers, record, run_id="r", without={"absent": "there is no verdict.json"})
    assert judgement.verdict is Verdict.UNKNOWN
    assert judgement.sentence == "The check absent was left out: there is no verdict.json."
    assert judgement.checks_due == ["says", "absent"]


def test_a_full_disk_costs_the_file_of_the_history_and_no_violation(parts):
    def full(_line: bytes) -> int:
        raise OSError(28, "No space left on device")

    record = run_simulated(make_plan(REQUEST, parts), parts, sink=full)
    assert len(record.history) > 50
    assert judged(parts, record, Says(Verdict.PASS)).verdict is Verdict.HARNESS_ERROR
    assert judged(parts, record, Says(Verdict.VIOLATION)).verdict is Verdict.VIOLATION
