"""Transactions that ask for all objects under a condition get the verdict that they deserve."""

from __future__ import annotations

from typing import Any

import pytest
from transaction_bodies import overlapping, successive

from faultline.checkers import CHECKERS
from faultline.checkers.transactions.checker import ClosedPredicateChecker, check_transactions
from faultline.checkers.transactions.closed_predicate import UniverseTooLargeError, infer_closed_predicates
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.verdict import Cause, CheckResult, Reason, Verdict

ODD = ["mod", 2, 1]


def insert(key: str, value: Any) -> list[Any]:
    return ["insert", key, value]


def write(key: str, value: Any) -> list[Any]:
    return ["w", key, value]


def delete(key: str) -> list[Any]:
    return ["delete", key]


def ask(condition: Any, **answer: Any) -> list[Any]:
    return ["rp", condition, answer]


def check(history: History, model: str = "serializable", **initial: Any) -> CheckResult:
    return ClosedPredicateChecker(model, initial=initial).check(history)


def test_a_serial_history_passes_every_model() -> None:
    history = successive(
        [ask("true", z=8), insert("x", 1), insert("y", 2), ask(ODD, x=1)],
        [ask("true", x=1, y=2, z=8), write("x", 4), ask(ODD)],
        [ask(["=", 2], y=2), delete("y"), ask("true", x=4, z=8), insert("y", 3)],
        [ask(ODD, y=3), ask(["=", 4], x=4)],
    )
    for model in ("strict-serializable", "serializable", "snapshot-isolation", "read-committed"):
        result = check(history, model, z=8)
        assert (result.verdict, result.detail["anomalies"]) == (Verdict.PASS, {}), result.sentence


@pytest.mark.parametrize(
    ("transactions", "anomaly"),
    [
        (([insert("x", 1)], [ask("true", x=7)]), "garbage-read"),
        (([insert("y", 1)], [ask("true", x=7, y=1)]), "garbage-read"),
        (([insert("x", 1)], [ask(["=", 2], x=1)]), "predicate-mismatch"),
        (([insert("x", 2)], [ask(ODD, x=2)]), "predicate-mismatch"),
        ((("fail", [insert("x", 1)]), [ask("true", x=1)]), "G1a"),
        (([insert("x", 1), write("x", 2)], [ask("true", x=1)]), "G1b"),
        (([insert("x", 1), ask("true")],), "internal"),
        (([insert("x", 1), delete("x"), ask("true", x=1)],), "internal"),
        (([ask("true", x=1), insert("x", 1)],), "future-read"),
        (([ask("true", x=1), write("x", 3)], [ask("true", x=3), write("x", 1)]), "cyclic-versions"),
    ],
)
def test_anomalies_that_need_no_cycle(transactions: tuple[Any, ...], anomaly: str) -> None:
    result = check(overlapping(*transactions))
    assert anomaly in result.detail["anomalies"]
    assert result.verdict == Verdict.VIOLATION
    assert next(finding for finding in result.findings if finding.anomaly == anomaly).key == "x"


def test_an_object_that_always_fulfils_the_condition_must_not_be_missed() -> None:
    history = overlapping([write("x", 3)], [ask(ODD)])
    result = check(history, x=1)
    assert result.detail["anomalies"] == {"predicate-read-miss": 1}
    assert result.verdict == Verdict.VIOLATION
    assert check(history, "snapshot-isolation", x=1).verdict == Verdict.PASS
    assert check(history, x=2).verdict == Verdict.PASS
    assert check(overlapping([write("x", 3), delete("x")], [ask(ODD)]), x=1).verdict == Verdict.PASS


def test_an_answer_that_lacks_one_of_two_objects_written_together_is_read_skew() -> None:
    history = overlapping([insert("x", 1), insert("y", 3)], [ask(ODD, x=1)])
    result = check(history, "snapshot-isolation")
    assert result.verdict == Verdict.VIOLATION
    assert {"G-single"} <= set(result.detail["anomalies"])
    assert "G-single-item" not in result.detail["anomalies"]
    assert "T2 asked for objects where mod 2 1 and did not find y, before T1 had written 3 to y" in result.sentence
    assert check(history, "repeatable-read").verdict == Verdict.PASS
    cycle = next(finding for finding in result.findings if finding.anomaly == "G-single")
    assert {edge["kind"] for edge in cycle.detail["edges"]} == {"wr", "predicate-rw"}


def test_an_object_that_the_condition_does_not_concern_may_be_absent() -> None:
    assert check(overlapping([insert("x", 1), insert("y", 2)], [ask(ODD, x=1)])).verdict == Verdict.PASS


def test_a_bound_selects_integers_above_it() -> None:
    assert check(successive([insert("x", 3), insert("y", 7)], [ask([">", 3], y=7)])).verdict == Verdict.PASS
    result = check(overlapping([insert("x", 3)], [ask([">", 3], x=3)]))
    assert "predicate-mismatch" in result.detail["anomalies"]


def test_objects_of_two_tables_have_nothing_to_do_with_each_other() -> None:
    history = successive([insert("x", 1)], [ask("true")])
    assert check(history, "strict-serializable").verdict == Verdict.VIOLATION
    history.key[:] = ["shop", "stock"]
    assert check(history, "strict-serializable").verdict == Verdict.VACUOUS
    history.key[:] = ["shop", "shop"]
    result = check(history, "strict-serializable")
    assert result.verdict == Verdict.VIOLATION
    assert "objects where true in shop and did not find shop/x" in result.sentence


def test_two_phantoms_are_write_skew_over_conditions() -> None:
    history = overlapping([ask("true"), insert("x", 1)], [ask("true"), insert("y", 1)])
    result = check(history)
    assert result.verdict == Verdict.VIOLATION
    assert "G2" in result.detail["anomalies"]
    for weaker in ("snapshot-isolation", "repeatable-read"):
        assert check(history, weaker).verdict == Verdict.PASS


def test_absence_shows_who_deleted_an_object() -> None:
    history = overlapping([delete("x"), ask("true", y=5)], [delete("y"), ask("true")])
    result = check(history, "read-committed", x=1, y=5)
    assert (result.verdict, result.detail["anomalies"]) == (Verdict.PASS, {})
    history = overlapping([delete("x"), ask("true")], [delete("y"), ask("true")])
    result = check(history, "read-committed", x=1, y=5)
    assert result.detail["anomalies"] == {"G1c": 1}
    assert "without x after T1 had deleted x" in result.sentence


def test_who_overwrites_what_it_saw_comes_later() -> None:
    history = overlapping([insert("x", 1)], [ask("true", x=1), write("x", 2), insert("y", 4)], [ask("true", x=1, y=4)])
    result = check(history)
    assert "G-single-item" in result.detail["anomalies"]
    cycle = next(finding for finding in result.findings if finding.anomaly == "G-single-item")
    assert "asked for objects where true and read 1 of x, before T1 had written 2 to x" in cycle.sentence


def test_a_stale_answer_breaks_real_time_only() -> None:
    history = successive([insert("x", 1)], [ask("true")])
    assert set(check(history, "strict-serializable").detail["anomalies"]) == {"G-single-realtime"}
    assert check(history).verdict == Verdict.PASS


def test_versions_in_no_known_order_accuse_no_transaction() -> None:
    history = overlapping([insert("x", 1)], [delete("x")], [ask("true")], [ask("true", x=1)], [ask("true")])
    assert check(history).verdict == Verdict.PASS


def test_an_unknown_transaction_counts_once_it_was_seen() -> None:
    unknown = ("info", [insert("x", 1), insert("y", 3)])
    assert check(overlapping(unknown, [ask("true", x=1)])).verdict == Verdict.VIOLATION
    assert check(overlapping(unknown, [ask("true")])).verdict == Verdict.VACUOUS


@pytest.mark.parametrize(
    ("micro", "message"),
    [
        (["delete", 1], "is not insert, w, delete or rp"),
        (["insert", "x", None], "is not insert, w, delete or rp"),
        (["r", "x", 1], "is not insert, w, delete or rp"),
        (["rp", ["<", 3], {}], "not a known condition"),
        (["rp", ["mod", 0, 0], {}], "not a known condition"),
        (["rp", "true", [1]], "is not insert, w, delete or rp"),
    ],
)
def test_what_is_not_understood_is_an_error_that_names_its_row(micro: list[Any], message: str) -> None:
    with pytest.raises(UsageError, match=f"row 1 .*{message}"):
        check(overlapping([ask("true")], [micro]))


def test_a_value_that_is_written_twice_is_an_error() -> None:
    with pytest.raises(UsageError, match="row 1 writes '1' to 'x'"):
        check(overlapping([insert("x", 1)], [insert("x", 1)]))
    with pytest.raises(UsageError, match="row 0 writes '1' to 'x'"):
        check(overlapping([insert("x", 1)]), x=1)


def test_a_universe_that_is_too_large_is_left_undecided() -> None:
    with pytest.raises(UniverseTooLargeError, match="1 predicate reads of 2 versions"):
        infer_closed_predicates(overlapping([insert("x", 1)], [ask("true")]), {}, comparisons=1)
    many = [[insert("x", number)] for number in range(2_100)]
    result = check(overlapping(*many, *([ask(["=", 1])] for _ in range(2_000))))
    assert result.verdict == Verdict.UNKNOWN
    assert result.reason == Reason(cause=Cause.SIZE)
    assert "2000 predicate reads of 2101 versions are too many" in result.sentence


def test_the_checker_is_found_by_its_name() -> None:
    history = overlapping([insert("x", 1)], [ask("true", x=1)])
    assert CHECKERS["closed-predicate"]().check(history).verdict == Verdict.PASS
    assert check_transactions(history, "closed-predicate", "read-committed", initial={}).verdict == Verdict.PASS
