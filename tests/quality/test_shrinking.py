"""Counterexamples of planted bugs shrink to a few operations and faults, and still show the same bug."""

import pytest

from faultline.harness.judge import judge
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.shrink import same_violation, shrink
from faultline.harness.verdict import Verdict
from faultline.registry import resolve


def first_violation(planted_bug: str, faults: str):
    for seed in range(200):
        request = RunRequest(system="consistent-core", faults=(faults,), planted_bugs=(planted_bug,), seed=seed)
        parts = resolve(request)
        plan = make_plan(request, parts)
        judgement = judge(run_simulated(plan, parts), parts, run_id="search")
        if judgement.verdict is Verdict.VIOLATION:
            return plan, parts, judgement
    raise AssertionError(f"{planted_bug} did not show")


@pytest.mark.parametrize(
    ("planted_bug", "faults", "operations_max", "faults_max"),
    [("stale-read", "leadership", 4, 2), ("ack-before-quorum", "leadership", 6, 3), ("vote-twice", "leadership", 4, 5)],
)
def test_a_counterexample_shrinks_to_what_matters(planted_bug, faults, operations_max, faults_max):
    plan, parts, judgement = first_violation(planted_bug, faults)
    shrunk = shrink(plan, same_violation(parts, judgement.signature))
    assert shrunk.complete
    assert len(shrunk.plan.operations) <= operations_max
    assert len(shrunk.plan.faults) <= faults_max
    again = judge(run_simulated(shrunk.plan, parts), parts, run_id="again")
    assert (again.verdict, again.signature) == (Verdict.VIOLATION, judgement.signature)
