"""Append-only logs with offsets: what is lost, doubled, out of place or out of order."""

from __future__ import annotations

import pytest
from classic_histories import anomalies, history_of, op

from faultline.checkers.classic.log import LogChecker
from faultline.harness.errors import UsageError
from faultline.harness.verdict import Verdict


def send(value, offset, process=0, **more):
    return op("send", value, offset, process=process, key="k", **more)


def poll(*messages, process=1, **more):
    return op("poll", None, [list(message) for message in messages], process=process, key="k", **more)


def judged(*operations, **options):
    return LogChecker(**options).check(history_of(*operations))


def found(*operations, **options):
    return anomalies(judged(*operations, **options))


ALL = (send("a", 0), send("b", 1), send("c", 2))


def test_a_log_that_is_polled_in_order_passes():
    assert judged(*ALL, poll((0, "a"), (1, "b")), poll((2, "c"))).verdict is Verdict.PASS


def test_offsets_that_hold_nothing_are_no_skip():
    assert judged(send("a", 0), send("b", 5), poll((0, "a")), poll((5, "b"))).verdict is Verdict.PASS


def test_transactions_of_micro_operations_are_understood():
    sent = op("txn", [["send", 7, "a"], ["poll"]], [["send", 7, [0, "a"]], ["poll", {}]])
    polled = op("txn", [[":poll"]], [["poll", {"7": [[0, "a"]]}]])
    assert judged(sent, polled).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([*ALL, poll((0, "a"), (1, "x"), (2, "c"))], ["garbage-read", "inconsistent-offset", "lost-write"]),
        ([send("a", 0), poll((0, "a"), (1, "a"))], ["duplicated-message"]),
        ([*ALL, poll((0, "a"), process=1), poll((2, "c"), process=2)], ["lost-write"]),
        ([send("a", None, outcome="fail"), poll((0, "a"))], ["aborted-read"]),
        ([poll((0, "a"))], ["garbage-read"]),
        ([poll((0, "a")), send("a", 0)], ["future-read"]),
        ([*ALL, poll((0, "a"), (1, "b"), (2, "c"), process=2), poll((0, "a")), poll((2, "c"))], ["poll-skip"]),
        ([*ALL, poll((0, "a"), (2, "c")), poll((0, "a"), (1, "b"), (2, "c"), process=2)], ["poll-skip"]),
        ([send("a", 0), poll((0, "a")), poll((0, "a"))], ["nonmonotonic-poll"]),
        ([send("b", 1), send("a", 0), poll((0, "a"), (1, "b"))], ["nonmonotonic-send"]),
    ],
    ids=["inconsistent", "duplicated", "lost", "aborted", "unsent", "unsent yet", "skip", "inner skip", "back", "send"],
)
def test_each_way_a_log_can_be_wrong_has_its_name(operations, expected):
    assert found(*operations) == expected


def test_the_rows_of_a_lost_write_are_its_send_and_a_poll_beyond_it():
    result = judged(*ALL, poll((0, "a"), process=1), poll((2, "c"), process=2))
    assert result.findings[0].operations == (1, 4)
    assert '"b"' in result.sentence


def test_messages_that_were_not_polled_by_the_end_are_unknown_rather_than_lost():
    result = judged(*ALL, poll((0, "a")))
    assert result.verdict is Verdict.UNKNOWN
    assert result.detail["counts"]["unseen"] == 2


def test_what_stands_before_the_first_poll_is_lost_only_when_polls_begin_at_the_beginning():
    operations = [*ALL, poll((1, "b"), (2, "c"))]
    assert found(*operations) == ["lost-write"]
    assert judged(*operations, from_beginning=False).verdict is Verdict.PASS


def test_an_indeterminate_send_may_be_polled_or_not():
    lost = send("b", None, outcome="info", process=5)
    assert judged(send("a", 0), lost, poll((0, "a"))).verdict is Verdict.PASS
    assert judged(send("a", 0), lost, poll((0, "a"), (1, "b"))).verdict is Verdict.PASS


@pytest.mark.parametrize("between", [op("assign", ["k"], process=1), poll(outcome="fail", error="aborted")])
def test_a_position_that_is_set_anew_may_be_anywhere(between):
    assert judged(send("a", 0), poll((0, "a")), between, poll((0, "a"))).verdict is Verdict.PASS


def test_a_subscriber_may_be_moved_between_polls_but_not_within_one():
    subscribe = op("subscribe", ["k"], process=1)
    result = judged(subscribe, send("a", 0), poll((0, "a")), poll((0, "a")))
    assert result.verdict is Verdict.PASS
    assert result.detail["counts"]["tolerated"] == 1
    assert found(subscribe, send("a", 0), poll((0, "a"), (0, "a"))) == ["nonmonotonic-poll"]


@pytest.mark.parametrize(
    "operations",
    [
        [send("a", 0), send("a", 1)],
        [send("a", "here")],
        [op("txn", 5)],
        [op("txn", [["send", 1, "a"]], [])],
        [op("poll", None, {"k": 5})],
        [op("commit")],
    ],
)
def test_histories_of_another_shape_are_refused_by_name(operations):
    with pytest.raises(UsageError, match="`log` cannot judge"):
        LogChecker().check(history_of(*operations))
