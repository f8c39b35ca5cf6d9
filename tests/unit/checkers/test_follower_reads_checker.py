"""The checker of follower reads: no to each anomaly by its name, yes to the same reads where they are allowed."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.checkers import FollowerReadsChecker
from faultline.checkers.classic.sessions import MONOTONIC_READS, READ_YOUR_WRITES
from faultline.checkers.follower_reads import STALENESS_BOUND
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import fail, info, ok
from faultline.harness.plan import Plan
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult, Verdict

MS = 1_000


def run_of(history: History, **options: str) -> RunRecord:
    plan = Plan(
        system="any",
        workload="any",
        seed=0,
        nodes=("athens",),
        workers=2,
        operations=(),
        options=options,
        heal_us=0,
        end_us=0,
    )
    return RunRecord(plan=plan, world="simulated", history=history)


def story(*steps: tuple[Any, ...]) -> History:
    """Operations one after the other, 10 ms each: (process, f, value, result) with an outcome for writes."""
    history = History()
    for number, (process, f, value, outcome) in enumerate(steps):
        at_us = 10 * MS * number
        row = history.invoke(Operation(process, f, "title", value), at_us, process, "athens")
        history.complete(row, outcome, at_us + 5 * MS)
    return history


def write(process: int, value: str, version: int | None = None) -> tuple[Any, ...]:
    return (process, "write", value, ok(version))


def read(process: int, value: str | None) -> tuple[Any, ...]:
    return (process, "read", None, ok(value))


def judged(history: History, checker: FollowerReadsChecker | None = None, **options: str) -> CheckResult:
    return (checker or FollowerReadsChecker()).check(history, run_of(history, **options))


def anomalies(result: CheckResult) -> list[str]:
    return [finding.anomaly for finding in result.findings]


@pytest.mark.rows("FR-I1")
@pytest.mark.parametrize("versions", [(None, None), (1, 2)])
def test_a_session_that_misses_its_own_write_is_found_and_another_session_may_miss_it(
    versions: tuple[int | None, int | None],
) -> None:
    writes = (write(1, "Nitroservices", versions[0]), write(1, "Microservices", versions[1]))
    result = judged(story(*writes, read(1, "Nitroservices")))
    assert anomalies(result) == [READ_YOUR_WRITES]
    assert 'client 1 read "Nitroservices" after it had itself written "Microservices"' in result.sentence
    assert judged(story(*writes, read(2, "Nitroservices"))).verdict is Verdict.PASS
    assert judged(story(*writes, read(1, "Microservices"))).verdict is Verdict.PASS


@pytest.mark.rows("FR-I1")
def test_nothing_is_older_than_every_write() -> None:
    assert anomalies(judged(story(write(1, "a"), read(1, None)))) == [READ_YOUR_WRITES]
    assert judged(story(write(1, "a"), read(2, None))).verdict is Verdict.PASS


@pytest.mark.rows("FR-I2", "FR-S11")
def test_a_session_that_goes_back_is_found_unless_only_its_own_writes_are_judged() -> None:
    history = story(write(1, "a"), write(1, "b"), read(2, "b"), read(2, "a"))
    assert anomalies(judged(history)) == [MONOTONIC_READS]
    assert judged(history, FollowerReadsChecker(monotonic_reads=False)).verdict is Verdict.PASS
    assert judged(story(write(1, "a"), write(1, "b"), read(2, "b"), read(3, "a"))).verdict is Verdict.PASS


def test_versions_order_writes_that_overlapped() -> None:
    def overlapping(first_version: int | None, second_version: int | None) -> History:
        history = History()
        one = history.invoke(Operation(1, "write", "title", "a"), 0, 1, "athens")
        two = history.invoke(Operation(2, "write", "title", "b"), 0, 2, "athens")
        history.complete(one, ok(first_version), 5 * MS)
        history.complete(two, ok(second_version), 6 * MS)
        row = history.invoke(Operation(1, "read", "title", None), 10 * MS, 1, "athens")
        history.complete(row, ok("b"), 11 * MS)
        return history

    assert judged(overlapping(None, None)).verdict is Verdict.PASS
    assert judged(overlapping(1, 2)).verdict is Verdict.PASS
    assert anomalies(judged(overlapping(2, 1))) == [READ_YOUR_WRITES]


@pytest.mark.rows("FR-I6")
def test_an_answer_older_than_the_bound_is_found_and_one_within_it_is_not() -> None:
    checker = FollowerReadsChecker(read_your_writes=False, monotonic_reads=False, bounded=True)
    quiet = [read(3, "b")] * 10
    history = story(write(1, "a"), write(1, "b"), *quiet, read(2, "a"))
    assert anomalies(judged(history, checker, max_staleness_ms="50")) == [STALENESS_BOUND]
    late = judged(history, checker, max_staleness_ms="100")
    assert late.verdict is Verdict.PASS
    assert late.detail["oldest_answer_ms"] == 105


@pytest.mark.rows("FR-I3")
@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((read(1, "never written"),), ["garbage-read"]),
        (((1, "write", "a", fail("refused")), read(2, "a")), ["aborted-read"]),
        (((1, "write", "a", info("timeout")), read(2, "a")), []),
        ((read(1, "a"), write(2, "a")), ["future-read"]),
    ],
)
def test_a_value_that_no_client_can_have_written_is_found(steps: tuple[Any, ...], expected: list[str]) -> None:
    assert anomalies(judged(story(*steps))) == expected


def test_a_value_written_twice_tells_nothing() -> None:
    result = judged(story(write(1, "a"), write(2, "a"), read(1, "a")))
    assert result.verdict is Verdict.UNKNOWN
    assert "written" in result.sentence


def test_a_history_of_another_shape_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot judge"):
        judged(story((1, "cas", [1, 2], ok(None))))
