"""Every bug planted in a system on the Raft kernel is caught in its campaign by a checker that may; its twin passes.

And the bugs of all systems say what they are.
"""

from __future__ import annotations

import pytest
from campaign_runs import assert_caught, requests, sentences_of_failures

from faultline.campaign.planfile import load_plan
from faultline.registry import load_system, systems

PLANTED_BUGS = {
    name: bug
    for system in ("consistent-core", "coordination-service", "follower-reads")
    for name, bug in load_system(system).planted_bugs.items()
}
OF_ALL_SYSTEMS = {(system, name): bug for system in systems() for name, bug in load_system(system).planted_bugs.items()}
CAMPAIGNS = sorted({planted_bug.campaign for planted_bug in PLANTED_BUGS.values()})
SEEDS_MAX = 200
TWIN_SEEDS = 25


@pytest.mark.parametrize("name", sorted(PLANTED_BUGS))
def test_a_planted_bug_is_caught_in_its_campaign_by_one_of_its_checkers(name: str) -> None:
    assert_caught(PLANTED_BUGS[name], SEEDS_MAX)


@pytest.mark.rows("CC-R4", "CC-I1", "WA-I5", "LS-I1")
@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_the_correct_system_passes_the_campaign_that_catches_planted_bugs(campaign: str) -> None:
    seeds = max(8, TWIN_SEEDS // len(load_plan(campaign).cells()))
    assert sentences_of_failures(requests(campaign, seeds)) == []


@pytest.mark.parametrize(("system", "name"), sorted(OF_ALL_SYSTEMS))
def test_a_planted_bug_says_what_it_breaks_and_how_it_shows(system: str, name: str) -> None:
    planted_bug = OF_ALL_SYSTEMS[system, name]
    assert planted_bug.name == name
    assert planted_bug.summary and planted_bug.shows_as and planted_bug.caught_by and planted_bug.id
    assert planted_bug.worlds == ("simulated", "local") or planted_bug.why_not


def test_at_least_eight_bugs_are_planted() -> None:
    assert len(PLANTED_BUGS) >= 8
