"""The planted bugs of the demo are told by what happened: what is lost is not called stale, nor what is stale lost."""

from __future__ import annotations

from collections import Counter

import pytest
from campaign_runs import judged

from faultline.campaign.planfile import load_plan
from faultline.harness.judgement import Judgement


def judgements(bug: str, seeds: range) -> list[Judgement]:
    plan = load_plan("demo")
    [cell] = [cell for cell in plan.cells() if cell.planted_bugs == (bug,)]
    return [judged(plan.request(cell, seed)) for seed in seeds]


def by_name(bug: str, seeds: range) -> Counter[str]:
    """Count the runs by the first anomaly that a client saw; those of invariants do not count."""
    found = [judgement.findings for judgement in judgements(bug, seeds)]
    of_clients = [[each.anomaly for each in findings if each.checker == "linearizability"] for findings in found]
    return Counter(names[0] for names in of_clients if names)


@pytest.mark.slow
def test_a_write_that_was_acknowledged_before_a_power_cut_and_that_no_final_read_sees_is_lost() -> None:
    [judgement] = judgements("ack-before-fsync", range(2, 3))
    lost = [finding for finding in judgement.findings if finding.anomaly == "lost-write" and finding.key == "k1"]
    assert len(lost) == 1
    assert (
        "read nothing from k1 although client 4's write of 12 had completed at 2.339 s, and no later operation saw it"
        in lost[0].sentence
    )
    assert judgement.signature == "linearizability/lost-write"


@pytest.mark.slow
@pytest.mark.parametrize("bug", ["ack-before-fsync", "ack-before-quorum"])
def test_what_was_acknowledged_too_early_is_lost(bug: str) -> None:
    names = by_name(bug, range(20))
    assert names["lost-write"] >= 0.8 * names.total() >= 8


@pytest.mark.slow
def test_what_a_deposed_leader_answers_is_stale_and_never_lost() -> None:
    names = by_name("stale-read", range(50))
    assert names.keys() == {"stale-read"} and names.total() >= 10


@pytest.mark.slow
def test_a_request_that_is_executed_twice_is_no_stale_read() -> None:
    names = by_name("no-duplicate-detection", range(50))
    assert names["aborted-read"] > names["stale-read"]
