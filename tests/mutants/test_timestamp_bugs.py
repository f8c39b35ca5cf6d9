"""Bugs planted in `timestamped-kv` are caught in their campaigns; the correct system passes there, and fails beyond."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from faultline.campaign.planfile import load_plan
from faultline.harness.judge import judge
from faultline.harness.judgement import Judgement
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.verdict import Verdict
from faultline.registry import load_system, resolve

MUTANTS = load_system("timestamped-kv").mutants
CAMPAIGNS = sorted({mutant.campaign for mutant in MUTANTS.values()})
SEEDS_MAX = 100
TWIN_SEEDS = 12


def judgements(campaign: str, seeds: int, mutants: tuple[str, ...] = ()) -> Iterator[Judgement]:
    plan = load_plan(campaign)
    for seed in range(seeds):
        for cell in plan.cells():
            yield judged(msgspec.structs.replace(plan.request(cell, seed), mutants=mutants))


def judged(request: RunRequest) -> Judgement:
    parts = resolve(request)
    return judge(run_simulated(make_plan(request, parts), parts), parts, run_id=f"seed-{request.seed}")


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_bug_planted_in_stamps_or_waits_is_caught_in_its_campaign(name: str) -> None:
    mutant = MUTANTS[name]
    for judgement in judgements(mutant.campaign, SEEDS_MAX, (name,)):
        names = {finding.checker for finding in judgement.findings} | {f.anomaly for f in judgement.findings}
        if judgement.verdict is Verdict.VIOLATION and names & set(mutant.caught_by):
            return
    pytest.fail(f"{name} was not caught in {SEEDS_MAX} seeds of {mutant.campaign}")


@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_within_the_bound_of_its_clocks_the_store_keeps_its_promise(campaign: str) -> None:
    failed = [j.sentence for j in judgements(campaign, TWIN_SEEDS) if j.verdict is not Verdict.PASS]
    assert failed == []


@pytest.mark.rows("CBW-R2", "CBW-M11")
@pytest.mark.parametrize("wait", ["none", "write", "restart", "commit"])
def test_beyond_the_bound_the_promise_is_visibly_broken(wait: str) -> None:
    plan = load_plan("clocks-beyond-the-bound")
    cell = plan.cells()[0]
    options = plan.options | {"wait": wait}
    requests = (msgspec.structs.replace(plan.request(cell, seed), options=options) for seed in range(40))
    assert any(judged(request).verdict is Verdict.VIOLATION for request in requests)
