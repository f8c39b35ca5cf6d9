"""Bugs planted in `range-kv` are caught in their campaigns; the correct system passes all of them."""

from __future__ import annotations

import pytest
from campaign_runs import assert_caught, requests, sentences_of_failures

from faultline.campaign.planfile import load_plan, shipped_plans
from faultline.registry import load_system

PLANTED_BUGS = load_system("range-kv").planted_bugs
CAMPAIGNS = [name for name in shipped_plans() if load_plan(name).systems == ("range-kv",)]
SEEDS_MAX = 60
TWIN_SEEDS = 4


@pytest.mark.parametrize("name", sorted(PLANTED_BUGS))
def test_a_bug_planted_in_key_ranges_is_caught_in_its_campaign(name: str) -> None:
    assert_caught(PLANTED_BUGS[name], SEEDS_MAX)


@pytest.mark.rows("KRP-I3", "KRP-I6")
@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_key_ranges_that_are_split_and_moved_by_the_rules_keep_the_promise(campaign: str) -> None:
    assert sentences_of_failures(requests(campaign, TWIN_SEEDS)) == []


@pytest.mark.rows("KRP-R12", "KRP-R20", "KRP-I5")
def test_the_promise_holds_with_kept_sizes_and_with_retired_parents_too() -> None:
    options = {"sizes": "blocks", "split_into": "two-new"}
    assert sentences_of_failures(requests("range-moves", TWIN_SEEDS, **options)) == []
