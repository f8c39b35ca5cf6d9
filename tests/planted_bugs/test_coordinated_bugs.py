"""Bugs planted in `coordinated-kv` are caught in their campaigns; the correct system is clean there."""

from __future__ import annotations

import pytest
from campaign_runs import assert_caught, requests, sentences_of_failures

from faultline.registry import load_system

PLANTED_BUGS = load_system("coordinated-kv").planted_bugs
CAMPAIGNS = sorted({planted_bug.campaign for planted_bug in PLANTED_BUGS.values()} | {"coordinated-clocks"})
SEEDS_MAX = 100


@pytest.mark.parametrize("name", sorted(PLANTED_BUGS))
def test_a_bug_planted_in_coordinated_kv_is_caught_in_its_campaign(name: str) -> None:
    assert_caught(PLANTED_BUGS[name], SEEDS_MAX)


@pytest.mark.rows("X-S8")
@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_leaders_controllers_and_the_cores_leader_may_fail_and_every_key_stays_linearizable(campaign: str) -> None:
    assert sentences_of_failures(requests(campaign, 1)) == []
