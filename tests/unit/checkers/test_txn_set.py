"""Transactions on grow-only sets get the verdict that they deserve."""

from __future__ import annotations

from typing import Any

import pytest
from transaction_bodies import overlapping, successive

from faultline.checkers import CHECKERS
from faultline.checkers.transactions.checker import SetTransactionsChecker, check_transactions
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.verdict import CheckResult, Verdict


def add(key: str, element: Any) -> list[Any]:
    return ["add", key, element]


def read(key: str, *elements: Any) -> list[Any]:
    return ["r", key, list(elements)]


def check(history: History, model: str = "serializable") -> CheckResult:
    return SetTransactionsChecker(model).check(history)


def test_a_serial_history_passes_every_model_in_whatever_order_elements_are_returned() -> None:
    history = successive(
        [["r", "x", None], add("x", 1), add("x", 2), read("x", 2, 1)],
        [read("x", 2, 1), add("y", "a")],
        [read("y", "a"), add("x", 3), read("x", 3, 1, 2)],
    )
    for model in ("strict-serializable", "serializable", "snapshot-isolation", "read-committed"):
        assert check(history, model).verdict == Verdict.PASS


@pytest.mark.parametrize(
    ("transactions", "anomaly"),
    [
        (([add("x", 1)], [read("x", 1, 7)]), "garbage-read"),
        ((("fail", [add("x", 1)]), [read("x", 1)]), "G1a"),
        (([add("x", 1), add("x", 2)], [read("x", 1)]), "G1b"),
        (([add("x", 1), read("x")],), "internal"),
        (([read("x"), read("x", 1)], [add("x", 1)]), "internal"),
        (([read("x", 1), add("x", 1)],), "future-read"),
        (([add("x", 1)], [read("x", 1, 1)]), "duplicate-elements"),
    ],
)
def test_anomalies_that_need_no_cycle(transactions: tuple[Any, ...], anomaly: str) -> None:
    result = check(overlapping(*transactions))
    assert result.verdict == Verdict.VIOLATION
    finding = next(finding for finding in result.findings if finding.anomaly == anomaly)
    assert finding.key == "x"


def test_what_a_transaction_did_itself_is_neither_garbage_nor_missed() -> None:
    result = check(overlapping([read("x"), add("x", 1), read("x", 1), add("x", 2), read("x", 1, 2)], [read("x", 1, 2)]))
    assert (result.verdict, result.detail["anomalies"]) == (Verdict.PASS, {})


def test_seeing_each_other_is_circular_information_flow() -> None:
    result = check(overlapping([add("x", 1), read("y", 2)], [add("y", 2), read("x", 1)]), "read-committed")
    assert result.verdict == Verdict.VIOLATION
    assert result.detail["anomalies"] == {"G1c": 1}
    assert "T2 read 1 in x, which T1 had added" in result.sentence


def test_seeing_half_of_a_transaction_is_read_skew() -> None:
    history = overlapping([add("x", 1), add("y", 2)], [read("x", 1), read("y")])
    result = check(history, "snapshot-isolation")
    assert result.verdict == Verdict.VIOLATION
    assert {"G-single-item", "fractured-read"} <= set(result.detail["anomalies"])
    cycle = next(finding for finding in result.findings if finding.anomaly == "G-single-item")
    assert "T2 read y without 2, which T1 added, and nothing is ever removed" in cycle.sentence
    assert check(history, "read-committed").verdict == Verdict.PASS


def test_write_skew_is_found_and_allowed_by_snapshot_isolation() -> None:
    history = overlapping([read("x"), add("y", 1)], [read("y"), add("x", 1)])
    assert "G2-item" in check(history).detail["anomalies"]
    assert check(history).verdict == Verdict.VIOLATION
    assert check(history, "snapshot-isolation").verdict == Verdict.PASS


def test_two_readers_that_disagree_about_what_came_first_break_snapshots() -> None:
    history = overlapping([add("x", 1)], [add("y", 1)], [read("x", 1), read("y")], [read("x"), read("y", 1)])
    result = check(history, "snapshot-isolation")
    assert result.verdict == Verdict.VIOLATION
    assert "G-nonadjacent-item" in result.detail["anomalies"]


def test_a_stale_read_breaks_real_time_only() -> None:
    history = successive([add("x", 1)], [read("x")])
    result = check(history, "strict-serializable")
    assert result.verdict == Verdict.VIOLATION
    assert set(result.detail["anomalies"]) == {"G-single-item-realtime"}
    assert check(history).verdict == Verdict.PASS


def test_an_unknown_transaction_counts_altogether_once_one_element_was_seen() -> None:
    unknown = ("info", [add("x", 1), add("y", 2)])
    assert check(overlapping(unknown, [read("x", 1), read("y")])).verdict == Verdict.VIOLATION
    assert check(overlapping(unknown, [read("x"), read("y")])).verdict != Verdict.VIOLATION


def test_histories_that_cannot_be_judged_are_errors_that_name_their_row() -> None:
    with pytest.raises(UsageError, match="row 1 adds 1 to 'x', which row 0 adds already"):
        check(overlapping([add("x", 1)], [add("x", 1)]))
    with pytest.raises(UsageError, match="row 0 read '3' from 'x', which is no list"):
        check(overlapping([["r", "x", 3]]))


def test_the_checker_is_found_by_its_name() -> None:
    history = overlapping([add("x", 1)], [read("x", 1)])
    assert CHECKERS["txn-set"]().check(history).verdict == Verdict.PASS
    assert check_transactions(history, "txn-set", "read-committed").verdict == Verdict.PASS


def test_without_any_dependency_nothing_was_tested() -> None:
    assert check(overlapping([add("x", 1)], [add("x", 2)])).verdict == Verdict.VACUOUS
