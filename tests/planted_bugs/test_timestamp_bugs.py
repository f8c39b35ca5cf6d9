"""Bugs planted in `timestamped-kv` are caught in their campaigns; the correct system passes there, and fails beyond."""

from __future__ import annotations

import pytest
from campaign_runs import assert_caught, judged, requests, sentences_of_failures

from faultline.harness.verdict import Verdict
from faultline.registry import load_system

PLANTED_BUGS = load_system("timestamped-kv").planted_bugs
CAMPAIGNS = sorted({planted_bug.campaign for planted_bug in PLANTED_BUGS.values()})
SEEDS_MAX = 100
TWIN_SEEDS = 12


@pytest.mark.parametrize("name", sorted(PLANTED_BUGS))
def test_a_bug_planted_in_stamps_or_waits_is_caught_in_its_campaign(name: str) -> None:
    assert_caught(PLANTED_BUGS[name], SEEDS_MAX)


@pytest.mark.rows("CBW-I2", "CBW-I3", "CBW-S9", "HYC-I2")
@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_within_the_bound_of_its_clocks_the_store_keeps_its_promise(campaign: str) -> None:
    assert sentences_of_failures(requests(campaign, TWIN_SEEDS)) == []


@pytest.mark.rows("CBW-R2", "CBW-M11")
@pytest.mark.parametrize("wait", ["none", "write", "restart", "commit"])
def test_beyond_the_bound_the_promise_is_visibly_broken(wait: str) -> None:
    runs = requests("clocks-beyond-the-bound", 40, wait=wait)
    assert any(judged(request).verdict is Verdict.VIOLATION for request in runs)


@pytest.mark.rows("CBW-R2", "CBW-M11")
@pytest.mark.parametrize(
    ("campaign", "honest"),
    [
        ("write-wait-too-short", {"max_offset_ms": "200"}),
        ("restart-window-too-short", {"max_offset_ms": "200"}),
        ("error-bound-too-small", {"error_bound_ms": "100"}),
    ],
)
def test_a_bound_that_lies_shows_and_the_same_wait_with_an_honest_one_does_not(
    campaign: str, honest: dict[str, str]
) -> None:
    within = [request for request in requests(campaign, 12, **honest) if request.faults == ("skew",)]
    assert sentences_of_failures(within) == []
    assert any(judged(request).verdict is Verdict.VIOLATION for request in requests(campaign, 12))


@pytest.mark.rows("CBW-I2")
@pytest.mark.parametrize("wait", ["write", "restart", "commit"])
def test_every_wait_bears_clocks_that_drift_within_the_bound(wait: str) -> None:
    requests_of_it = requests(f"{wait}-wait" if wait != "restart" else "read-restart", 6)
    assert sentences_of_failures(each for each in requests_of_it if each.faults == ("gentle-drift",)) == []


@pytest.mark.rows("HYC-R12", "HYC-I2")
def test_one_fast_clock_drags_no_other_along_and_effects_follow_causes() -> None:
    assert sentences_of_failures(requests("one-fast-clock", 6)) == []


@pytest.mark.parametrize("campaign", ["leases-beyond-the-margin", "owners-beyond-the-margin", "one-fast-clock-wins"])
def test_designs_that_trust_clocks_fail_visibly_when_clocks_are_wrong_by_more_than_they_assume(campaign: str) -> None:
    assert any(judged(request).verdict is Verdict.VIOLATION for request in requests(campaign, 60))
