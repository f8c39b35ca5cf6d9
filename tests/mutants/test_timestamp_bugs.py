"""Bugs planted in `timestamped-kv` are caught in their campaigns; the correct system passes there, and fails beyond."""

from __future__ import annotations

import pytest
from campaign_runs import assert_caught, judged, requests, sentences_of_failures

from faultline.harness.verdict import Verdict
from faultline.registry import load_system

MUTANTS = load_system("timestamped-kv").mutants
CAMPAIGNS = sorted({mutant.campaign for mutant in MUTANTS.values()})
SEEDS_MAX = 100
TWIN_SEEDS = 12


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_bug_planted_in_stamps_or_waits_is_caught_in_its_campaign(name: str) -> None:
    assert_caught(MUTANTS[name], SEEDS_MAX)


@pytest.mark.rows("CBW-I2", "CBW-I3", "CBW-S9", "HYC-I2")
@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_within_the_bound_of_its_clocks_the_store_keeps_its_promise(campaign: str) -> None:
    assert sentences_of_failures(requests(campaign, TWIN_SEEDS)) == []


@pytest.mark.rows("CBW-R2", "CBW-M11")
@pytest.mark.parametrize("wait", ["none", "write", "restart", "commit"])
def test_beyond_the_bound_the_promise_is_visibly_broken(wait: str) -> None:
    runs = requests("clocks-beyond-the-bound", 40, wait=wait)
    assert any(judged(request).verdict is Verdict.VIOLATION for request in runs)
