"""The checkers of convergence and of causal pairs: what they accept, what they accuse, and when they do not know."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.checkers.causal_pairs import CausalPairsChecker
from faultline.checkers.convergence import ConvergenceChecker
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, fail, info, ok
from faultline.harness.plan import Plan
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult, Verdict
from faultline.harness.workload import Checker

HEAL = 100
STEP_US = 1_000_000
NODES = ("athens", "byzantium")

Step = tuple[int, str, Any, Any]


def judged(checker: Checker, *steps: Step, after_heal: int = 1_000, workers: int = 2) -> CheckResult:
    """One operation after another by (process, f, value, result), a string for an error, or an outcome; `after_heal` is
    the first after the heal."""
    history = History()
    for number, (process, f, value, result) in enumerate(steps):
        time_us = STEP_US * (number + (HEAL if number >= after_heal else 0))
        key = None if f == "view" else "k"
        row = history.invoke(Operation(process, f, key, value), time_us, process % 2, NODES[process % 2])
        outcome = result if isinstance(result, Outcome) else fail(result) if isinstance(result, str) else ok(result)
        history.complete(row, outcome, time_us)
    plan = Plan(
        system="gossip",
        workload="metadata",
        seed=0,
        nodes=NODES,
        workers=workers,
        operations=(),
        heal_us=HEAL * STEP_US,
        end_us=999 * STEP_US,
    )
    return checker.check(history, RunRecord(plan=plan, world="simulated", history=history))


def anomalies(result: CheckResult) -> list[str]:
    return [finding.anomaly for finding in result.findings]


def write(value: int) -> Step:
    return 0, "write", value, None


def read(process: int, value: int | None) -> Step:
    return process, "read", None, value


def view(process: int, *nodes: str) -> Step:
    return process, "view", None, list(nodes)


def converged(*steps: Step, after_heal: int = 1) -> CheckResult:
    return judged(ConvergenceChecker(), *steps, after_heal=after_heal)


def test_who_agrees_at_the_end_has_converged_whatever_was_known_before() -> None:
    result = converged(write(1), read(0, 1), read(1, None), read(0, 1), read(1, 1))
    assert result.verdict is Verdict.PASS


def test_who_still_disagrees_at_the_end_has_not() -> None:
    result = converged(write(1), read(0, 1), read(1, None), read(0, 1), read(1, None))
    assert anomalies(result) == ["not-converged"]
    assert "nothing through byzantium" in result.sentence


LOST = info("timeout")


def test_a_write_without_an_answer_may_come_between_the_last_reads() -> None:
    late = (0, "write", 2, LOST)
    assert converged(write(1), late, read(0, 1), read(1, 2)).verdict is Verdict.PASS
    assert anomalies(converged(write(1), write(2), read(0, 1), read(1, 2))) == ["not-converged"]


def test_who_reads_the_value_before_a_late_write_when_its_news_was_due_has_not_converged() -> None:
    late = (0, "write", 2, LOST)
    assert anomalies(converged(write(1), late, read(0, 2), read(1, 1))) == ["not-converged"]
    assert anomalies(converged(write(1), write(3), late, read(0, 1), read(1, 3))) == ["not-converged"]


def test_who_has_not_heard_of_a_write_that_has_just_ended_is_not_accused() -> None:
    heard_of_one = (write(1), read(0, 1), read(1, 1), read(0, 1), read(1, 1))
    assert converged(*heard_of_one).verdict is Verdict.PASS
    assert converged(*heard_of_one, write(2), read(0, 2)).verdict is Verdict.UNKNOWN
    assert anomalies(converged(write(1), read(0, 1), read(1, 1), write(2), read(0, 2), read(1, 1))) == ["not-converged"]


def test_a_worker_whose_process_changed_meanwhile_is_still_asked_for_its_last_read() -> None:
    result = converged(write(1), read(0, 1), read(3, 1), read(2, 1), read(5, None))
    assert anomalies(result) == ["not-converged"]


def test_without_reads_after_the_heal_and_the_last_write_nothing_is_known() -> None:
    assert converged(write(1), read(0, 1), read(1, None), write(2)).verdict is Verdict.UNKNOWN
    assert converged(read(0, None), write(1)).verdict is Verdict.UNKNOWN


def test_one_worker_compares_no_two_nodes() -> None:
    alone = judged(ConvergenceChecker(), write(1), read(0, 1), read(0, 1), after_heal=1, workers=1)
    assert (alone.verdict, alone.reason) == (Verdict.VACUOUS, None)
    assert "--workers 2" in alone.sentence
    invented = judged(ConvergenceChecker(), write(1), read(0, 7), read(0, 7), after_heal=1, workers=1)
    assert anomalies(invented) == ["garbage-read"]


def test_a_view_without_a_node_that_is_up_is_told() -> None:
    agreed = (write(1), read(0, 1), read(1, 1))
    wrong = converged(*agreed, view(1, "byzantium"), view(1, "byzantium"))
    assert anomalies(wrong) == ["missing-member"]
    right = converged(*agreed, view(1, "byzantium"), view(1, *NODES))
    assert right.verdict is Verdict.PASS


def test_a_value_that_no_client_wrote_is_a_garbage_read() -> None:
    assert "garbage-read" in anomalies(converged(write(1), read(0, 7), read(0, 1)))


def pair(value: int) -> Step:
    return 0, "write-pair", value, None


def read_pair(left: int | None, right: int | None) -> Step:
    return 1, "read-pair", None, [left, right]


@pytest.mark.rows("LMC-M1")
def test_an_effect_without_its_cause_is_found() -> None:
    result = judged(CausalPairsChecker(), pair(1), pair(2), read_pair(1, 2))
    assert anomalies(result) == ["causal-reverse"]
    assert "saw 2 on the right and 1 on the left" in result.sentence


@pytest.mark.parametrize("left", [2, 3])
def test_an_effect_with_its_cause_or_a_later_one_is_in_order(left: int) -> None:
    assert judged(CausalPairsChecker(), pair(2), pair(3), read_pair(left, 2)).verdict is Verdict.PASS


def test_a_pair_without_an_answer_may_put_its_left_half_over_that_of_a_later_one() -> None:
    lost = (0, "write-pair", 2, LOST)
    assert judged(CausalPairsChecker(), pair(1), lost, pair(3), read_pair(2, 3)).verdict is Verdict.PASS
    assert anomalies(judged(CausalPairsChecker(), pair(1), lost, pair(3), read_pair(1, 3))) == ["causal-reverse"]
    again = (pair(1), lost, pair(2), pair(3), read_pair(2, 3))
    assert judged(CausalPairsChecker(), *again).verdict is Verdict.PASS


def test_a_half_that_no_client_wrote_is_found() -> None:
    assert anomalies(judged(CausalPairsChecker(), pair(1), read_pair(9, 1))) == ["garbage-read"]


def test_a_half_that_a_refused_attempt_may_have_left_is_no_read_of_the_retry() -> None:
    refused = (0, "write-pair", 2, "refused")
    steps = (pair(1), refused, read_pair(2, 1), pair(2), read_pair(2, 2))
    assert judged(CausalPairsChecker(), *steps).verdict is Verdict.PASS
    assert anomalies(judged(CausalPairsChecker(), *steps[:3])) == []


@pytest.mark.parametrize(
    ("late", "anomaly"), [(pair(2), "future-read"), ((0, "write-pair", 2, "refused"), "aborted-read")]
)
def test_a_half_whose_every_write_began_after_the_read_is_found(late: Step, anomaly: str) -> None:
    assert anomalies(judged(CausalPairsChecker(), pair(1), read_pair(2, 1), late)) == [anomaly]


def test_reads_before_every_write_say_nothing_about_causes() -> None:
    assert judged(CausalPairsChecker(), read_pair(None, None)).verdict is Verdict.VACUOUS
