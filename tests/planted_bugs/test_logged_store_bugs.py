"""Bugs planted in the store of one server are caught in their campaigns; the correct store passes there."""

from __future__ import annotations

import pytest
from campaign_runs import assert_caught, judged, requests, sentences_of_failures

from faultline.harness.verdict import Verdict
from faultline.registry import load_system

PLANTED_BUGS = load_system("logged-store").planted_bugs
CAMPAIGNS = sorted({planted_bug.campaign for planted_bug in PLANTED_BUGS.values()})
SEEDS_MAX = 100
TWIN_SEEDS = 12


@pytest.mark.parametrize("name", sorted(PLANTED_BUGS))
def test_a_planted_bug_of_the_logged_store_is_caught_in_its_campaign(name: str) -> None:
    assert_caught(PLANTED_BUGS[name], SEEDS_MAX)


@pytest.mark.rows("WAL-I1", "WAL-I4", "WAL-S1")
@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_the_correct_logged_store_passes_the_campaign_that_catches_planted_bugs(campaign: str) -> None:
    assert sentences_of_failures(requests(campaign, TWIN_SEEDS)) == []


@pytest.mark.rows("WAL-R9")
@pytest.mark.parametrize("policy", ["each-append", "groups"])
def test_each_policy_that_flushes_before_the_answer_loses_nothing(policy: str) -> None:
    assert sentences_of_failures(requests("logged-store", 6, flush_policy=policy)) == []


@pytest.mark.rows("WAL-R9", "WAL-S3")
def test_a_server_that_flushes_later_forgets_what_it_acknowledged() -> None:
    # Asked for by a bug that makes it so, since planning refuses the option where processes end.
    anomalies = set()
    for request in requests("logged-store", 6, ("answered-before-the-flush",)):
        judgement = judged(request)
        if judgement.verdict is Verdict.VIOLATION:
            anomalies |= {finding.anomaly for finding in judgement.findings}
    assert "lost-write" in anomalies
