"""Every bug planted in paxos-kv is caught in its named campaign by a checker that may; the correct system passes."""

from __future__ import annotations

import pytest

from faultline.campaign.planfile import load_plan
from faultline.harness.judge import judge
from faultline.harness.judgement import Judgement
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.verdict import Verdict
from faultline.registry import load_system, resolve

MUTANTS = load_system("paxos-kv").mutants
CAMPAIGNS = sorted({mutant.campaign for mutant in MUTANTS.values()})
SEEDS_MAX = 100
TWIN_SEEDS = 20


def judged(campaign: str, seed: int, *mutants: str, **options: str) -> Judgement:
    """One seed of the only cell of `campaign`, with these bugs planted."""
    plan = load_plan(campaign)
    (cell,) = plan.cells()
    request = RunRequest(
        system=cell.system,
        workload=cell.workload,
        faults=cell.faults,
        seed=seed,
        mutants=mutants,
        options={**plan.options, **options},
        nodes=plan.nodes,
    )
    parts = resolve(request)
    return judge(run_simulated(make_plan(request, parts), parts), parts, run_id=f"seed-{seed}")


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_bug_planted_in_paxos_kv_is_caught_in_its_campaign_by_one_of_its_checkers(name: str) -> None:
    mutant = MUTANTS[name]
    seen: set[str] = set()
    for seed in range(SEEDS_MAX):
        judgement = judged(mutant.campaign, seed, name)
        if judgement.verdict is Verdict.VIOLATION:
            seen |= {finding.checker for finding in judgement.findings}
            seen |= {finding.anomaly for finding in judgement.findings}
        if seen & set(mutant.caught_by):
            return
    pytest.fail(f"{name} was not caught in {SEEDS_MAX} seeds of {mutant.campaign}; seen: {sorted(seen)}")


@pytest.mark.rows("PAX-I5")
@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_paxos_kv_passes_the_campaigns_that_catch_its_bugs(campaign: str) -> None:
    judgements = [judged(campaign, seed) for seed in range(TWIN_SEEDS)]
    assert [judgement.sentence for judgement in judgements if judgement.verdict is not Verdict.PASS] == []


@pytest.mark.rows("PAX-S11", "PAX-R12", "PAX-R14")
@pytest.mark.parametrize("options", [{"rejections": "off"}, {"prepare_quorum": "4", "accept_quorum": "2"}])
def test_paxos_kv_passes_its_duels_with_silent_acceptors_and_with_flexible_quorums(options: dict[str, str]) -> None:
    judgements = [judged("paxos-duels", seed, **options) for seed in range(TWIN_SEEDS)]
    assert [judgement.sentence for judgement in judgements if judgement.verdict is not Verdict.PASS] == []


def test_every_bug_of_paxos_kv_says_what_it_breaks_how_it_shows_and_where() -> None:
    for name, mutant in MUTANTS.items():
        assert mutant.name == name
        assert mutant.summary and mutant.shows_as and mutant.caught_by and mutant.id
        assert mutant.worlds == ("simulated", "local") or mutant.why_not
