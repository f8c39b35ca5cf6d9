"""Bugs planted in the leaderless systems are caught in their campaigns; the correct systems pass there."""

from __future__ import annotations

import msgspec
import pytest
from campaign_runs import assert_caught, judged, requests, sentences_of_failures

from faultline.harness.verdict import Verdict
from faultline.registry import load_system

SYSTEMS = ("quorum-register", "quorum-kv")
PLANTED_BUGS = {
    (system, name): planted_bug for system in SYSTEMS for name, planted_bug in load_system(system).planted_bugs.items()
}
CAMPAIGNS = sorted({planted_bug.campaign for planted_bug in PLANTED_BUGS.values()})
SEEDS_MAX = 100
TWIN_SEEDS = 8


@pytest.mark.parametrize(("system", "name"), sorted(PLANTED_BUGS))
def test_a_planted_quorum_bug_is_caught_in_its_campaign_by_one_of_its_checkers(system: str, name: str) -> None:
    assert_caught(PLANTED_BUGS[system, name], SEEDS_MAX)


@pytest.mark.rows("VVC-I3", "VVC-I4")
@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_the_correct_quorum_system_passes_the_campaign_that_catches_planted_bugs(campaign: str) -> None:
    assert sentences_of_failures(requests(campaign, TWIN_SEEDS)) == []


@pytest.mark.rows("QRM-R6")
def test_without_the_write_back_some_run_shows_time_running_backwards_which_its_twin_does_not() -> None:
    alone, twins = requests("quorums-alone", 60), requests("quorums-alone", 60, write_back="on")
    for off, on in zip(alone, twins, strict=True):
        judgement = judged(off)
        if judgement.verdict is Verdict.VIOLATION:
            assert {(finding.checker, finding.anomaly) for finding in judgement.findings} == {
                ("linearizability", "stale-read")
            }
            assert judged(on).verdict is Verdict.PASS
            return
    pytest.fail("no anomaly in 60 seeds")


@pytest.mark.parametrize(("versions", "expected"), [("last-write-wins", Verdict.VIOLATION), ("dotted", Verdict.PASS)])
def test_where_the_last_writer_wins_acknowledged_writes_are_lost(versions: str, expected: Verdict) -> None:
    judgements = [judged(request) for request in requests("last-write-wins", 3, versions=versions)]
    assert {judgement.verdict for judgement in judgements} == {expected}
    anomalies = {finding.anomaly for judgement in judgements for finding in judgement.findings}
    assert ("lost-write" in anomalies) == (expected is Verdict.VIOLATION)


@pytest.mark.rows("VVC-R16", "VVC-R17")
@pytest.mark.parametrize("versions", ["dotted", "server-id", "client-id"])
def test_an_application_that_unites_carts_loses_nothing(versions: str) -> None:
    assert sentences_of_failures(requests("carts", 4, versions=versions)) == []


@pytest.mark.rows("VVC-R16")
def test_an_application_that_keeps_one_cart_loses_what_was_added_to_the_other() -> None:
    judgements = [judged(request) for request in requests("carts-keeping-one", 3)]
    assert "lost-element" in {finding.anomaly for judgement in judgements for finding in judgement.findings}


@pytest.mark.rows("VVC-I4", "VVC-R19")
def test_without_read_repair_replicas_stay_apart_in_some_run_which_its_twin_does_not() -> None:
    alone, twins = requests("siblings", 12, read_repair="off"), requests("siblings", 12)
    for off, on in zip((msgspec.structs.replace(each, beyond_promise=True) for each in alone), twins, strict=True):
        judgement = judged(off)
        if judgement.verdict is Verdict.VIOLATION:
            assert {finding.anomaly for finding in judgement.findings} == {"not-converged"}
            assert judged(on).verdict is Verdict.PASS
            return
    pytest.fail("all replicas agreed in 12 seeds")


@pytest.mark.parametrize("versions", ["server-id", "client-id"])
def test_counters_per_node_and_per_client_lose_nothing_either(versions: str) -> None:
    assert sentences_of_failures(requests("siblings", 5, versions=versions)) == []
