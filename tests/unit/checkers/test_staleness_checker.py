"""Staleness as a figure: the versions that a read is behind, and the time, with the operations that need them."""

from __future__ import annotations

import pytest
from classic_histories import anomalies, history_of, op

from faultline.checkers import StalenessChecker
from faultline.checkers.judges import judge
from faultline.checkers.memory import clusters, staleness
from faultline.checkers.memory.clusters import Cluster, Read, is_2_atomic, versions_needed
from faultline.harness.errors import UsageError
from faultline.harness.verdict import Cause, CheckResult, Verdict


def write(value, begin, end, **more):
    return op("write", value, span=(begin, end), key="x", **more)


def read(value, begin, end, **more):
    return op("read", None, value, span=(begin, end), process=9, key="x", **more)


BEHIND = write(1, 0, 10), write(2, 20, 30), write(3, 40, 50), read(1, 80, 90)
"""A read of the third latest version, 50 ms after the next one had been written."""


def measured(*steps, **options) -> CheckResult:
    """Return the figures of these operations, of which each step takes a millisecond."""
    return StalenessChecker(**options).check(history_of(*steps))


def figures(*steps) -> tuple[list[int], int]:
    result = measured(*steps)
    return result.detail["versions"], result.detail["stale_us"]


def test_a_linearizable_key_is_one_version_and_no_time_behind():
    assert figures(write(1, 0, 10), write(2, 20, 30), read(2, 40, 50)) == ([1, 1], 0)
    assert "No read is stale" in measured(write(1, 0, 10), read(1, 20, 30)).sentence


def test_a_stale_read_is_told_with_its_versions_its_time_and_the_write_it_missed():
    result = measured(*BEHIND)
    assert (result.verdict, result.detail["versions"]) == (Verdict.PASS, [3, 3])
    key = result.detail["keys"]["x"]
    assert (key["oldest"], key["stalest"], key["newer"]) == (3, 3, 1)
    assert "sees one of the 3 latest versions" in result.sentence
    assert "client 9 read 1 from x, 50.001 ms later than client 0's write of 2 allows" in result.sentence


def test_time_counts_from_the_end_of_the_first_newer_write_to_the_beginning_of_the_read():
    assert figures(*BEHIND[:2], read(1, 35, 60)) == ([2, 2], 5_001)


def test_a_read_that_overlaps_the_newer_write_is_not_stale():
    assert figures(write(1, 0, 10), write(2, 20, 40, process=1), read(1, 30, 50)) == ([1, 1], 0)


def test_a_read_shows_that_the_write_it_saw_had_taken_effect():
    new_then_old = read(2, 30, 40), read(1, 45, 50)
    assert figures(write(1, 0, 10), write(2, 20, 90), *new_then_old) == ([2, 2], 5_001)


def test_a_missing_write_of_the_beginning_counts_as_a_version():
    assert figures(write(1, 0, 10), read(None, 20, 30)) == ([2, 2], 10_001)


def test_a_write_of_unknown_outcome_counts_only_when_it_was_read():
    lost = write(2, 20, None, process=1, outcome="info")
    assert figures(write(1, 0, 10), lost, read(1, 40, 50)) == ([1, 1], 0)
    assert figures(write(1, 0, 10), lost, read(2, 40, 50), read(1, 60, 70)) == ([2, 2], 10_001)


def test_each_key_has_its_own_figures_and_the_worst_stands_for_all():
    other = op("write", 7, span=(0, 5), process=3, key="y"), op("read", None, 7, span=(7, 9), process=3, key="y")
    result = measured(*BEHIND, *other)
    assert (result.detail["keys"]["y"]["versions_max"], result.detail["keys"]["y"]["stale_us"]) == (1, 0)
    assert result.detail["versions"] == [3, 3]


@pytest.mark.parametrize("bound", [{"versions_max": 2}, {"stale_ms_max": 50}])
def test_a_read_beyond_a_promised_bound_is_a_violation(bound):
    result = measured(*BEHIND, **bound)
    assert (result.verdict, anomalies(result)) == (Verdict.VIOLATION, ["staleness-bound-exceeded"])
    assert result.findings[0].operations[-1] == 3


@pytest.mark.parametrize("bound", [{"versions_max": 3}, {"stale_ms_max": 51}])
def test_a_read_within_a_promised_bound_is_none(bound):
    assert measured(*BEHIND, **bound).verdict is Verdict.PASS


def test_no_two_orders_of_concurrent_writes_make_old_news_new():
    """Two clients see two concurrent writes in turn, twice: each order of them leaves one read two versions behind."""
    both = write(1, 0, 10), write(2, 0, 11, process=1)
    flips = read(1, 20, 21), read(2, 22, 23), read(1, 24, 25)
    assert figures(*both, *flips)[0] == [2, 2]


def test_three_versions_may_be_needed_although_no_read_alone_shows_it():
    writes = [write(value, 0, 10 + value, process=value) for value in (1, 2, 3)]
    turns = [read(value, 20 + 2 * at, 21 + 2 * at) for at, value in enumerate((1, 2, 3, 1, 2, 3))]
    assert measured(*writes, *turns).detail["versions"] == [3, 3]
    assert measured(*writes, *turns, versions_max=2).verdict is Verdict.VIOLATION


def test_what_no_write_can_have_put_is_a_violation_without_any_bound():
    assert anomalies(measured(write(1, 0, 10), read(5, 20, 30))) == ["garbage-read"]
    assert anomalies(measured(read(1, 0, 10), write(1, 20, 30))) == ["future-read"]
    failed = write(1, 0, 10, outcome="fail")
    assert anomalies(measured(failed, read(1, 20, 30))) == ["aborted-read"]


def test_a_key_whose_values_repeat_is_unknown_and_others_are_measured():
    twice = op("write", 1, span=(0, 5), process=3, key="y"), op("write", 1, span=(7, 9), process=3, key="y")
    result = measured(*BEHIND, *twice, op("read", None, 1, span=(10, 12), process=3, key="y"))
    assert (result.verdict, result.reason.cause) == (Verdict.UNKNOWN, Cause.REPEATED_VALUES)
    assert result.detail["versions"] == [3, 3]


def test_without_times_the_figures_count_events():
    history = history_of(*BEHIND, step_us=0)
    result = judge("staleness", history, clock="events").check(history)
    assert result.detail["stale_us"] == 4
    assert "4 events later" in result.sentence


def test_compare_and_sets_are_refused():
    with pytest.raises(UsageError, match="`staleness` cannot judge this history"):
        measured(op("cas", [1, 2], key="x"))


def test_a_search_that_gives_up_leaves_two_versions_possible(monkeypatch):
    writes = [Cluster(number, 10 * number, 10 * number + 5) for number in range(1, 20)]
    writes[0].reads.append(Read(27, 28, 50))
    assert is_2_atomic(writes) is True
    assert is_2_atomic(writes, steps_max=1) is None
    monkeypatch.setattr(clusters, "is_2_atomic", lambda each: None)
    assert versions_needed(writes) == (2, 2, 50)


def test_a_bound_that_the_figures_leave_open_is_unknown(monkeypatch):
    monkeypatch.setattr(staleness, "versions_needed", lambda clusters: (2, 4, 3))
    assert measured(*BEHIND, versions_max=3).verdict is Verdict.UNKNOWN
    assert measured(*BEHIND, versions_max=4).verdict is Verdict.PASS
    assert measured(*BEHIND, versions_max=1).verdict is Verdict.VIOLATION
