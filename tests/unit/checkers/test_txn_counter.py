"""Transactions on counters get the verdict that they deserve."""

from __future__ import annotations

from typing import Any

import pytest
from transaction_bodies import overlapping, successive

from faultline.checkers import CHECKERS
from faultline.checkers.transactions.checker import CounterTransactionsChecker, check_transactions
from faultline.checkers.transactions.edges import EdgeKind
from faultline.checkers.transactions.shapes import classify
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome
from faultline.harness.verdict import CheckResult, Verdict


def inc(key: str, amount: Any = 1) -> list[Any]:
    return ["inc", key, amount]


def read(key: str, value: Any) -> list[Any]:
    return ["r", key, value]


def check(history: History, model: str = "serializable") -> CheckResult:
    return CounterTransactionsChecker(model).check(history)


def test_a_serial_history_passes_every_model() -> None:
    history = successive(
        [read("x", None), inc("x", 2), read("x", 2), inc("x"), read("x", 3)],
        [read("x", 3), inc("y", 5)],
        [inc("x"), read("x", 4), read("y", 5)],
        [read("x", 4), read("y", 5)],
    )
    for model in ("strict-serializable", "serializable", "snapshot-isolation", "read-committed"):
        result = check(history, model)
        assert (result.verdict, result.detail["anomalies"]) == (Verdict.PASS, {})


@pytest.mark.parametrize(
    ("transactions", "anomaly"),
    [
        (([inc("x")], [read("x", -1)]), "garbage-read"),
        (([inc("x")], [read("x", 2)]), "garbage-read"),
        ((("fail", [inc("x")]), [read("x", 1)]), "G1a"),
        (([inc("x", 2), read("x", 1)],), "internal"),
        (([read("x", 0), read("x", 1)], [inc("x")]), "internal"),
        (([read("x", 1), inc("x")],), "future-read"),
        (([read("x", 0), inc("x")], [read("x", 0), inc("x")]), "lost-update"),
    ],
)
def test_anomalies_that_need_no_cycle(transactions: tuple[Any, ...], anomaly: str) -> None:
    result = check(overlapping(*transactions))
    assert result.verdict == Verdict.VIOLATION
    assert next(finding for finding in result.findings if finding.anomaly == anomaly).key == "x"


def test_increments_of_unknown_outcome_may_have_happened_or_not() -> None:
    unknown = ("info", [inc("x", 3)])
    assert check(overlapping(unknown, [read("x", 3)])).verdict == Verdict.PASS
    assert check(overlapping(unknown, [read("x", 0)], [inc("x")], [read("x", 1)])).verdict == Verdict.PASS
    assert check(overlapping(unknown, [read("x", 4)])).verdict == Verdict.VIOLATION


def test_two_readers_that_disagree_about_what_came_first_break_snapshots() -> None:
    incs = [[inc("x"), inc("x")], [inc("y"), inc("y")], [inc("x"), inc("y")]]
    history = overlapping(*incs, [read("x", 1), read("y", 2)], [read("x", 2), read("y", 1)])
    result = check(history, "snapshot-isolation")
    assert result.verdict == Verdict.VIOLATION
    assert "G-nonadjacent-item" in result.detail["anomalies"]
    assert "T1 read 1 from x and T2 read 2, and x only grows" in result.sentence
    cycle = next(finding for finding in result.findings if finding.anomaly == "G-nonadjacent-item")
    assert [edge["kind"] for edge in cycle.detail["edges"]] == ["rr", "rr"]
    assert check(history, "read-committed").verdict == Verdict.PASS


def test_an_rr_is_an_anti_dependency_that_the_next_one_does_not_follow_directly() -> None:
    rr = EdgeKind.RW | EdgeKind.WR
    assert classify([rr, rr]) == "G-nonadjacent-item"
    assert classify([rr, EdgeKind.RW]) == "G2-item"
    assert classify([rr, EdgeKind.PROCESS]) == "G-single-item-process"


def test_a_value_that_goes_back_in_real_time_is_stale() -> None:
    history = successive([inc("x")], [inc("x"), inc("x")], [read("x", 3)], [read("x", 1)])
    result = check(history, "strict-serializable")
    assert result.verdict == Verdict.VIOLATION
    assert set(result.detail["anomalies"]) == {"G-single-item-realtime"}
    assert check(history).verdict == Verdict.PASS


def test_a_value_that_goes_back_for_one_process_breaks_its_session() -> None:
    history = overlapping([inc("x"), inc("x")], [inc("x")])
    for value in (2, 1):
        body = [read("x", value)]
        row = history.invoke(Operation(9, "txn", None, body), history.next_index, 9, "")
        history.complete(row, Outcome("ok", body), history.next_index)
    assert check(history, "strong-session-serializable").verdict == Verdict.VIOLATION
    assert check(history).verdict == Verdict.PASS


def test_who_read_zero_precedes_all_increments_and_who_read_the_sum_follows_them() -> None:
    result = check(overlapping([inc("x"), inc("y")], [read("x", 1), read("y", 0)]))
    assert result.verdict == Verdict.VIOLATION
    assert "T2 read 1 from x, all that T1 and others can have added" in result.sentence
    assert "T2 read 0 from y, to which T1 added" in result.sentence
    result = check(successive([inc("x")], [read("x", 0)]), "strict-serializable")
    assert set(result.detail["anomalies"]) == {"G-single-item-realtime"}


def test_many_readers_of_many_values_cost_no_square() -> None:
    incs = [[inc("x")] for _ in range(300)]
    reads = [[read("x", value)] for value in (0, 150, 300) for _ in range(300)]
    result = check(overlapping(*incs, *reads))
    assert result.verdict == Verdict.PASS
    assert result.detail["edges"]["wr"] < 2_000
    assert result.detail["edges"]["rw"] < 2_000


def test_histories_that_cannot_be_judged_are_errors_that_name_their_row() -> None:
    for amount in (0, -1, True, "2"):
        with pytest.raises(UsageError, match=r"row 0 increments 'x' by .*, which is no positive integer"):
            check(overlapping([inc("x", amount)]))
    with pytest.raises(UsageError, match="row 0 read '1.5' from 'x', which is no integer"):
        check(overlapping([read("x", 1.5)]))


def test_the_checker_is_found_by_its_name() -> None:
    history = overlapping([inc("x")], [read("x", 1)])
    assert CHECKERS["txn-counter"]().check(history).verdict == Verdict.PASS
    assert check_transactions(history, "txn-counter", "read-committed").verdict == Verdict.PASS
