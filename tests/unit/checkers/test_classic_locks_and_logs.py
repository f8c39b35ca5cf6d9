"""Locks with fencing, composed checkers, and what a run says about itself: errors, logs of nodes, clocks."""

from __future__ import annotations

import pytest
from classic_histories import anomalies, history_of, op

from faultline.checkers.classic.clocks import ClockChecker
from faultline.checkers.classic.compose import ComposedChecker, compose
from faultline.checkers.classic.counter import CounterChecker
from faultline.checkers.classic.errors import UnhandledErrorsChecker
from faultline.checkers.classic.lock import LockChecker
from faultline.checkers.classic.log_patterns import LogPatternChecker
from faultline.checkers.classic.unique_ids import UniqueIdsChecker
from faultline.checkers.stats import StatsChecker
from faultline.harness.errors import HarnessError, UsageError
from faultline.harness.plan import Plan, PlannedFault
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Cause, Verdict


def found(checker, *operations):
    return anomalies(checker.check(history_of(*operations)))


# -- locks ----------------------------------------------------------------------------------------------------------


def test_holds_that_follow_one_another_with_growing_tokens_pass():
    operations = [op("acquire", None, 1), op("release"), op("acquire", None, 2, process=1), op("release", process=1)]
    assert LockChecker().check(history_of(*operations)).verdict is Verdict.PASS


def test_two_certain_holds_that_overlap_violate_mutual_exclusion():
    result = LockChecker().check(history_of(op("acquire"), op("acquire", process=1), op("release")))
    assert anomalies(result) == ["two-holders"]
    assert result.findings[0].operations == (0, 1)


def test_a_short_hold_inside_a_long_one_is_found_and_so_is_the_one_after_it():
    inside = [op("acquire", process=1), op("release", process=1), op("acquire", process=2)]
    (finding,) = LockChecker().check(history_of(op("acquire"), *inside)).findings
    assert finding.detail["count"] == 2


@pytest.mark.parametrize(
    "operations",
    [
        [op("acquire", outcome="info"), op("acquire", process=1)],
        [op("acquire"), op("release", outcome="info"), op("acquire", process=1)],
        [op("acquire", outcome="fail"), op("acquire", process=1)],
        [op("acquire", span=(0, 1)), op("release", span=(2, 9)), op("acquire", span=(3, 4), process=1)],
        [op("acquire", outcome="info", process=1, worker=1), op("release", process=5, worker=1)],
    ],
    ids=["acquire unknown", "release unknown", "acquire failed", "during release", "release after unknown acquire"],
)
def test_an_uncertain_breach_is_no_finding(operations):
    assert found(LockChecker(), *operations) == []


def test_a_failed_release_leaves_the_lock_held():
    operations = [op("acquire"), op("release", outcome="fail"), op("acquire", process=1)]
    assert found(LockChecker(), *operations) == ["two-holders"]


def test_a_release_of_a_lock_that_cannot_be_held_is_found():
    assert found(LockChecker(), op("acquire"), op("release", process=1)) == ["release-without-hold"]


def test_a_lease_ends_the_certain_hold():
    operations = [op("acquire", span=(0, 1)), op("acquire", span=(5, 6), process=1)]
    assert found(LockChecker(lease_us=6_001), *operations) == ["two-holders"]
    assert found(LockChecker(lease_us=6_000), *operations) == []


def test_tokens_must_grow_and_be_unique():
    first, second = op("acquire", None, {"token": 5}), op("release")
    assert found(LockChecker(), first, second, op("acquire", None, 4, process=1)) == ["fencing-token-went-back"]
    assert found(LockChecker(), first, second, op("acquire", None, 5, process=1)) == ["duplicated-fencing-token"]


def test_the_resource_must_refuse_a_token_older_than_one_it_has_accepted():
    new, old = op("write", {"token": 2}), op("write", [1, "x"], process=1)
    assert found(LockChecker(), new, old) == ["stale-write-accepted"]
    assert found(LockChecker(), old, new) == []
    assert found(LockChecker(), new, op("write", [1, "x"], process=1, outcome="fail")) == []
    with pytest.raises(UsageError, match="without a token"):
        LockChecker().check(history_of(op("write", "x")))


# -- composition ----------------------------------------------------------------------------------------------------


class Crashing:
    name = "crashing"

    def __init__(self, error=None):
        self.error = error or RuntimeError("out of luck")

    def check(self, history, run):
        raise self.error


TWICE = history_of(op("generate", None, 1), op("generate", None, 1))
ONCE = history_of(op("generate", None, 1))


@pytest.mark.parametrize("parallel", [False, True])
def test_violation_outranks_unknown_which_outranks_pass(parallel):
    unique, crashing = UniqueIdsChecker(), Crashing()
    assert compose(unique, crashing, parallel=parallel).check(TWICE, None).verdict is Verdict.VIOLATION
    assert compose(unique, crashing, parallel=parallel).check(ONCE, None).verdict is Verdict.UNKNOWN
    assert compose(unique, StatsChecker(), parallel=parallel).check(ONCE, None).verdict is Verdict.PASS


def test_a_checker_that_crashes_is_unknown_and_says_why_beside_what_the_others_found():
    result = compose(Crashing(), UniqueIdsChecker(), UniqueIdsChecker(), parallel=True).check(TWICE, None)
    assert list(result.detail["checks"]) == ["crashing", "unique-ids", "unique-ids-2"]
    assert "out of luck" in result.detail["checks"]["crashing"]["sentence"]
    assert len(result.findings) == 2
    assert compose(Crashing(HarnessError("disk full"))).check(ONCE, None).verdict is Verdict.HARNESS_ERROR


def test_a_history_of_the_wrong_shape_is_unknown_to_that_checker_alone():
    result = compose(CounterChecker(), UniqueIdsChecker()).check(ONCE, None)
    assert result.verdict is Verdict.UNKNOWN
    assert "`counter` cannot judge" in result.sentence


def test_compositions_nest_and_an_empty_one_is_vacuous():
    inner = compose(UniqueIdsChecker(), name="inner")
    assert compose(inner).check(TWICE, None).verdict is Verdict.VIOLATION
    assert ComposedChecker(()).check(ONCE, None).verdict is Verdict.VACUOUS


# -- errors ---------------------------------------------------------------------------------------------------------


def test_unexpected_errors_are_grouped_by_code_with_examples():
    history = history_of(
        op("read", outcome="info", error="reset"), op("write", 1, outcome="fail", error="reset"),
        op("read", outcome="info", error="timeout"), op("read", outcome="info", error="odd"), op("read"),
    )  # fmt: skip
    result = UnhandledErrorsChecker(handled=["timeout"]).check(history)
    assert result.verdict is Verdict.PASS
    assert [record["code"] for record in result.detail["errors"]] == ["reset", "odd"]
    first = result.detail["errors"][0]
    assert (first["fail"], first["info"], first["functions"], first["operations"]) == (1, 1, ["read", "write"], [0, 1])
    assert "timeout" not in result.sentence


# -- logs of nodes --------------------------------------------------------------------------------------------------


def logged(folder, node, *lines):
    (folder / node).mkdir()
    (folder / node / "node.log").write_text("".join(f"{line}\n" for line in lines))


def test_a_panic_in_a_nodes_log_is_found_with_file_and_line(tmp_path):
    logged(tmp_path, "a", "started", "goroutine 1: panic: index out of range")
    logged(tmp_path, "b", "started")
    result = LogPatternChecker(folder=tmp_path).check(ONCE)
    (finding,) = result.findings
    assert (finding.node, finding.detail["lines"][0]["line"]) == ("a", 2)
    assert "index out of range" in finding.sentence


def test_clean_logs_pass_ignored_lines_do_too_and_no_logs_are_unknown(tmp_path):
    assert LogPatternChecker(folder=tmp_path).check(ONCE).verdict is Verdict.UNKNOWN
    logged(tmp_path, "a", "fatal: expected at shutdown")
    assert LogPatternChecker(folder=tmp_path).check(ONCE).verdict is Verdict.VIOLATION
    assert LogPatternChecker(folder=tmp_path, ignore=["at shutdown"]).check(ONCE).verdict is Verdict.PASS


def test_the_logs_of_a_run_are_those_it_names(tmp_path):
    logged(tmp_path, "a", "fatal error")
    run = run_with(detail={"node_logs": [str(tmp_path / "a" / "node.log"), str(tmp_path / "gone.log")]})
    assert LogPatternChecker().check(ONCE, run).verdict is Verdict.VIOLATION
    run.detail["node_logs"].pop()
    assert LogPatternChecker(patterns=["corrupt"]).check(ONCE, run).verdict is Verdict.PASS


def test_a_log_that_is_missing_leaves_open_what_its_node_said(tmp_path):
    logged(tmp_path, "a", "started")
    run = run_with(detail={"node_logs": [str(tmp_path / "a" / "node.log"), str(tmp_path / "gone.log")]})
    result = LogPatternChecker().check(ONCE, run)
    assert (result.verdict, result.reason.cause) == (Verdict.UNKNOWN, Cause.NO_LOGS)
    assert "of 2 logs 1 cannot be found" in result.sentence


def test_a_pattern_that_is_no_regular_expression_is_refused():
    with pytest.raises(UsageError, match="not a regular expression"):
        LogPatternChecker(patterns=["("])


# -- clocks ---------------------------------------------------------------------------------------------------------


def run_with(faults=(), **fields):
    plan = Plan(
        system="s", workload="w", seed=1, nodes=("a",), workers=1, operations=(), faults=faults, heal_us=0, end_us=0
    )  # fmt: skip
    return RunRecord(plan=plan, world="simulated", history=ONCE, **fields)


def fault(kind, **argument):
    return PlannedFault(kind, 0, 0, argument=argument)


def test_offsets_follow_from_planned_clock_faults():
    history = history_of(op("generate", None, 1))
    for number, kind in enumerate(("clock-step", "clock-drift")):
        history.fault(f"start-{kind}", {"fault": number, "nodes": ["a"], "applied": None}, 1_000_000 + number)
        history.fault(f"stop-{kind}", {"fault": number}, 3_000_000 + number)
    history.fault("start-clock-step", {"fault": 0, "nodes": ["b"], "applied": "no clock"}, 4_000_000)
    history.fault("start-partition", {"fault": 1, "nodes": ["b"], "applied": None}, 5_000_000)
    run = run_with((fault("clock-step", delta_us=-500), fault("clock-drift", rate_ppm=100)))
    result = ClockChecker().check(history, run)
    assert result.detail["offsets_us"]["a"] == [
        [1_000_000, 0], [1_000_000, -500], [1_000_001, 0],
        [3_000_000, -500], [3_000_000, 0], [3_000_001, 200], [3_000_001, 0],
    ]  # fmt: skip
    assert list(result.detail["offsets_us"]) == ["a"]
    assert "0.5 ms" in result.sentence


def test_offsets_that_events_report_are_taken_as_they_are():
    history = history_of(op("generate", None, 1))
    history.fault("check-offsets", {"clock-offsets": {"a": 1.5, "b": -0.25}}, 10)
    history.fault("check-offsets", {"clock_offsets_us": {"a": 7}}, 20)
    assert ClockChecker().check(history).detail["offsets_us"] == {
        "a": [[10, 1_500_000], [20, 7]],
        "b": [[10, -250_000]],
    }


def test_clock_faults_of_unknown_amount_are_counted():
    history = history_of(op("generate", None, 1))
    history.fault("start-clock-step", {"fault": 0, "nodes": ["a"], "applied": None}, 5)
    assert ClockChecker().check(history, run_with((fault("clock-step"),))).detail["unmeasured"] == 1
