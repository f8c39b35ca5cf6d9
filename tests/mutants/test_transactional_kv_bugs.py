"""Every bug planted in transactional-kv is caught in its named campaign; the correct system passes those campaigns."""

from __future__ import annotations

import pytest
from campaign_runs import assert_caught, requests, sentences_of_failures

from faultline.registry import load_system

MUTANTS = load_system("transactional-kv").mutants
CAMPAIGNS = sorted({mutant.campaign for mutant in MUTANTS.values()} | {"bank"})
SEEDS_MAX = 60
TWIN_SEEDS = 3


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_bug_planted_in_transactional_kv_is_caught_in_its_campaign_by_one_of_its_checkers(name: str) -> None:
    assert_caught(MUTANTS[name], SEEDS_MAX)


@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_transactional_kv_passes_the_campaigns_that_catch_its_bugs(campaign: str) -> None:
    assert sentences_of_failures(requests(campaign, TWIN_SEEDS)) == []
