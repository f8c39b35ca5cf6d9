"""Bugs planted in `data-grid` are caught in their campaigns; the correct grid passes all of them."""

from __future__ import annotations

import pytest
from campaign_runs import assert_caught, judged, requests, sentences_of_failures

from faultline.campaign.planfile import load_plan, shipped_plans
from faultline.harness.verdict import Verdict
from faultline.registry import load_system

PLANTED_BUGS = load_system("data-grid").planted_bugs
PLANS = [load_plan(name) for name in shipped_plans() if load_plan(name).systems == ("data-grid",)]
CAMPAIGNS = [plan.name for plan in PLANS if not plan.expected]
SEEDS_MAX = 100
TWIN_SEEDS = 6


@pytest.mark.parametrize("name", sorted(PLANTED_BUGS))
def test_a_bug_planted_in_the_grid_is_caught_in_its_campaign(name: str) -> None:
    assert_caught(PLANTED_BUGS[name], SEEDS_MAX)


@pytest.mark.rows("EL-R33", "EL-R34", "EL-I9", "EL-I10")
@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_a_correct_grid_is_not_accused_where_bugs_are_caught(campaign: str) -> None:
    wrong = (Verdict.VIOLATION, Verdict.HARNESS_ERROR, Verdict.UNKNOWN)
    judgements = [judged(request) for request in requests(campaign, TWIN_SEEDS)]
    assert [judgement.sentence for judgement in judgements if judgement.verdict in wrong] == []
    assert any(judgement.verdict is Verdict.PASS for judgement in judgements)


@pytest.mark.rows("EL-S21")
def test_a_split_brain_without_a_minimum_size_costs_data_and_no_invariant_is_broken() -> None:
    anomalies: set[str] = set()
    for request in requests("data-grid-split-brain", 12):
        judgement = judged(request)
        anomalies |= {finding.anomaly for finding in judgement.findings}
    assert "lost-write" in anomalies
    assert {anomaly for anomaly in anomalies if anomaly.startswith("EL-")} == set()


@pytest.mark.rows("EL-R22", "EL-R23")
def test_with_the_majority_as_minimum_size_the_same_cuts_cost_nothing() -> None:
    assert sentences_of_failures(requests("data-grid-split-brain", 6, minimum_size="majority")) == []
