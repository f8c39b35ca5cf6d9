"""Bugs planted in `range-transactions` are caught in their campaigns; the correct system passes all of them."""

from __future__ import annotations

import pytest
from campaign_runs import assert_caught, requests, sentences_of_failures

from faultline.campaign.planfile import load_plan, shipped_plans
from faultline.registry import load_system

PLANTED_BUGS = load_system("range-transactions").planted_bugs
CAMPAIGNS = [name for name in shipped_plans() if load_plan(name).systems == ("range-transactions",)]
SEEDS_MAX = 60
TWIN_SEEDS = 2


@pytest.mark.parametrize("name", sorted(PLANTED_BUGS))
def test_a_bug_planted_in_transactions_on_ranges_is_caught_in_its_campaign(name: str) -> None:
    assert_caught(PLANTED_BUGS[name], SEEDS_MAX)


@pytest.mark.rows("TPC-S15", "CBW-R25", "CBW-R14")
@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_transactions_on_ranges_that_split_and_move_keep_the_promise(campaign: str) -> None:
    assert sentences_of_failures(requests(campaign, TWIN_SEEDS)) == []


@pytest.mark.parametrize("policy", ["error", "wait-die"])
def test_ranges_move_under_each_policy_for_conflicts(policy: str) -> None:
    assert sentences_of_failures(requests("moving-ranges", 1, policy=policy)) == []


def test_every_bug_of_a_range_is_seen_by_checkers_of_histories() -> None:
    by_clients = {"bank", "list-append", "rw-register"}
    assert [name for name, bug in PLANTED_BUGS.items() if by_clients.isdisjoint(bug.caught_by)] == []
