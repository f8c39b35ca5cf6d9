"""Bugs planted in `emergent-leader` are caught in their campaigns; the correct system passes all of them."""

from __future__ import annotations

import pytest
from campaign_runs import assert_caught, requests, sentences_of_failures

from faultline.campaign.planfile import load_plan, shipped_plans
from faultline.registry import load_system

PLANTED_BUGS = load_system("emergent-leader").planted_bugs
CAMPAIGNS = [name for name in shipped_plans() if load_plan(name).systems == ("emergent-leader",)]
SEEDS_MAX = 100
TWIN_SEEDS = 6


@pytest.mark.parametrize("name", sorted(PLANTED_BUGS))
def test_a_bug_planted_among_members_is_caught_in_its_campaign(name: str) -> None:
    assert_caught(PLANTED_BUGS[name], SEEDS_MAX)


@pytest.mark.rows("EL-I1", "EL-I6")
@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_members_that_keep_the_rules_end_in_one_cluster(campaign: str) -> None:
    assert sentences_of_failures(requests(campaign, TWIN_SEEDS)) == []
