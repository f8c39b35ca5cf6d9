"""Verdicts whose answer is known: checkers that say what they are told to, and runs that tested too little."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from known_answers import PARTITION, Says, history, judged, plan, record, sound_history

from faultline.checkers.invariants import InvariantChecker
from faultline.checkers.vacuity import VacuityChecker, warnings_of
from faultline.harness.access import Access
from faultline.harness.errors import HarnessError
from faultline.harness.history import OPEN, History
from faultline.harness.invariant import Breach
from faultline.harness.outcome import NOT_CONNECTED
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Cause, CheckResult, Finding, Verdict, exit_code, merge

__all__ = [
    "a_checker_that_fails_costs_no_other_verdict",
    "a_run_without_a_judge_is_no_pass",
    "an_anomaly_inside_is_a_violation",
    "every_way_of_testing_nothing_is_told",
    "figures_of_a_judgement_are_those_of_the_run",
    "the_worst_verdict_wins_in_any_order",
    "trouble_of_the_harness_is_no_pass",
]

PASS, VACUOUS, UNKNOWN, BROKEN, VIOLATION = Verdict


def the_worst_verdict_wins_in_any_order(_folder: Path) -> None:
    """Two checkers at a time, in both orders: the verdict is the worse one, and every finding is kept."""
    order = (PASS, VACUOUS, UNKNOWN, BROKEN, VIOLATION)
    for better, worse in ((a, b) for rank, b in enumerate(order) for a in order[:rank]):
        for answers in ([("a", better), ("b", worse)], [("b", worse), ("a", better)]):
            told = judged(answers)
            assert told.verdict is worse, answers
            assert [check.checker for check in told.checks] == [name for name, _ in answers] == told.checks_due
    assert merge(order) is merge(reversed(order)) is VIOLATION
    two = judged([("a", VIOLATION), ("b", VIOLATION)])
    assert [finding.checker for finding in two.findings] == ["a", "b"] and two.signature == "a/odd"
    assert two.sentence == "a saw something odd."
    assert [exit_code(verdict) for verdict in order] == [0, 3, 3, 4, 1]


def a_checker_that_fails_costs_no_other_verdict(_folder: Path) -> None:
    """Checkers that raise, exit, contradict themselves or talk nonsense, beside one that passes or violates."""
    cases: list[tuple[Any, Verdict]] = [
        (ValueError("mine"), UNKNOWN),
        (SystemExit(0), UNKNOWN),
        (HarnessError("I contradict myself", "See why."), BROKEN),
        (None, UNKNOWN),
        (CheckResult(checker="x", verdict="fine", sentence=""), UNKNOWN),  # type: ignore[arg-type]
    ]
    for answer, expected in cases:
        told = judged([("x", answer), ("a", PASS)])
        assert told.verdict is expected, answer
        assert told.checks[0].checker == "x" and "x itself failed" in told.checks[0].sentence
        assert judged([("x", answer), ("a", VIOLATION)]).verdict is VIOLATION
    finding = Finding(checker="x", anomaly="odd", sentence="It is odd.", operations=(2,), detail={"what": {1j}})
    told = judged([("x", CheckResult(checker="x", verdict=VIOLATION, sentence="It is odd.", findings=(finding,)))])
    assert told.verdict is VIOLATION and told.findings[0].operations == (2,)
    assert msgspec.json.decode(msgspec.json.encode(told))["verdict"] == "violation"


def a_run_without_a_judge_is_no_pass(_folder: Path) -> None:
    """No checker at all, only checkers of the test, and checkers that were left out."""
    assert judged([]).verdict is VACUOUS
    tester = Says("tester", PASS)
    tester.judges_the_test = True  # type: ignore[attr-defined]
    assert _by(tester).verdict is VACUOUS
    left_out = judged([("a", PASS), ("b", PASS)], without={"b": "it needs what is not there"})
    assert left_out.verdict is UNKNOWN and left_out.checks_due == ["a", "b"]
    reason = left_out.checks[1].reason
    assert reason is not None and reason.cause is Cause.LEFT_OUT


def _by(*checkers: Says) -> Any:
    from faultline.harness.judge import judge_by

    return judge_by(checkers, record(), run_id="r")


def trouble_of_the_harness_is_no_pass(_folder: Path) -> None:
    """An error of the world, an answer that could not be recorded, and a history that a checker changed."""
    assert judged([("a", PASS)], record(errors=["A fault did not bite."])).verdict is BROKEN
    assert judged([("a", VIOLATION)], record(errors=["A fault did not bite."])).verdict is VIOLATION
    made = sound_history()
    made.problems = ("The disk was full.",)
    told = judged([("a", PASS)], record(made))
    assert told.verdict is BROKEN and told.errors == ["The disk was full."] and told.sentence == "The disk was full."
    assert _by(_Meddler("a", PASS)).verdict is BROKEN
    assert judged([("a", PASS)]).errors == []
    told = judged([("a", UNKNOWN)], record(interrupted=True))
    assert told.interrupted and told.sentence.startswith("Interrupted after 6 operations.")


class _Meddler(Says):
    """A checker that changes what it judges."""

    def check(self, history: History, run: RunRecord) -> Any:
        history.result[1] = 7
        return super().check(history, run)


def figures_of_a_judgement_are_those_of_the_run(_folder: Path) -> None:
    """Counts, overlap, digests and marks of one run of which all of that is known."""
    open_write = history((0, "write", "k0", 1, "ok", None, 1_000, 12_000), (1, "write", "k0", 2, "", None, 2_000, None))
    made = sound_history()
    made.outcome[5] = "info"
    told = judged([("a", PASS)], record(made, marks={"links-cut": 1}, statistics={"events": 9}))
    assert told.counts == {"invoked": 6, "ok": 3, "fail": 1, "info": 2}
    assert told.overlap == {"partition": 3}
    assert judged([("a", PASS)], record(open_write)).overlap == {"partition": 0}
    late = record(open_write, faults=[msgspec.structs.replace(PARTITION, start_us=3_000)])
    assert judged([("a", PASS)], late).overlap == {"partition": 2}
    assert (told.history_sha256, told.plan_sha256) == (made.digest(), plan().digest())
    assert (told.marks, told.statistics, told.cell) == (
        {"links-cut": 1},
        {"events": 9},
        "consistent-core/register/partition",
    )
    changed = sound_history()
    changed.result[-1] = 3
    assert judged([("a", PASS)], record(changed)).history_sha256 != told.history_sha256


def an_anomaly_inside_is_a_violation(_folder: Path) -> None:
    """One breach of an invariant is enough, the earliest is told first, and none is a pass."""
    breaches = [
        Breach(invariant="B-2", sentence="Later.", time_us=900, node="cyrene"),
        Breach(invariant="A-1", sentence="Earlier.", time_us=400, node="athens"),
    ]
    checker = InvariantChecker()
    run = record(breaches=breaches[:1])
    assert checker.check(run.history, run).verdict is VIOLATION
    run = record(breaches=breaches)
    assert [finding.anomaly for finding in checker.check(run.history, run).findings] == ["A-1", "B-2"]
    assert checker.check(run.history, record()).verdict is PASS


def every_way_of_testing_nothing_is_told(_folder: Path) -> None:
    """Each warning that makes a run vacuous, provoked alone, beside a run that has none."""
    assert _named(record()) == []
    assert VacuityChecker().check(sound_history(), record()).verdict is PASS
    immune = msgspec.structs.replace(PARTITION, applied="it is alive")
    assert _named(record(History())) == ["no-operations"]
    assert _named(record(faults=[immune])) == ["faults-applied"]
    assert _named(record(faults=[PARTITION, immune])) == ["faults-applied", "some-faults-not-applied"]
    assert _named(record(faults=[PARTITION] * 4 + [immune])) == ["some-faults-not-applied"]
    early = msgspec.structs.replace(PARTITION, start_us=10, stop_us=900)
    assert _named(record(faults=[early])) == ["faults-struck"]
    late = msgspec.structs.replace(PARTITION, start_us=80_000, stop_us=90_000)
    assert _named(record(faults=[late])) == ["faults-struck"]
    assert _named(record(faults=[PARTITION, msgspec.structs.replace(early, kind="kill")])) == [
        "fault-without-operations"
    ]
    unread = sound_history()
    unread.outcome[-2:] = ["info", "fail"]
    assert _named(record(unread)) == ["writes-read", "no-reads-after-heal"]
    refused = sound_history()
    refused.outcome[:], refused.error[:] = ["fail"] * 5 + ["ok"], [NOT_CONNECTED] * 5 + [None]
    assert "operations-answered" in _named(record(refused))
    lost = sound_history()
    lost.outcome[:] = ["info"] * 6
    assert "operations-answered" in _named(record(lost)) and "often-indeterminate" in _named(record(lost))
    assert _named(record(_one_at_a_time())) == ["no-concurrency", "one-key"]
    hanging = sound_history()
    hanging.complete_us[0] = hanging.complete_index[0] = OPEN
    assert "no-concurrency" not in _named(record(hanging))
    reader = sound_history()
    reader.f[:] = ["read"] * 6
    assert _named(record(reader)) == ["no-changes"]
    grave = VacuityChecker().check(lost, record(lost))
    assert grave.verdict is VACUOUS and len(grave.detail["warnings"]) == len(_named(record(lost)))
    small = record(faults=[PARTITION] * 4 + [immune])
    assert VacuityChecker().check(small.history, small).verdict is PASS


def _one_at_a_time() -> History:
    return history(
        (0, "write", "k0", 1, "ok", None, 16_000, 17_000),
        (1, "read", "k0", None, "ok", 1, 18_000, 20_000),
        (0, "read", "k0", None, "ok", 1, 61_000, 62_000),
    )


def _named(run: RunRecord) -> list[str]:
    return [warning.name for warning in warnings_of(run.history, run, Access())]
