"""List-append histories get the verdict that they deserve, and their anomalies the right names."""

from __future__ import annotations

import pytest
from transaction_histories import concurrent, one_after_another

from faultline.checkers.transactions.checker import ListAppendChecker, check_transactions
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import ok
from faultline.harness.verdict import CheckResult, Verdict


def check(history: History, model: str = "strict-serializable", steps: int = 100_000) -> CheckResult:
    return ListAppendChecker(model, steps).check(history)


def anomalies(history: History, model: str = "strict-serializable") -> dict[str, int]:
    return check(history, model).detail["anomalies"]


def test_a_serial_history_passes_every_model() -> None:
    history = one_after_another("ax1", "rx[1] ay1", "ax2 ry[1]", "rx[1,2] ry[1]")
    for model in ("strict-serializable", "serializable", "snapshot-isolation", "read-committed"):
        assert check(history, model).verdict == Verdict.PASS


def test_two_lists_appended_in_opposite_orders_are_a_write_cycle() -> None:
    result = check(concurrent("ax1 ay1", "ax2 ay2", "rx[1,2] ry[2,1]"), "read-uncommitted")
    assert result.verdict == Verdict.VIOLATION
    assert "G0" in result.detail["anomalies"]
    assert result.findings[0].operations == (0, 1)


def test_seeing_each_other_is_circular_information_flow() -> None:
    history = concurrent("ax1 ry[1]", "ay1 rx[1]")
    assert anomalies(history)["G1c"] == 1
    assert check(history, "read-committed").verdict == Verdict.VIOLATION
    assert check(history, "read-uncommitted").verdict == Verdict.PASS


def test_seeing_half_of_a_transaction_is_read_skew_and_a_fractured_read() -> None:
    history = concurrent("ax1 ay1", "rx[1] ry-", "rx[1] ry[1]")
    found = anomalies(history)
    assert found["G-single-item"] == 1
    assert found["fractured-read"] == 1
    assert found["G-monotonic"] == 1
    assert check(history, "snapshot-isolation").verdict == Verdict.VIOLATION
    assert check(history, "read-committed").verdict == Verdict.PASS


def test_a_read_that_missed_something_before_it_saw_the_rest_is_not_non_monotonic() -> None:
    found = anomalies(concurrent("ax1 ay1", "ry- rx[1]", "rx[1] ry[1]"))
    assert "fractured-read" in found and "G-monotonic" not in found


def test_write_skew_is_allowed_by_snapshot_isolation_and_told() -> None:
    history = concurrent("rx- ay1", "ry- ax1", "rx[1] ry[1]")
    result = check(history, "snapshot-isolation")
    assert result.verdict == Verdict.PASS
    assert {entry["anomaly"] for entry in result.detail["allowed"]} == {"G2-item", "write-skew", "G-update"}
    assert not result.findings
    assert check(history, "serializable").verdict == Verdict.VIOLATION


def test_a_long_fork_has_no_single_missed_write_and_still_breaks_snapshot_isolation() -> None:
    history = concurrent("ax1", "ay1", "rx[1] ry-", "rx- ry[1]")
    assert anomalies(history, "serializable").keys() == {"G-nonadjacent-item"}
    assert check(history, "snapshot-isolation").verdict == Verdict.VIOLATION
    assert check(history, "consistent-view").verdict == Verdict.PASS


def test_a_stale_read_is_only_an_anomaly_in_real_time() -> None:
    history = one_after_another("ax1", "rx-", "rx[1]")
    assert check(history, "serializable").verdict == Verdict.PASS
    result = check(history)
    assert result.detail["anomalies"] == {"G-single-item-realtime": 1}
    assert "had completed" in result.findings[0].sentence


def test_forgetting_ones_own_write_is_a_process_anomaly() -> None:
    history = one_after_another("p1:ax1", "p1:rx-", "p2:rx[1]")
    result = check(history, "strong-session-serializable")
    assert result.detail["anomalies"] == {"G-single-item-process": 1}
    assert result.verdict == Verdict.VIOLATION
    other = one_after_another("p1:ax1", "p2:rx-", "p2:rx[1]")
    assert check(other, "strong-session-serializable").verdict == Verdict.PASS


def test_two_who_read_the_same_version_and_append_lose_an_update_even_unread() -> None:
    result = check(concurrent("rx- ax1", "rx- ax2"), "snapshot-isolation")
    assert "lost-update" in result.detail["anomalies"]
    assert result.verdict == Verdict.VIOLATION


def test_one_who_reads_the_last_version_and_appends_unread_is_no_cycle_with_itself() -> None:
    history = concurrent("rx- ax1", "rx-", "rx-", "ax2", "ax3")
    assert check(history, "serializable").verdict == Verdict.PASS


def test_an_unread_append_still_counts_as_a_write_that_readers_missed() -> None:
    history = one_after_another("ax1", "rx-")
    assert anomalies(history) == {"G-single-item-realtime": 1}


def test_a_list_that_never_shows_any_append_costs_no_square() -> None:
    history = one_after_another(*([f"ax{number}" for number in range(300)] + ["rx-"] * 300))
    result = check(history)
    assert result.verdict == Verdict.VIOLATION
    assert result.detail["edges"]["hubs"] == 1
    assert result.detail["edges"]["rw"] == 300


@pytest.mark.parametrize(
    ("transactions", "anomaly"),
    [
        (("fail:ax1", "rx[1]"), "G1a"),
        (("fail:ax1", "ax2", "rx[1,2]"), "dirty-update"),
        (("ax1 ax2", "rx[1]", "rx[1,2]"), "G1b"),
        (("ax1 ax2", "rx[2,1]"), "incompatible-order"),
        (("ax1 ax2", "rx[2]"), "incompatible-order"),
        (("ax1 rx-", "rx[1]"), "internal"),
        (("ax1 rx- ax2",), "internal"),
        (("rx- rx[1]", "ax1"), "internal"),
        (("ax1 rx[1,2]", "ax2"), "internal"),
        (("rx[1] ax1",), "future-read"),
        (("ax1", "rx[1,7]"), "garbage-read"),
        (("ax1", "rx[1,1]"), "duplicate-elements"),
        (("ax1", "ax2", "rx[1]", "rx[2]"), "incompatible-order"),
        (("ax1", "ax2", "ax3", "rx[1,2,3]", "rx[2,1]"), "incompatible-order"),
    ],
)
def test_anomalies_that_need_no_cycle(transactions: tuple[str, ...], anomaly: str) -> None:
    result = check(concurrent(*transactions), "serializable")
    assert anomaly in result.detail["anomalies"]
    assert result.verdict == Verdict.VIOLATION
    finding = next(finding for finding in result.findings if finding.anomaly == anomaly)
    assert "x" in finding.sentence and finding.operations and finding.key == "x"


@pytest.mark.parametrize(
    "transactions",
    [
        ("info:ax1", "rx[1]"),
        ("fail:ax1", "rx-"),
        ("ax1 ax2 rx[1,2]", "rx[1,2]", "rx-"),
        ("rx- ax1 rx[1] ax2 rx[1,2]", "rx[1,2]"),
        ("ax1", "rx[1] ax2 rx[1,2]", "rx[1,2]"),
        ("info:ax1 rx-", "ay1 ry[1]", "ry[1]"),
    ],
)
def test_histories_that_must_not_be_accused(transactions: tuple[str, ...]) -> None:
    assert check(concurrent(*transactions)).verdict != Verdict.VIOLATION


def test_an_append_by_an_unknown_transaction_has_no_completion_to_hold_against_it() -> None:
    history = one_after_another("info:ax1", "rx-", "rx[1]")
    assert check(history).verdict == Verdict.PASS


def test_an_unknown_transaction_of_which_one_append_was_read_appended_everything() -> None:
    assert check(concurrent("info:ax1 ay1", "rx[1] ry-"), "serializable").verdict == Verdict.VIOLATION
    assert check(concurrent("info:ax1 ay1", "rx- ry-"), "serializable").verdict != Verdict.VIOLATION


def test_a_history_without_any_dependency_tested_nothing() -> None:
    assert check(one_after_another("ax1", "ay2")).verdict == Verdict.VACUOUS
    assert check(History()).verdict == Verdict.VACUOUS


def test_the_sentence_leads_from_edge_to_edge_to_the_contradiction() -> None:
    result = check(concurrent("ax1 ay1", "rx[1] ry-", "rx[1] ry[1]"), "consistent-view")
    cycle = next(finding for finding in result.findings if finding.anomaly == "G-single-item")
    assert "T2 read [1] from x, the last element of which T1 had appended; so T1 comes before T2" in cycle.sentence
    assert "however, T2 read [] from y, before T1 appended 1: a contradiction" in cycle.sentence
    assert [edge["kind"] for edge in cycle.detail["edges"]] == ["wr", "rw"]
    assert [entry["row"] for entry in cycle.detail["transactions"]] == [0, 1]
    assert cycle.detail["transactions"][1]["operations"] == [["r", "x", [1]], ["r", "y", None]]


def test_the_weakest_models_ruled_out_come_first_and_the_stronger_ones_follow() -> None:
    detail = check(concurrent("ax1 ay1", "rx[1] ry-", "rx[1] ry[1]"), "read-committed").detail
    assert detail["not"] == ["monotonic-view", "read-atomic", "repeatable-read"]
    assert {"serializable", "strict-serializable", "snapshot-isolation"} <= set(detail["also_not"])
    assert not set(detail["not"]) & set(detail["also_not"])


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ("ax1", "no list of micro-operations"),
        ([["r", "x"]], "which is not a triple"),
        (["abc"], "which is not a triple"),
        ([["cas", "x", 1]], "neither r nor append"),
        ([["r", "x", 7]], "no list"),
        (None, "no list of micro-operations"),
    ],
)
def test_a_malformed_transaction_is_an_error_with_its_row(body: object, cause: str) -> None:
    history = History()
    row = history.invoke(Operation(0, "txn", None, []), 0, 0, "")
    history.complete(row, ok(body), 1)
    with pytest.raises(UsageError, match=f"row 0.*{cause}"):
        check(history)


def test_an_element_that_is_appended_twice_is_an_error_that_names_both_rows() -> None:
    with pytest.raises(UsageError, match="row 1 appends 1 to 'x', which row 0 appends already"):
        check(concurrent("ax1", "ax1"))


def test_elements_and_keys_may_be_any_json() -> None:
    history = History()
    for body in ([["append", ["k"], {"a": 1}]], [["r", ["k"], [{"a": 1}]]]):
        row = history.invoke(Operation(0, "txn", None, body), history.next_index, 0, "")
        history.complete(row, ok(body), history.next_index)
    assert check(history).verdict == Verdict.PASS


def test_only_known_workloads_and_models_are_checked() -> None:
    with pytest.raises(UsageError, match="no kind of transactions"):
        check_transactions(History(), "trees")
    with pytest.raises(UsageError, match="no consistency model"):
        ListAppendChecker("eventual")
