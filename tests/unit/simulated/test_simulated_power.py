"""The loss of power in the simulated world: all hosts in one moment, and what was not synced is gone."""

from __future__ import annotations

import pytest

from faultline.harness.errors import UsageError
from faultline.harness.judge import judge
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.verdict import Verdict
from faultline.registry import resolve


def judged(seed: int, *planted_bugs: str, **options: str) -> Verdict:
    request = RunRequest(
        system="consistent-core", faults=("blackout",), seed=seed, planted_bugs=planted_bugs, options=options
    )
    parts = resolve(request)
    record = run_simulated(make_plan(request, parts), parts)
    assert record.errors == [] and record.marks["power-lost"] == len(record.faults)
    assert {fault.kind for fault in record.faults} == {"power-off"}
    return judge(record, parts, run_id="power").verdict


def test_a_system_that_acknowledges_before_it_syncs_loses_writes_and_the_correct_one_does_not() -> None:
    seeds = range(12)
    assert {judged(seed) for seed in seeds} == {Verdict.PASS}
    assert Verdict.VIOLATION in {judged(seed, "ack-before-fsync") for seed in seeds}


def test_a_fault_that_needs_a_kernel_is_refused_here_by_name() -> None:
    request = RunRequest(system="consistent-core", faults=("freeze",))
    parts = resolve(request)
    with pytest.raises(UsageError, match="simulated world cannot inject freeze"):
        run_simulated(make_plan(request, parts), parts)
