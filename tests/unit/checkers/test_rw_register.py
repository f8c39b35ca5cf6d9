"""Register histories get the verdict that they deserve, from each source of version order."""

from __future__ import annotations

from typing import Any

import pytest
from transaction_histories import concurrent, one_after_another

from faultline.checkers.transactions.checker import RwRegisterChecker, check_transactions
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import ok
from faultline.harness.verdict import CheckResult, Verdict


def check(history: History, model: str = "strict-serializable", **options: Any) -> CheckResult:
    return RwRegisterChecker(model, **options).check(history)


def test_a_serial_history_passes_every_model() -> None:
    history = one_after_another("rx- wx1", "rx1 wx2 ry-", "wy1", "rx2 ry1", "rx2 wx3 rx3")
    for model in ("strict-serializable", "serializable", "snapshot-isolation", "read-committed"):
        assert check(history, model).verdict == Verdict.PASS


def test_seeing_each_other_is_circular_information_flow() -> None:
    result = check(concurrent("wx1 ry1", "wy1 rx1"), "read-committed")
    assert result.verdict == Verdict.VIOLATION
    assert result.detail["anomalies"] == {"G1c": 1}


def test_the_unset_version_comes_before_all_writes() -> None:
    history = concurrent("wx1 wy1", "rx1 ry-")
    result = check(history, "serializable")
    assert {"G-single-item", "fractured-read", "G-monotonic", "G-update"} == set(result.detail["anomalies"])
    cycle = next(finding for finding in result.findings if finding.anomaly == "G-single-item")
    assert "read nothing from y, before T1 wrote 1 there (every key is unset at first)" in cycle.sentence


def test_writes_follow_the_reads_of_their_transaction() -> None:
    history = concurrent("wx1", "rx1 wx2 wy1", "rx1 ry1")
    result = check(history, "serializable")
    assert "G-single-item" in result.detail["anomalies"]
    assert "the writer of 2 had read 1" in result.sentence
    without = check(history, "serializable", writes_follow_reads=False)
    assert without.detail["anomalies"] == {}
    assert [finding.anomaly for finding in without.findings] == ["fractured-read"]  # the search needs no such source


def test_write_skew_is_found_and_allowed_by_snapshot_isolation() -> None:
    history = concurrent("rx- wy1", "ry- wx1", "rx1 ry1")
    assert check(history, "snapshot-isolation").verdict == Verdict.PASS
    assert set(check(history, "serializable").detail["anomalies"]) == {"G2-item", "write-skew", "G-update"}


def test_an_update_is_lost_when_two_overwrite_what_both_read() -> None:
    for history in (concurrent("rx- wx1", "rx- wx2"), concurrent("wx1", "rx1 wx2", "rx1 wx3")):
        result = check(history, "snapshot-isolation")
        assert result.verdict == Verdict.VIOLATION
        assert "lost-update" in result.detail["anomalies"]


def test_a_stale_read_is_found_through_the_order_of_real_time() -> None:
    history = one_after_another("wx1", "wx2", "rx1")
    result = check(history)
    assert result.verdict == Verdict.VIOLATION
    assert set(result.detail["anomalies"]) == {"cyclic-versions-realtime"}
    assert "serializable" not in (*result.detail["not"], *result.detail["also_not"])
    assert check(history, "serializable").verdict == Verdict.PASS


def test_versions_that_go_forth_and_back_have_no_order_in_real_time() -> None:
    history = one_after_another("wx1", "wx2", "rx2", "rx1", "rx2")
    result = check(history)
    assert "cyclic-versions-realtime" in result.detail["anomalies"]
    assert "serializable" not in (*result.detail["not"], *result.detail["also_not"])


def test_the_store_may_say_how_it_ordered_its_versions() -> None:
    history = concurrent("wx1 wy1", "wx2 wy2", "rx1 ry1")
    assert check(history, "read-uncommitted").verdict == Verdict.PASS
    orders = {"x": [1, 2], "y": [2, 1]}
    result = check(history, "read-uncommitted", version_orders=orders)
    assert result.verdict == Verdict.VIOLATION
    assert result.detail["anomalies"]["G0"] == 1
    assert "the store says so" in result.sentence


def test_an_order_of_the_store_that_contradicts_itself_is_reported() -> None:
    result = check(concurrent("wx1", "wx2", "rx1"), "serializable", version_orders={"x": [1, 2, 1]})
    assert "cyclic-versions" in result.detail["anomalies"]


def test_one_process_that_sees_an_older_version_later_breaks_its_session() -> None:
    history = concurrent("wx1", "rx1 wx2")
    for body in ([["r", "x", 2]], [["r", "x", 1]]):
        row = history.invoke(Operation(9, "txn", None, body), history.next_index, 9, "")
        history.complete(row, ok(body), history.next_index)
    assert check(history, "strong-session-serializable").verdict == Verdict.VIOLATION
    assert check(history, "serializable").verdict == Verdict.PASS


def test_a_write_of_an_unknown_transaction_counts_once_it_was_read() -> None:
    seen = concurrent("info:wx1 wy1", "rx1 ry-")
    assert check(seen, "serializable").verdict == Verdict.VIOLATION
    unseen = concurrent("info:wx1 wy1", "rx- ry-")
    assert check(unseen, "serializable").verdict != Verdict.VIOLATION


@pytest.mark.parametrize(
    ("transactions", "anomaly"),
    [
        (("fail:wx1", "rx1"), "G1a"),
        (("fail:wx1", "rx1 wx2"), "dirty-update"),
        (("wx1 wx2", "rx1"), "G1b"),
        (("wx1 rx2", "wx2"), "internal"),
        (("rx- rx1", "wx1"), "internal"),
        (("rx1 wx1",), "future-read"),
        (("wx1", "rx7"), "garbage-read"),
    ],
)
def test_anomalies_that_need_no_cycle(transactions: tuple[str, ...], anomaly: str) -> None:
    result = check(concurrent(*transactions), "serializable")
    assert anomaly in result.detail["anomalies"]
    assert result.verdict == Verdict.VIOLATION
    assert next(finding for finding in result.findings if finding.anomaly == anomaly).key == "x"


def test_a_value_that_is_written_twice_is_an_error_that_names_both_rows() -> None:
    with pytest.raises(UsageError, match="row 1 writes 1 to 'x', which row 0 writes already"):
        check(concurrent("wx1", "wx1"))
    with pytest.raises(UsageError, match="row 0 writes null to 'x'"):
        check(concurrent("wx-"))


def test_many_writers_after_one_version_cost_no_square() -> None:
    history = concurrent("wx1", *(f"rx1 wx{number}" for number in range(2, 200)))
    result = check(history, "serializable")
    assert result.verdict == Verdict.VIOLATION
    assert sum(result.detail["edges"].values()) < 1_000
    assert check_transactions(history, "rw-register", "read-committed").verdict == Verdict.PASS
