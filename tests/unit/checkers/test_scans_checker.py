"""The checker of scans: what it accepts, what it accuses, and what it must leave open."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.checkers.scans import ScansChecker
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, fail, info, ok
from faultline.harness.verdict import CheckResult, Verdict

Step = tuple[int, int, str, str | None, Any, Outcome]


def write(begin: int, end: int, key: str, value: int, outcome: Outcome | None = None) -> Step:
    return begin, end, "write", key, value, outcome or ok()


def delete(begin: int, end: int, key: str, outcome: Outcome | None = None) -> Step:
    return begin, end, "delete", key, None, outcome or ok()


def scan(begin: int, end: int, *found: tuple[str, int], start: str = "", stop: str | None = None) -> Step:
    return begin, end, "scan", None, [start, stop], ok([list(each) for each in found])


def judged(*steps: Step) -> CheckResult:
    """Each step a process of its own, from its first time to its second; all times differ."""
    history, rows = History(), {}
    moments = sorted(
        [(begin, 0, number) for number, (begin, *_) in enumerate(steps)]
        + [(end, 1, number) for number, (_, end, *_) in enumerate(steps)]
    )
    for time_us, is_end, number in moments:
        _, _, f, key, value, outcome = steps[number]
        if is_end:
            history.complete(rows[number], outcome, time_us)
        else:
            rows[number] = history.invoke(Operation(number, f, key, value), time_us, number, "athens")
    return ScansChecker().check(history)


def anomalies(*steps: Step) -> list[str]:
    return [finding.anomaly for finding in judged(*steps).findings]


def test_a_scan_with_all_that_is_there_in_order_passes() -> None:
    result = judged(write(1, 2, "b", 1), write(3, 4, "a", 2), scan(5, 6, ("a", 2), ("b", 1)))
    assert result.verdict is Verdict.PASS
    assert "1 scans" in result.sentence


def test_a_key_that_was_there_throughout_must_be_found() -> None:
    result = judged(write(1, 2, "a", 7), scan(3, 4))
    assert [finding.anomaly for finding in result.findings] == ["lost-write"]
    assert 'Client 1 scanned from "" to the end and did not find a, to which client 0 had written 7' in result.sentence


@pytest.mark.parametrize(
    "steps",
    [
        [write(1, 4, "a", 7), scan(3, 5)],
        [write(1, 2, "a", 7, info("timeout")), scan(3, 4)],
        [write(1, 2, "a", 7, fail("no")), scan(3, 4)],
        [write(1, 2, "a", 7), delete(3, 6, "a"), scan(4, 5)],
        [write(1, 2, "a", 7), delete(3, 4, "a", info("timeout")), scan(5, 6)],
        [write(1, 3, "a", 7), delete(2, 4, "a"), scan(5, 6)],
        [write(1, 2, "d", 7), scan(3, 4, start="a", stop="d")],
        [write(1, 2, "a", 7), scan(3, 4, start="aa")],
    ],
    ids=["still written", "unknown", "failed", "being deleted", "deleted perhaps", "crossed", "at the end", "below"],
)
def test_a_key_that_may_have_been_absent_for_a_moment_need_not_be_found(steps: list[Step]) -> None:
    assert anomalies(*steps) == []


def test_a_deletion_that_was_over_before_a_write_or_failed_excuses_nothing() -> None:
    assert anomalies(delete(1, 2, "a"), write(3, 4, "a", 7), scan(5, 6)) == ["lost-write"]
    assert anomalies(write(1, 2, "a", 7), delete(3, 4, "a", fail("no")), scan(5, 6)) == ["lost-write"]
    assert anomalies(write(1, 2, "a", 7), scan(3, 4), delete(5, 6, "a")) == ["lost-write"]


def test_an_earlier_write_that_was_deleted_does_not_hide_a_later_one() -> None:
    steps = (write(1, 2, "a", 1), delete(3, 4, "a"), write(5, 6, "a", 2), write(7, 10, "a", 3))
    assert anomalies(*steps, scan(8, 9)) == ["lost-write"]


def test_a_key_comes_once() -> None:
    assert anomalies(write(1, 2, "a", 7), scan(3, 4, ("a", 7), ("a", 7))) == ["duplicated-key"]


def test_keys_come_in_order() -> None:
    steps = (write(1, 2, "a", 1), write(3, 4, "b", 2))
    assert anomalies(*steps, scan(5, 6, ("b", 2), ("a", 1))) == ["out-of-order"]


@pytest.mark.parametrize(("start", "stop"), [("b", None), ("", "a")])
def test_keys_that_were_not_asked_for_do_not_come(start: str, stop: str | None) -> None:
    assert anomalies(write(1, 2, "a", 1), scan(3, 4, ("a", 1), start=start, stop=stop)) == ["outside-range"]


@pytest.mark.parametrize(
    ("steps", "name"),
    [
        ([scan(3, 4, ("a", 1))], "garbage-read"),
        ([write(1, 2, "a", 1, fail("no")), scan(3, 4, ("a", 1))], "aborted-read"),
        ([scan(1, 2, ("a", 1)), write(3, 4, "a", 1)], "future-read"),
        ([write(1, 2, "b", 1), scan(3, 4, ("a", 1), stop="b")], "garbage-read"),
    ],
    ids=["never", "failed", "later", "another key"],
)
def test_a_value_that_was_never_written_to_the_key_is_told(steps: list[Step], name: str) -> None:
    assert anomalies(*steps) == [name]


def test_a_key_that_a_later_scan_has_was_missed_by_one_scan_and_not_lost() -> None:
    assert anomalies(write(1, 2, "a", 7), scan(3, 4), scan(5, 6, ("a", 7))) == ["missing-key"]
    assert anomalies(write(1, 2, "a", 7), scan(3, 4, ("a", 7)), scan(5, 6)) == ["lost-write"]


def test_an_old_value_that_no_later_scan_corrects_is_a_lost_write() -> None:
    steps = (write(1, 2, "a", 1), write(3, 4, "a", 2), scan(5, 6, ("a", 1)))
    assert anomalies(*steps) == ["lost-write"]
    assert anomalies(*steps, scan(7, 8, ("a", 2))) == ["stale-read"]


def test_what_was_deleted_before_the_scan_does_not_come_back() -> None:
    result = judged(write(1, 2, "a", 1), delete(3, 4, "a"), scan(5, 6, ("a", 1)))
    assert [finding.anomaly for finding in result.findings] == ["resurrected-key"]
    assert "which client 1 had deleted before" in result.sentence


def test_what_was_overwritten_before_the_scan_is_stale() -> None:
    result = judged(write(1, 2, "a", 1), write(3, 4, "a", 2), scan(5, 6, ("a", 1)), scan(7, 8, ("a", 2)))
    assert [finding.anomaly for finding in result.findings] == ["stale-read"]
    assert "which client 1 had overwritten with 2 before" in result.sentence


@pytest.mark.parametrize(
    "steps",
    [
        [write(1, 4, "a", 1), write(3, 5, "a", 2), scan(6, 7, ("a", 1))],
        [write(1, 2, "a", 1), write(3, 6, "a", 2), scan(5, 7, ("a", 1))],
        [write(1, 2, "a", 1), write(3, 4, "a", 2, info("timeout")), scan(5, 6, ("a", 1))],
        [write(1, 2, "a", 1, info("timeout")), write(3, 4, "a", 2), scan(5, 6, ("a", 1))],
        [write(1, 2, "a", 1), delete(3, 6, "a"), scan(4, 5, ("a", 1))],
    ],
    ids=["concurrent", "during the scan", "unknown change", "unknown write", "being deleted"],
)
def test_a_value_that_may_still_have_been_there_is_not_accused(steps: list[Step]) -> None:
    assert anomalies(*steps) == []


def test_without_a_scan_nothing_is_known() -> None:
    assert judged(write(1, 2, "a", 1)).verdict is Verdict.VACUOUS
    assert judged().verdict is Verdict.VACUOUS
