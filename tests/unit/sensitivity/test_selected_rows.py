"""Anomalies of selections by a condition: each is a violation where its history, unchanged, is none."""

from __future__ import annotations

from typing import Any

import pytest
from told_histories import FAULT, record_of

from faultline.checkers.transactions.checker import ClosedPredicateChecker
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome
from faultline.harness.run_record import RunRecord
from faultline.harness.sensitivity import Anomaly, changed_record
from faultline.harness.verdict import Verdict
from faultline.sensitivity.selected_rows import selected_rows

_BOTH = {"a": 3, "b": 5}


def doctors() -> RunRecord:
    """Two rows are made, a fault begins, and both rows are selected twice."""
    made = [["insert", "a", 3], ["insert", "b", 5]]
    looks = [["rp", ["mod", 2, 1], _BOTH], ["rp", "true", _BOTH]]
    asked = [[*step[:2], None] for step in looks]
    return record_of((1, "txn", "t0", made, made), FAULT, (2, "txn", "t0", asked, looks))


def overlapping_doctors() -> RunRecord:
    """One doctor signs off while the other looks, sees it, and signs off as well."""
    record = doctors()
    history = record.history
    steps = [[["rp", "true", _BOTH], ["w", "a", 6]], [["rp", "true", {**_BOTH, "a": 6}], ["w", "b", 8]]]
    asked = [[["rp", "true", None], write] for _, write in steps]
    rows = [
        history.invoke(Operation(3 + each, "txn", "t0", value), 9_000 + each, 3 + each, "athens")
        for each, value in enumerate(asked)
    ]
    for row, answer in zip(rows, steps, strict=True):
        history.complete(row, Outcome("ok", answer, None), 9_100 + row)
    return record


def anomaly(name: str, record: RunRecord) -> Anomaly:
    return next(each for each in selected_rows(record) if each.name == name)


def verdict(record: RunRecord) -> Verdict:
    return ClosedPredicateChecker().check(record.history).verdict


@pytest.mark.parametrize("name", ["lost-write", "stale-read", "phantom", "fractured-read", "write-skew"])
def test_each_anomaly_is_shown_in_a_history_that_passes_without_it(name: str) -> None:
    record = overlapping_doctors() if name == "write-skew" else doctors()
    assert verdict(record) is Verdict.PASS
    found = anomaly(name, record)
    made = [insertion for place in found.places if (insertion := found.insert(place, 0)) is not None]
    assert made
    for insertion in made:
        assert verdict(changed_record(record, insertion)) is Verdict.VIOLATION, insertion


def test_a_phantom_is_missing_from_the_first_of_two_answers_only() -> None:
    record = doctors()
    found = anomaly("phantom", record)
    answers: list[Any] = [
        insertion.changes[1].result for place in found.places if (insertion := found.insert(place, 0)) is not None
    ]
    assert [[sorted(step[2]) for step in steps] for steps in answers] == [[["b"], ["a", "b"]], [["a"], ["a", "b"]]]


def test_nothing_is_inserted_where_no_row_was_selected() -> None:
    record = record_of((1, "txn", "t0", [["rp", "true", None]], [["rp", "true", {}]]))
    assert all(not list(each.places) for each in selected_rows(record))
