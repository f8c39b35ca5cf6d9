"""Shrinking finds the few parts that matter, and only keeps plans that still fail."""

import msgspec
import pytest
from toy_plans import toy_plan

from faultline.harness.judge import judge
from faultline.harness.minimal import keep_minimal_run
from faultline.harness.plan import Plan
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.shrink import Shrunk, minimize, same_violation, shrink
from faultline.registry import resolve

STALE_READ = "linearizability/stale-read"


@pytest.mark.parametrize("needed", [{3}, {0, 99}, {17, 18, 60}, set(range(0, 100, 9))])
def test_minimize_finds_exactly_the_needed_items(needed):
    assert set(minimize(range(100), lambda items: needed <= set(items))) == needed


def test_minimize_keeps_the_order_and_asks_rarely_when_little_is_needed():
    asked = []

    def still_fails(items):
        asked.append(items)
        return {40, 7} <= set(items)

    assert minimize(range(200), still_fails) == (7, 40)
    assert len(asked) < 60


def test_minimize_can_come_to_nothing():
    assert minimize(range(5), lambda items: True) == ()


def test_a_plan_shrinks_to_the_faults_and_operations_that_matter():
    def still_fails(plan: Plan) -> bool:
        values = {operation.value for operation in plan.operations}
        return {5, 150} <= values and any(fault.at_us == 3 for fault in plan.faults)

    shrunk = shrink(toy_plan(200, 10), still_fails)
    assert [operation.value for operation in shrunk.plan.operations] == [5, 150]
    assert [fault.at_us for fault in shrunk.plan.faults] == [3]
    assert shrunk.complete
    assert shrunk.plan == msgspec.structs.replace(
        toy_plan(200, 10), operations=shrunk.plan.operations, faults=shrunk.plan.faults
    ), "nothing else of the plan has changed"


def test_a_spent_budget_is_admitted_and_what_was_reached_still_fails():
    calls = []

    def still_fails(plan: Plan) -> bool:
        calls.append(plan)
        return {5, 150} <= {operation.value for operation in plan.operations}

    shrunk = shrink(toy_plan(200, 10), still_fails, runs_max=12)
    assert not shrunk.complete
    assert shrunk.runs == len(calls) == 12
    assert still_fails(shrunk.plan)


@pytest.fixture(scope="module")
def stale_read():
    request = RunRequest(system="consistent-core", planted_bugs=("stale-read",), seed=7)
    parts = resolve(request)
    return make_plan(request, parts), parts


def interrupted_after(lines):
    """Return `run_simulated` with Ctrl-C when so many lines of the history are written."""
    told = []

    def run(plan, parts, **_):
        def sink(line):
            told.append(line)
            if len(told) == lines:
                raise KeyboardInterrupt

        return run_simulated(plan, parts, sink=sink)

    return run


@pytest.mark.parametrize("share", [0.2, 1.0], ids=["before the violation", "after the violation"])
def test_a_candidate_whose_run_is_interrupted_is_neither_kept_nor_given_up_but_ends_the_search(
    stale_read, monkeypatch, share
):
    plan, parts = stale_read
    still_fails = same_violation(parts, STALE_READ)
    assert still_fails(plan)
    lines = len(run_simulated(plan, parts).history.to_jsonl().splitlines())
    monkeypatch.setattr("faultline.harness.shrink.run_simulated", interrupted_after(int(share * lines)))
    with pytest.raises(KeyboardInterrupt):
        still_fails(plan)


def test_a_minimal_run_that_is_interrupted_gets_no_verdict(stale_read, monkeypatch, tmp_path):
    plan, parts = stale_read
    judgement = judge(run_simulated(plan, parts), parts, run_id="whole")
    monkeypatch.setattr(
        "faultline.harness.minimal.shrink", lambda plan, *_, **__: Shrunk(plan=plan, runs=0, complete=True)
    )
    monkeypatch.setattr("faultline.harness.minimal.run_simulated", interrupted_after(20))
    with pytest.raises(KeyboardInterrupt):
        keep_minimal_run(tmp_path, plan, judgement, parts, str)
    assert not (tmp_path / "minimal" / "verdict.json").exists()
