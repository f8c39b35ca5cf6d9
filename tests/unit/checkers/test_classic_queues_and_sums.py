"""Queues, identifiers, counters and banks: what is counted comes out right."""

from __future__ import annotations

import pytest
from classic_histories import anomalies, history_of, op

from faultline.checkers.classic.bank import BankChecker
from faultline.checkers.classic.counter import CounterChecker
from faultline.checkers.classic.queues import QueueChecker, TotalQueueChecker
from faultline.checkers.classic.unique_ids import UniqueIdsChecker
from faultline.harness.errors import UsageError
from faultline.harness.verdict import Verdict

QUEUES = pytest.mark.parametrize("checker", [QueueChecker(), TotalQueueChecker()], ids=lambda checker: checker.name)


# -- queues ---------------------------------------------------------------------------------------------------------


@QUEUES
def test_a_queue_that_is_drained_of_what_was_put_in_passes(checker):
    history = history_of(op("enqueue", 1), op("enqueue", 2), op("dequeue", None, 2), op("drain", None, [1]))
    assert checker.check(history).verdict is Verdict.PASS


@QUEUES
def test_an_element_delivered_twice_is_a_violation_unless_allowed(checker):
    history = history_of(op("enqueue", 1), op("dequeue", None, 1), op("dequeue", None, 1), op("drain", None, []))
    result = checker.check(history)
    assert anomalies(result) == ["duplicated-delivery"]
    assert result.findings[0].operations == (0, 1, 2)
    assert type(checker)(allow_duplicates=True).check(history).verdict is Verdict.PASS


@QUEUES
def test_an_element_enqueued_twice_may_come_out_twice(checker):
    history = history_of(op("enqueue", 1), op("enqueue", 1), op("dequeue", None, 1), op("drain", None, [1]))
    assert checker.check(history).verdict is Verdict.PASS


@QUEUES
@pytest.mark.parametrize(
    "operations",
    [
        [op("dequeue", None, 7)],
        [op("enqueue", 7, outcome="fail"), op("dequeue", None, 7)],
        [op("dequeue", None, 7), op("enqueue", 7)],
        [op("enqueue", 7), op("drain", None, [7, 8])],
    ],
    ids=["never enqueued", "enqueue failed", "before its enqueue", "drained"],
)
def test_an_element_that_cannot_have_been_in_the_queue_is_unexpected(checker, operations):
    assert anomalies(checker.check(history_of(*operations))) == ["unexpected-delivery"]


@QUEUES
def test_an_element_of_an_indeterminate_enqueue_is_recovered(checker):
    history = history_of(op("enqueue", 1, outcome="info"), op("dequeue", None, 1), op("drain", None, []))
    result = checker.check(history)
    assert result.verdict is Verdict.PASS
    assert result.detail["counts"]["recovered"] == 1


def test_an_acknowledged_element_missing_from_an_empty_queue_is_lost():
    history = history_of(op("enqueue", 1), op("enqueue", 2), op("drain", None, [2]))
    result = TotalQueueChecker().check(history)
    assert anomalies(result) == ["lost-delivery"]
    assert result.findings[0].operations == (0, 2)
    assert QueueChecker().check(history).verdict is Verdict.PASS


@pytest.mark.parametrize(
    "empty",
    [op("dequeue"), op("dequeue", outcome="fail", error="empty"), op("drain", None, [])],
    ids=["null", "failed as empty", "drained"],
)
def test_a_queue_is_found_empty_by_a_drain_or_an_empty_dequeue(empty):
    assert anomalies(TotalQueueChecker().check(history_of(op("enqueue", 1), empty))) == ["lost-delivery"]


@pytest.mark.parametrize(
    ("operations", "reason"),
    [
        ([op("enqueue", 1), op("dequeue", outcome="fail", error="timeout")], "may still be in it"),
        ([op("drain", None, []), op("enqueue", 1)], "may still be in it"),
        ([op("enqueue", 1), op("dequeue", outcome="info"), op("drain", None, [])], "1 indeterminate dequeue"),
        ([op("enqueue", 1), op("drain", outcome="info"), op("drain", None, [])], "an indeterminate drain"),
    ],
)
def test_a_missing_element_is_unknown_when_it_may_be_elsewhere(operations, reason):
    result = TotalQueueChecker().check(history_of(*operations))
    assert result.verdict is Verdict.UNKNOWN
    assert reason in result.sentence


def test_only_what_indeterminate_dequeues_cannot_have_taken_is_lost():
    history = history_of(op("enqueue", 1), op("enqueue", 2), op("dequeue", outcome="info"), op("drain", None, []))
    (finding,) = TotalQueueChecker().check(history).findings
    assert finding.detail["count"] == 1


# -- identifiers ----------------------------------------------------------------------------------------------------


def test_identifiers_handed_out_twice_are_found_whatever_their_type():
    history = history_of(op("generate", None, [1, 2]), op("generate", None, "a"), op("generate", None, [1, 2]))
    (finding,) = UniqueIdsChecker().check(history).findings
    assert finding.operations == (0, 2)


def test_distinct_identifiers_pass_and_unanswered_requests_say_nothing():
    history = history_of(op("generate", None, 1), op("generate", outcome="info"), op("generate", None, "1"))
    assert UniqueIdsChecker().check(history).verdict is Verdict.PASS
    assert UniqueIdsChecker().check(history_of(op("generate", outcome="info"))).verdict is Verdict.VACUOUS


def test_an_answer_without_an_identifier_is_refused():
    with pytest.raises(UsageError, match="without an identifier"):
        UniqueIdsChecker().check(history_of(op("generate")))


# -- counters -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("read", [1, 4, 6])
def test_a_read_within_its_bounds_passes(read):
    history = history_of(
        op("add", 1, span=(0, 1)), op("add", 3, span=(2, 9), process=1), op("increment", 2, span=(4, 5), process=2),
        op("read", None, read, span=(3, 6), process=3),
    )  # fmt: skip
    assert CounterChecker().check(history).verdict is Verdict.PASS


@pytest.mark.parametrize("read", [0, 7])
def test_a_read_out_of_its_bounds_is_a_violation_that_tells_them(read):
    history = history_of(
        op("add", 1, span=(0, 1)), op("add", 3, span=(2, 9), process=1), op("add", 2, span=(4, 5), process=2),
        op("read", None, read, span=(3, 6), process=3),
    )  # fmt: skip
    result = CounterChecker().check(history)
    assert anomalies(result) == ["counter-out-of-bounds"]
    assert "allow 1 to 6" in result.sentence


def test_decrements_lower_the_bounds_while_they_are_in_flight_and_for_ever_when_indeterminate():
    history = history_of(op("add", 5), op("decrement", 2, outcome="info"), op("read", None, 3), op("read", None, 5))
    assert CounterChecker().check(history).verdict is Verdict.PASS
    history = history_of(op("add", 5), op("add", -2), op("read", None, 5))
    assert "allow only 3" in CounterChecker().check(history).sentence


def test_failed_additions_never_count():
    assert CounterChecker().check(history_of(op("add", 1, outcome="fail"), op("read", None, 1))).findings
    assert not CounterChecker(initial=4).check(history_of(op("add", 1, outcome="fail"), op("read", None, 4))).findings


def test_a_counter_that_was_not_read_is_unknown():
    assert CounterChecker().check(history_of(op("add", 1))).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    "operation", [op("add", "1"), op("add"), op("read", None, 1.5), op("decrement", -1), op("add", True)]
)
def test_amounts_and_reads_must_be_integers(operation):
    with pytest.raises(UsageError, match="`counter` cannot judge"):
        CounterChecker().check(history_of(operation))


# -- banks ----------------------------------------------------------------------------------------------------------

TRANSFER = op("transfer", {"from": "a", "to": "b", "amount": 5})


def test_a_bank_whose_total_stays_passes():
    history = history_of(op("read", None, {"a": 10, "b": 0}), TRANSFER, op("read", None, {"a": 5, "b": 5}))
    assert BankChecker().check(history).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("balances", "expected"),
    [
        ({"a": 5, "b": 4}, ["wrong-total"]),
        ({"a": 11, "b": -1}, ["negative-balance"]),
        ({"a": 10}, ["missing-account"]),
        ({"a": 10, "b": None}, ["missing-account"]),
        ({"a": 10, "b": 0, "c": 0}, ["unexpected-account"]),
    ],
)
def test_each_way_a_read_of_a_bank_can_be_wrong_has_its_name(balances, expected):
    result = BankChecker().check(history_of(op("read", None, {"a": 10, "b": 0}), op("read", None, balances)))
    assert anomalies(result) == expected


def test_overdrawn_accounts_may_be_allowed():
    history = history_of(op("read", None, {"a": 11, "b": -1}), op("read", None, {"a": 10, "b": 0}))
    assert BankChecker(negative_balances=True).check(history).verdict is Verdict.PASS


def test_total_and_accounts_may_be_given():
    history = history_of(op("read", None, {"1": 10, "2": 0}))
    assert BankChecker(total=10, accounts=[1, 2]).check(history).verdict is Verdict.PASS
    assert anomalies(BankChecker(total=11, accounts=[1, 2, 3]).check(history)) == ["missing-account", "wrong-total"]


def test_the_first_the_worst_and_the_last_wrong_total_are_told():
    totals = [10, 11, 5, 9]
    history = history_of(*(op("read", None, {"a": total}) for total in totals))
    detail = BankChecker().check(history).detail
    assert [detail[name]["total"] for name in ("first", "worst", "last")] == [11, 5, 9]
    assert (detail["lowest"], detail["highest"]) == (5, 11)


def test_a_bank_that_was_not_read_is_vacuous_and_one_of_another_shape_is_refused():
    assert BankChecker().check(history_of(TRANSFER)).verdict is Verdict.VACUOUS
    with pytest.raises(UsageError, match="instead of balances"):
        BankChecker().check(history_of(op("read", None, [1, 2])))
    with pytest.raises(UsageError, match="as a balance"):
        BankChecker().check(history_of(op("read", None, {"a": "ten"})))
