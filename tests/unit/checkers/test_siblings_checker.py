"""The checker of siblings: what it accepts, and each thing it accuses a store of."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.checkers import SiblingsChecker
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, fail, info, ok
from faultline.harness.plan import Plan
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult, Verdict

HEAL_US = 1_000

Step = tuple[int, str, Any, Outcome]


def write(process: int, value: int, outcome: Outcome | None = None) -> Step:
    return process, "write", value, outcome or ok()


def read(process: int, *values: int) -> Step:
    return process, "read", None, ok(list(values))


def judged(*steps: Step, healed_from: int = 1_000) -> CheckResult:
    """One operation after another; those from number `healed_from` on begin after the heal."""
    history = History()
    for number, (process, f, value, outcome) in enumerate(steps):
        time_us = HEAL_US + number if number >= healed_from else number
        row = history.invoke(Operation(process, f, "k0", value), time_us, 0, "athens")
        history.complete(row, outcome, time_us)
    plan = Plan(
        system="quorum-kv",
        workload="siblings",
        seed=0,
        nodes=("athens",),
        workers=1,
        operations=(),
        heal_us=HEAL_US,
        end_us=2 * HEAL_US,
    )
    return SiblingsChecker().check(history, RunRecord(plan=plan, world="simulated", history=history))


def anomalies(result: CheckResult) -> list[str]:
    return [finding.anomaly for finding in result.findings]


@pytest.mark.parametrize(
    "steps",
    [
        (write(1, 1), read(2, 1), write(2, 2), read(3, 2)),
        (write(1, 1), write(2, 2), read(3, 1, 2), write(3, 3), read(1, 3)),
        (write(1, 1), write(2, 2), read(3, 2, 1), read(4, 1, 2)),
        (write(1, 1, info("timeout")), read(2), read(2, 1), read(2)),
        (write(1, 1), write(1, 2), read(2, 2)),
        (write(1, 1, fail("obsolete-version")), read(2)),
        (write(1, 1), read(2, 1), write(2, 2), read(3, 2), write(3, 3, info("timeout")), read(4, 3), read(5, 2)),
    ],
    ids=["replaced", "resolved", "conflict", "unknown", "own", "failed", "half-a-write"],
)
def test_histories_without_a_loss_are_accepted(steps: tuple[Step, ...]) -> None:
    assert anomalies(judged(*steps)) == []


@pytest.mark.rows("VVC-I3")
@pytest.mark.parametrize(
    ("anomaly", "steps"),
    [
        ("lost-write", (write(1, 1), read(2))),
        ("lost-write", (write(1, 1), write(2, 2), read(3, 2))),
        ("stale-read", (write(1, 1), write(2, 2), read(3, 2), read(3, 1, 2))),
        ("lost-write", (write(1, 1), read(3, 1), read(3))),
        ("lost-write", (write(1, 1), read(2, 1), write(2, 2), write(3, 3), read(4, 3))),
        ("resurrected-write", (write(1, 1), read(2, 1), write(2, 2, info("timeout")), read(3, 1, 2))),
        ("resurrected-write", (write(1, 1), read(2, 1), write(2, 2), read(2, 2), write(2, 3), read(3, 1, 3))),
        ("duplicated-sibling", (write(1, 1), read(2, 1, 1))),
        ("aborted-read", (write(1, 1, fail("obsolete-version")), read(2, 1))),
        ("garbage-read", (write(1, 1), read(2, 1, 7))),
        ("future-read", (read(2, 1), write(1, 1))),
    ],
)
def test_a_loss_is_named(anomaly: str, steps: tuple[Step, ...]) -> None:
    result = judged(*steps)
    assert result.verdict is Verdict.VIOLATION
    assert anomaly in anomalies(result)


def test_a_value_that_comes_back_after_its_replacement_was_acknowledged_is_named() -> None:
    result = judged(write(1, 1), read(2, 1), write(2, 2), read(3, 1))
    assert sorted(anomalies(result)) == ["lost-write", "resurrected-write"]


def test_the_rows_of_a_finding_suffice_to_show_it() -> None:
    [finding] = judged(write(1, 1), write(2, 2), read(3, 2)).findings
    assert finding.operations == (0, 2)
    assert "client 3 read [2], although 1 had been acknowledged" in finding.sentence


HALF = (write(1, 1), write(2, 2, info("timeout")))


@pytest.mark.rows("VVC-I4")
def test_second_reads_after_the_heal_must_agree() -> None:
    steps = (*HALF, read(1, 1), read(3, 1, 2), read(1, 1), read(3, 1, 2))
    assert anomalies(judged(*steps, healed_from=2)) == ["not-converged"]


def test_first_reads_after_the_heal_may_disagree_and_those_before_prove_nothing() -> None:
    steps = (*HALF, read(1, 1), read(3, 1, 2), read(1, 1, 2), read(3, 1, 2))
    assert judged(*steps, healed_from=2).verdict is Verdict.PASS
    steps = (*HALF, read(1, 1), read(3, 1, 2), read(1, 1), read(3, 1, 2))
    assert judged(*steps).verdict is Verdict.PASS


def met_by_one(outcome: Outcome) -> tuple[Step, ...]:
    """Client 5 meets the value 3 in its second read, and no client did before; client 4 never meets it."""
    begun = (write(1, 1), write(2, 2), read(3, 1, 2), write(3, 3, outcome))
    return (*begun, read(4, 1, 2), read(5, 1, 2), read(4, 1, 2), read(5, 3))


def test_a_write_that_was_never_acknowledged_may_be_met_by_one_read_and_not_by_those_before() -> None:
    assert "not-converged" not in anomalies(judged(*met_by_one(info("timeout")), healed_from=4))
    assert "not-converged" in anomalies(judged(*met_by_one(ok()), healed_from=4))


def test_once_it_was_met_no_later_read_may_lack_it() -> None:
    steps = (*met_by_one(info("timeout")), read(4, 1, 2))
    assert "not-converged" in anomalies(judged(*steps, healed_from=4))


def test_reads_around_a_late_write_need_not_agree() -> None:
    steps = (write(1, 1), read(2, 1), read(3, 1), read(2, 1), write(2, 2), read(3, 2))
    assert judged(*steps, healed_from=1).verdict is Verdict.PASS


def test_a_value_written_twice_leaves_the_verdict_open() -> None:
    assert judged(write(1, 1), write(2, 1), read(3, 1)).verdict is Verdict.UNKNOWN


def test_nothing_at_all_is_vacuous() -> None:
    assert judged().verdict is Verdict.VACUOUS
