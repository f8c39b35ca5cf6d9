"""An anomaly inserted into a passed run of any workload changes answers alone, and is judged as a history is."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from faultline.harness.history import History
from faultline.harness.parts import Parts
from faultline.harness.plan import Plan
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.run_record import RunRecord
from faultline.harness.sensitivity import Anomaly, Insertion, changed_record, probe
from faultline.harness.verdict import Verdict
from faultline.registry import anomalies_of, checkers_of, load_workload, resolve, workloads

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import workload_sensitivity

REQUESTS = ("process", "worker", "node", "f", "key", "value")
TIMES = ("invoke_us", "complete_us", "invoke_index", "complete_index")
WORKLOADS = sorted(workload_sensitivity.SYSTEMS)
pytestmark = pytest.mark.slow


@cache
def run_of(workload: str, seed: int) -> RunRecord:
    system, options = workload_sensitivity.SYSTEMS[workload]
    if not system:
        return workload_sensitivity.queue_run(seed)
    request = RunRequest(system=system, workload=workload, faults=("durability",), seed=seed, options=dict(options))
    parts: Parts = resolve(request)
    plan: Plan = make_plan(request, parts)
    return run_simulated(plan, parts)


@cache
def anomalies(workload: str, seed: int) -> tuple[Anomaly, ...]:
    find = anomalies_of(load_workload(workload))
    assert find is not None
    return tuple(find(run_of(workload, seed)))


def insertion_of(workload: str, seed: int, place: int, chance: int) -> tuple[str, Insertion] | None:
    """One of the insertions that the run allows, by its anomaly."""
    found = [anomaly for anomaly in anomalies(workload, seed) if anomaly.places]
    anomaly = found[chance % len(found)]
    insertion = anomaly.insert(anomaly.places[place % len(anomaly.places)], chance)
    return None if insertion is None else (anomaly.name, insertion)


def is_refused(workload: str, record: RunRecord, history: History) -> bool:
    judges = [each for each in checkers_of(load_workload(workload)) if not getattr(each, "judges_the_test", False)]
    return any(checker.check(history, record).verdict is Verdict.VIOLATION for checker in judges)


def test_every_shipped_workload_has_anomalies() -> None:
    shipped = {name for name, path in workloads().items() if path.startswith("faultline.")}
    assert shipped == set(WORKLOADS)
    assert all(anomalies_of(load_workload(name)) is not None for name in WORKLOADS)


@pytest.mark.parametrize("workload", WORKLOADS)
@settings(max_examples=15)
@given(seed=st.integers(0, 3), place=st.integers(0, 10_000), chance=st.integers(0, 2**64 - 1))
@example(seed=3, place=4, chance=0)
def test_an_insertion_changes_answers_of_its_own_rows_and_nothing_else(
    workload: str, seed: int, place: int, chance: int
) -> None:
    made = insertion_of(workload, seed, place, chance)
    if made is None:
        return
    _, insertion = made
    record = run_of(workload, seed)
    before, after = record.history, changed_record(record, insertion).history
    assert set(insertion.changes) <= set(insertion.rows)
    for name in REQUESTS + TIMES:
        assert getattr(after, name) == [getattr(before, name)[row] for row in insertion.rows]
    assert after.faults == before.faults
    for place_in_part, row in enumerate(insertion.rows):
        told = (after.outcome[place_in_part], after.result[place_in_part], after.error[place_in_part])
        was = (before.outcome[row], before.result[row], before.error[row])
        assert (told != was) == (row in insertion.changes)
        assert row not in insertion.changes or before.outcome[row] != "info"


@pytest.mark.parametrize("workload", WORKLOADS)
@settings(max_examples=15)
@given(seed=st.integers(0, 3), place=st.integers(0, 10_000), chance=st.integers(0, 2**64 - 1))
def test_the_rows_of_an_insertion_as_they_were_are_never_refused(
    workload: str, seed: int, place: int, chance: int
) -> None:
    made = insertion_of(workload, seed, place, chance)
    if made is None:
        return
    record = run_of(workload, seed)
    part = changed_record(record, Insertion({}, made[1].rows))
    assert not is_refused(workload, part, part.history)


@pytest.mark.parametrize("workload", WORKLOADS)
@settings(max_examples=12)
@given(seed=st.integers(0, 3), place=st.integers(0, 10_000), chance=st.integers(0, 2**64 - 1))
def test_the_rows_of_an_insertion_tell_as_much_as_the_whole_history(
    workload: str, seed: int, place: int, chance: int
) -> None:
    made = insertion_of(workload, seed, place, chance)
    if made is None:
        return
    record, insertion = run_of(workload, seed), made[1]
    part = changed_record(record, insertion)
    whole = changed_record(record, Insertion(insertion.changes, range(len(record.history))))
    assert is_refused(workload, part, part.history) == is_refused(workload, whole, whole.history)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_probe_says_the_same_twice_and_leaves_the_run_as_it_was(workload: str) -> None:
    record, found = run_of(workload, 1), load_workload(workload)
    digest = record.history.digest()
    figures = probe(record, checkers_of(found), anomalies_of(found))
    assert figures == probe(record, checkers_of(found), anomalies_of(found))
    assert record.history.digest() == digest
    assert all(0 <= each.shown <= each.inserted for each in figures)
    assert all(each.inserted or each.limit for each in figures)


@pytest.mark.parametrize("workload", ["register", "append", "log-order", "txn-append", "txn-register", "write-skew"])
@settings(max_examples=15)
@given(seed=st.integers(0, 3), place=st.integers(0, 10_000), chance=st.integers(0, 2**64 - 1))
def test_a_verdict_without_its_explanation_is_that_of_the_check(
    workload: str, seed: int, place: int, chance: int
) -> None:
    made = insertion_of(workload, seed, place, chance)
    if made is None:
        return
    part = changed_record(run_of(workload, seed), made[1])
    checker: Any = load_workload(workload).checkers()[0]
    said = checker.check(part.history, part).verdict
    assert said is not Verdict.UNKNOWN
    assert checker.refutes(part.history, part) == (said is Verdict.VIOLATION)
