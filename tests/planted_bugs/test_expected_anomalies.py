"""Shipped plans that expect anomalies: their weak systems show those and nothing else, and a bug beside them fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from campaign_runs import judged

from faultline.campaign.expectation import not_allowed
from faultline.campaign.planfile import load_plan, shipped_plans
from faultline.systems_under_test.patterns.data_replication import replicated_log
from faultline.testing import assert_campaign_passes
from faultline.testing.campaigns import RunFailed

EXPECTING = [name for name in shipped_plans() if load_plan(name).expected]


def test_plans_that_expect_something_are_shipped() -> None:
    assert len(EXPECTING) >= 15


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPECTING)
def test_a_weak_system_shows_no_anomaly_but_those_its_plan_allows(name: str) -> None:
    plan = load_plan(name)
    for cell in plan.cells():
        for seed in range(6):
            judgement = judged(plan.request(cell, seed))
            beyond = [finding.sentence for finding in not_allowed(judgement.findings, cell.expected)]
            assert beyond == [], (cell.name, seed)


@pytest.mark.slow
def test_plain_reads_from_followers_may_be_old_but_what_was_acknowledged_may_not_be_lost(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Every follower-read is as weak as the plan expects, and the leader commits entries that no other server has."""
    assert_campaign_passes("plain-follower-reads", seeds=3, output=tmp_path)
    monkeypatch.setattr(replicated_log, "quorum_index", max)
    with pytest.raises(RunFailed, match="allows .*, but not") as raised:
        assert_campaign_passes("plain-follower-reads", seeds=12, output=tmp_path)
    assert "invariants/LDR-I3" in str(raised.value)


@pytest.mark.slow
def test_clients_see_it_too_when_followers_show_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = load_plan("plain-follower-reads")
    [cell] = [cell for cell in plan.cells() if cell.workload == "sequential"]
    monkeypatch.setattr(replicated_log, "quorum_index", max)
    seen = {finding.anomaly for seed in range(4) for finding in judged(plan.request(cell, seed)).findings}
    assert "causal-reverse" in seen - set(cell.expected)
