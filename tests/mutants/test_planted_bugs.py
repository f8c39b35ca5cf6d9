"""Every planted bug is caught in its named campaign by a checker that may; the correct system passes there."""

import itertools
from collections.abc import Iterator

import msgspec
import pytest

from faultline.campaign.matrix import CampaignPlan
from faultline.campaign.planfile import load_plan
from faultline.harness.judge import judge
from faultline.harness.judgement import Judgement
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.verdict import Verdict
from faultline.registry import load_system, resolve

MUTANTS = load_system("consistent-core").mutants
CAMPAIGNS = sorted({mutant.campaign for mutant in MUTANTS.values()})
SEEDS_MAX = 200
TWIN_SEEDS = 25


def requests(campaign: CampaignPlan, mutants: tuple[str, ...], seeds: int) -> Iterator[RunRequest]:
    cells = [cell for cell in campaign.cells() if not cell.mutants]
    for seed, cell in itertools.product(range(seeds), cells):
        yield msgspec.structs.replace(campaign.request(cell, seed), mutants=mutants)


def judged(request: RunRequest) -> Judgement:
    parts = resolve(request)
    return judge(run_simulated(make_plan(request, parts), parts), parts, run_id=f"seed-{request.seed}")


def names_of(judgement: Judgement) -> set[str]:
    return {finding.checker for finding in judgement.findings} | {finding.anomaly for finding in judgement.findings}


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_planted_bug_is_caught_in_its_campaign_by_one_of_its_checkers(name):
    mutant = MUTANTS[name]
    seen: set[str] = set()
    for request in requests(load_plan(mutant.campaign), (name,), SEEDS_MAX):
        judgement = judged(request)
        if judgement.verdict is Verdict.VIOLATION:
            seen |= names_of(judgement)
        if seen & set(mutant.caught_by):
            return
    pytest.fail(f"{name} was not caught in {SEEDS_MAX} seeds of {mutant.campaign}; seen: {sorted(seen)}")


@pytest.mark.rows("CC-R4", "CC-I1", "WA-I5", "LS-I1")
@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_the_correct_system_passes_the_campaign_that_catches_planted_bugs(campaign):
    plan = load_plan(campaign)
    seeds = max(8, TWIN_SEEDS // len(plan.cells()))
    judgements = [judged(request) for request in requests(plan, (), seeds)]
    assert [judgement.sentence for judgement in judgements if judgement.verdict is not Verdict.PASS] == []


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_planted_bug_says_what_it_breaks_and_how_it_shows(name):
    mutant = MUTANTS[name]
    assert mutant.name == name
    assert mutant.summary and mutant.shows_as and mutant.caught_by and mutant.id
    assert mutant.worlds == ("simulated", "local") or mutant.why_not


def test_at_least_eight_bugs_are_planted():
    assert len(MUTANTS) >= 8
