"""Bugs planted in `partitioned-kv` are caught in their campaigns; the correct system is clean there."""

from __future__ import annotations

import pytest
from campaign_runs import assert_caught, requests, sentences_of_failures

from faultline.registry import load_system

PLANTED_BUGS = load_system("partitioned-kv").planted_bugs
CAMPAIGNS = sorted({planted_bug.campaign for planted_bug in PLANTED_BUGS.values()})
SEEDS_MAX = 100


@pytest.mark.parametrize("name", sorted(PLANTED_BUGS))
def test_a_bug_planted_in_partitioned_kv_is_caught_in_its_campaign(name: str) -> None:
    assert_caught(PLANTED_BUGS[name], SEEDS_MAX)


@pytest.mark.rows("FXP-I3", "FXP-R18", "FXP-R19", "FXP-R26", "FXP-R28")
@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_partitions_may_move_all_the_time_and_every_key_stays_linearizable(campaign: str) -> None:
    assert sentences_of_failures(requests(campaign, 2)) == []
