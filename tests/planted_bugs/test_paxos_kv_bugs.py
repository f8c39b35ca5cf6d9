"""Every bug planted in paxos-kv is caught in its named campaign by a checker that may; the correct system passes."""

from __future__ import annotations

import pytest
from campaign_runs import assert_caught, requests, sentences_of_failures

from faultline.registry import load_system

PLANTED_BUGS = load_system("paxos-kv").planted_bugs
CAMPAIGNS = sorted({planted_bug.campaign for planted_bug in PLANTED_BUGS.values()})
SEEDS_MAX = 100
TWIN_SEEDS = 20


@pytest.mark.parametrize("name", sorted(PLANTED_BUGS))
def test_a_bug_planted_in_paxos_kv_is_caught_in_its_campaign_by_one_of_its_checkers(name: str) -> None:
    assert_caught(PLANTED_BUGS[name], SEEDS_MAX)


@pytest.mark.rows("PAX-I5")
@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_paxos_kv_passes_the_campaigns_that_catch_its_bugs(campaign: str) -> None:
    assert sentences_of_failures(requests(campaign, TWIN_SEEDS)) == []


@pytest.mark.rows("PAX-S11", "PAX-R12", "PAX-R14")
@pytest.mark.parametrize("options", [{"rejections": "off"}, {"prepare_quorum": "4", "accept_quorum": "2"}])
def test_paxos_kv_passes_its_duels_with_silent_acceptors_and_with_flexible_quorums(options: dict[str, str]) -> None:
    assert sentences_of_failures(requests("paxos-duels", TWIN_SEEDS, **options)) == []
