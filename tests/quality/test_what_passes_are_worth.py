"""The anomalies that a pass of a shipped workload would have shown, as docs/reference/generated/workloads.md says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import workload_sensitivity as measured

from faultline.registry import workloads

ENOUGH = 0.8
RECORDS = measured.read_records()


def test_every_shipped_workload_was_measured() -> None:
    shipped = {name for name, path in workloads().items() if path.startswith("faultline.")}
    assert set(RECORDS) == shipped
    assert all(record.passes >= 15 for record in RECORDS.values())


def test_each_anomaly_that_is_shown_less_than_four_times_in_five_has_its_reason_and_no_other_has_one() -> None:
    weak = {
        (name, figure.anomaly)
        for name, record in RECORDS.items()
        for figure in record.figures
        if figure.shown < ENOUGH * figure.inserted
    }
    assert weak == set(measured.LIMITS)


def test_each_anomaly_of_a_workload_was_inserted() -> None:
    assert [(name, each) for name, record in RECORDS.items() for each in record.figures if not each.inserted] == []


@pytest.mark.slow
@pytest.mark.parametrize("workload", ["register", "booking", "queue"])
def test_the_recorded_figures_are_those_that_this_code_has(workload: str) -> None:
    assert measured.measured(workload) == RECORDS[workload]
