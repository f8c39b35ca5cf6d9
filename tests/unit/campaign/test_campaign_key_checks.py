"""Checking real histories key by key, from Parquet, gives what checking the whole run gives."""

from __future__ import annotations

from pathlib import Path

from faultline.campaign.collect import CheckedByKey, KeyUnit, check_key
from faultline.campaign.histories import history_table, write_parquet
from faultline.checkers.linearizability.checker import LinearizabilityChecker
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import ok
from faultline.harness.verdict import Verdict


def history_with_a_stale_read() -> History:
    history = History()
    steps = [("a", "write", 1), ("b", "write", 7), ("a", "write", 2), ("a", "read", 1), ("b", "read", 7)]
    for number, (key, f, value) in enumerate(steps):
        argument = value if f == "write" else None
        row = history.invoke(Operation(0, f, key, argument), 1_000 * number, 0, "athens")
        history.complete(row, ok(value if f == "read" else None), 1_000 * number + 500)
    return history


def test_a_key_checked_from_parquet_has_the_verdict_and_the_rows_of_the_whole_history(tmp_path: Path) -> None:
    history, path = history_with_a_stale_read(), tmp_path / "part.parquet"
    write_parquet(path, history_table("run", history))
    checker = LinearizabilityChecker()
    answers = {key: check_key(KeyUnit(str(path), "run", key), checker) for key in ("a", "b")}
    assert [answers[key].verdict for key in ("a", "b")] == [Verdict.VIOLATION, Verdict.PASS]
    whole = checker.check(history)
    merged = CheckedByKey(checker, answers).check(history)
    assert merged == whole
    assert {history.key[row] for row in merged.findings[0].operations} == {"a"}


def test_an_answer_replaces_the_search_and_a_key_without_one_is_searched(tmp_path: Path) -> None:
    history = history_with_a_stale_read()
    checker = LinearizabilityChecker()
    passing = checker.judge_key(history, "b", history.rows_by_key()["b"])
    assert CheckedByKey(checker, {"a": passing}).check(history).verdict is Verdict.PASS
    assert CheckedByKey(checker, {"b": passing}).check(history).verdict is Verdict.VIOLATION
