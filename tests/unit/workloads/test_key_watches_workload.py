"""The workload `key-watches`: watches without leases, which convicts a bug and lets its twin go as `watches` does."""

from __future__ import annotations

from faultline.harness.generator import planned_operations
from faultline.harness.judge import judge
from faultline.harness.judgement import Judgement
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.verdict import Verdict
from faultline.registry import load_workload, resolve


def planned(workload: str, seed: int) -> set[str]:
    generator = load_workload(workload).generator(workers=6, operations=400, seed=seed)
    return {row.f for row in planned_operations(generator, workers=6, seed=seed, latency_us=4_000)}


def judged(seed: int, *planted_bugs: str) -> Judgement:
    request = RunRequest(
        system="coordination-service",
        workload="key-watches",
        faults=("leadership",),
        seed=seed,
        planted_bugs=planted_bugs,
    )
    parts = resolve(request)
    return judge(run_simulated(make_plan(request, parts), parts), parts, run_id=f"seed-{seed}")


def test_there_are_no_leases_and_everything_else_is_as_in_watches() -> None:
    assert planned("key-watches", 1) == {"put", "delete", "watch", "drain", "list"}
    assert planned("watches", 1) - planned("key-watches", 1) == {"acquire", "attach", "abandon"}
    assert set(load_workload("key-watches").functions) == planned("key-watches", 1)


def test_the_reference_system_keeps_the_promise_and_a_watch_that_is_not_set_again_breaks_it() -> None:
    for seed in range(3):
        judgement = judged(seed)
        assert judgement.verdict is Verdict.PASS, judgement.sentence
    assert "watches/watch-stalled" in {
        f"{finding.checker}/{finding.anomaly}" for finding in judged(0, "watches-not-reset").findings
    }
