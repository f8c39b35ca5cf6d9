"""Bugs planted in `gossip` are caught in their campaigns; the correct system converges there, in every variant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
import pytest

from faultline.campaign.planfile import load_plan
from faultline.harness.judge import judge
from faultline.harness.judgement import Judgement
from faultline.harness.planning import make_plan
from faultline.harness.run import run_simulated
from faultline.harness.verdict import Verdict
from faultline.registry import load_system, resolve

MUTANTS = load_system("gossip").mutants
CAMPAIGNS = sorted({mutant.campaign for mutant in MUTANTS.values()})
VARIANTS = (
    {},
    {"exchange": "full"},
    {"exchange": "digest"},
    {"exchange": "checksum"},
    {"detector": "swim"},
    {"detector": "phi-accrual"},
    {"peers": "least-contacted"},
)
SEEDS_MAX = 100


def judgements(
    campaign: str, seeds: int, mutants: tuple[str, ...] = (), options: Mapping[str, str] | None = None
) -> Iterator[Judgement]:
    plan = load_plan(campaign)
    for seed in range(seeds):
        for cell in plan.cells():
            asked = {**plan.options, **(options or {})}
            request = msgspec.structs.replace(plan.request(cell, seed), mutants=mutants, options=asked)
            parts = resolve(request)
            yield judge(run_simulated(make_plan(request, parts), parts), parts, run_id=f"seed-{seed}")


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_bug_planted_in_gossip_is_caught_in_its_campaign(name: str) -> None:
    mutant = MUTANTS[name]
    for judgement in judgements(mutant.campaign, SEEDS_MAX, (name,)):
        names = {finding.checker for finding in judgement.findings} | {f.anomaly for f in judgement.findings}
        if judgement.verdict is Verdict.VIOLATION and names & set(mutant.caught_by):
            return
    pytest.fail(f"{name} was not caught in {SEEDS_MAX} seeds of {mutant.campaign}")


@pytest.mark.rows("GO-S4", "GO-I1", "GO-I2", "GO-I4")
@pytest.mark.parametrize("options", VARIANTS, ids=lambda options: "-".join(options.values()) or "default")
def test_every_variant_of_gossip_converges_after_the_faults(options: dict[str, str]) -> None:
    failed = [
        judgement.sentence
        for campaign in CAMPAIGNS
        for judgement in judgements(campaign, 2, (), options)
        if judgement.verdict is not Verdict.PASS
    ]
    assert failed == []
