"""Read committed, read atomicity and causal consistency: each violating pattern by its name."""

from __future__ import annotations

import pytest
from classic_histories import anomalies, history_of, op

from faultline.checkers.isolation.weak import CausalConsistencyChecker, ReadAtomicChecker, ReadCommittedChecker
from faultline.harness.errors import UsageError
from faultline.harness.verdict import Verdict

ALL = (ReadCommittedChecker, ReadAtomicChecker, CausalConsistencyChecker)
EACH = pytest.mark.parametrize("checker", [make() for make in ALL], ids=lambda checker: checker.name)


def txn(micro, process=0, outcome="ok"):
    """A transaction written as `wx1 ry- rx1`: writes and reads of one-letter keys, `-` for null."""
    steps = [[step[0], step[1], None if step[2:] == "-" else int(step[2:])] for step in micro.split()]
    asked = [[f, key, None if f == "r" else value] for f, key, value in steps]
    return op("txn", asked, steps if outcome == "ok" else None, process=process, outcome=outcome)


def found(checker, *transactions):
    return anomalies(checker.check(history_of(*transactions)))


@EACH
def test_transactions_one_after_the_other_keep_every_level(checker):
    history = history_of(txn("rx- wx1 wy1"), txn("rx1 wx2", 1), txn("rx2 ry1", 2), txn("rx2 wz1 rz1", 0))
    assert checker.check(history).verdict is Verdict.PASS


@EACH
@pytest.mark.parametrize(
    ("transactions", "expected"),
    [
        ([txn("rx7")], "garbage-read"),
        ([txn("wx1", outcome="fail"), txn("rx1", 1)], "aborted-read"),
        ([txn("wx1 wx2"), txn("rx1", 1)], "intermediate-read"),
        ([txn("rx1 wx1")], "future-read"),
        ([txn("wx1 rx-")], "internal"),
        ([txn("wx1 rx2"), txn("wx2", 1)], "internal"),
        ([txn("ry1 wx1"), txn("rx1 wy1", 1)], "circular-information-flow"),
    ],
)
def test_what_no_level_allows_has_its_name(checker, transactions, expected):
    assert expected in found(checker, *transactions)


def test_reads_that_go_back_within_a_transaction_violate_read_committed():
    transactions = [txn("wx1 wy1"), txn("wx2 wy2", 1), txn("rx2 ry1", 2), txn("rx1 ry2 rx2", 3)]
    assert found(ReadCommittedChecker(), *transactions) == ["conflicting-write-order"]
    result = ReadCommittedChecker().check(history_of(txn("wx1 wy1"), txn("rx1 ry-", 1)))
    assert anomalies(result) == ["non-monotonic-read"]
    assert result.findings[0].operations == (0, 1)
    assert "T1 knew of T0" in result.sentence


def test_seeing_a_write_only_later_is_read_committed_but_not_atomic():
    transactions = [txn("wx1 wy1"), txn("rx- ry1", 1)]
    assert found(ReadCommittedChecker(), *transactions) == []
    assert found(ReadAtomicChecker(), *transactions) == ["fractured-read"]


def test_reading_one_key_from_two_transactions_is_not_repeatable():
    transactions = [txn("wx1"), txn("wx2", 1), txn("rx1 rx2", 2)]
    assert found(ReadCommittedChecker(), *transactions) == []
    assert found(ReadAtomicChecker(), *transactions) == ["non-repeatable-read"]


def test_missing_the_cause_of_what_one_knows_violates_causality_only():
    transactions = [txn("wx1"), txn("rx1 wy1", 1), txn("ry1 rx-", 2)]
    assert found(ReadAtomicChecker(), *transactions) == []
    result = CausalConsistencyChecker().check(history_of(*transactions))
    assert anomalies(result) == ["causality-violation"]
    assert result.findings[0].operations == (0, 1, 2)
    assert "T2 knew of T0 through T1" in result.sentence


def test_causality_reaches_along_sessions():
    transactions = [txn("wx1", 1), txn("wy1", 1), txn("ry1", 2), txn("rx-", 2)]
    assert found(CausalConsistencyChecker(), *transactions) == ["causality-violation"]


def test_concurrent_writes_may_be_seen_in_different_orders_unless_a_reader_knows_both():
    writers = [txn("wx1"), txn("wx2", 1)]
    assert found(CausalConsistencyChecker(), *writers, txn("rx1", 2), txn("rx2", 3)) == []
    assert found(CausalConsistencyChecker(), *writers, txn("rx1", 2), txn("rx2", 2), txn("rx1", 2)) != []


def test_lost_updates_and_write_skew_are_causally_consistent():
    assert found(CausalConsistencyChecker(), txn("wx1"), txn("rx1 wx2", 1), txn("rx1 wx3", 2)) == []
    assert found(CausalConsistencyChecker(), txn("rx- wy1"), txn("ry- wx1", 1)) == []


@pytest.mark.parametrize("make", ALL[:2])
def test_sessions_bind_only_where_they_are_part_of_the_level(make):
    transactions = (
        [txn("wx1"), txn("wx2"), txn("rx2 rx1", 1)] if make is ReadCommittedChecker else [txn("wx1"), txn("rx-")]
    )
    assert found(make(), *transactions) != []
    assert found(make(session_order=False), *transactions) == []


@EACH
def test_an_indeterminate_transaction_counts_once_a_read_saw_it(checker):
    unseen = [txn("wx1 wy1", outcome="info"), txn("rx- ry-", 1)]
    assert found(checker, *unseen) == []
    assert found(checker, *unseen, txn("rx1 ry-", 2)) != []


@EACH
def test_histories_of_another_shape_are_refused_by_name(checker):
    for operations in (
        [txn("wx1"), txn("wx1", 1)],
        [op("txn", [["append", "x", 1]], [["append", "x", 1]])],
        [op("txn", [["w", "x", None]], [["w", "x", None]])],
        [op("read", None, 5)],
    ):
        with pytest.raises(UsageError, match=f"`{checker.name}` cannot judge"):
            checker.check(history_of(*operations))


@EACH
def test_no_transactions_are_vacuous(checker):
    assert checker.check(history_of()).verdict is Verdict.VACUOUS


def test_contradictions_that_have_nothing_in_common_are_told_apart():
    circles = [txn("ra1 wb1"), txn("rb1 wa1", 1), txn("rc1 wd1", 2), txn("rd1 wc1", 3)]
    result = ReadCommittedChecker().check(history_of(*circles))
    assert sorted(finding.operations for finding in result.findings) == [(0, 1), (2, 3)]


def test_a_finding_shows_why_an_indeterminate_transaction_is_known_to_be_committed():
    history = history_of(txn("rx1"), txn("wx1", outcome="info"), txn("wq1", 3), txn("rx-"))
    (finding,) = (
        ReadAtomicChecker().check(history_of(*[txn("wx1", outcome="info"), txn("rx1", 1), txn("rx-")])).findings
    )
    assert finding.operations == (0, 1, 2)
    assert all(0 in found.operations for found in ReadAtomicChecker().check(history).findings)
