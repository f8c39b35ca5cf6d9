"""Every bug planted in transactional-kv is caught in its named campaign; the correct system passes those campaigns."""

from __future__ import annotations

import pytest
from campaign_runs import assert_caught, judged, requests, sentences_of_failures

from faultline.harness.planning import RunRequest
from faultline.registry import load_system

MUTANTS = {
    name: bug
    for name, bug in load_system("transactional-kv").mutants.items()
    if "replication_factor" not in bug.options
}
CAMPAIGNS = sorted({mutant.campaign for mutant in MUTANTS.values()} | {"bank"})
SEEDS_MAX = 60
TWIN_SEEDS = 3


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_bug_planted_in_transactional_kv_is_caught_in_its_campaign_by_one_of_its_checkers(name: str) -> None:
    assert_caught(MUTANTS[name], SEEDS_MAX)


@pytest.mark.rows("TPC-I3", "TPC-I4", "TPC-S16", "TPC-R19", "TPC-R22")
@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_transactional_kv_passes_the_campaigns_that_catch_its_bugs(campaign: str) -> None:
    assert sentences_of_failures(requests(campaign, TWIN_SEEDS)) == []


@pytest.mark.rows("TPC-I1", "TPC-I3", "TPC-I5", "TPC-R22")
@pytest.mark.parametrize("policy", ["error", "wound-wait", "wait-die"])
def test_transactions_are_strictly_serializable_under_each_policy(policy: str) -> None:
    assert sentences_of_failures(requests("transactions", 1, policy=policy)) == []


@pytest.mark.rows("TPC-I4", "TPC-R36", "TPC-R38", "TPC-R42")
@pytest.mark.parametrize("clock", ["hybrid", "lamport", "oracle"])
def test_every_snapshot_adds_up_under_each_clock(clock: str) -> None:
    assert sentences_of_failures(requests("snapshot-reads", 1, clock=clock)) == []


@pytest.mark.rows("TPC-R42")
def test_with_an_oracle_snapshot_reads_miss_nothing_that_was_acknowledged() -> None:
    assert sentences_of_failures(requests("oracle-times", 2)) == []


@pytest.mark.rows("TPC-R35")
def test_write_skew_is_found_under_snapshot_isolation_and_under_no_other() -> None:
    assert sentences_of_failures(requests("write-skew", 2)) != []
    assert sentences_of_failures(requests("write-skew", 2, isolation="serializable")) == []


def test_without_an_oracle_snapshots_of_slow_clocks_are_stale_and_under_locks_nothing_is() -> None:
    assert sentences_of_failures(requests("stale-snapshots", 5)) != []
    assert sentences_of_failures(requests("stale-snapshots", 3, read_only="locks")) == []


def test_every_bug_of_transactional_kv_is_one_of_two_phase_commit() -> None:
    assert [name for name, mutant in MUTANTS.items() if not mutant.id.startswith("TPC-M")] == []


def test_a_run_ends_in_which_an_older_transaction_meets_locks_of_one_that_was_opened_again() -> None:
    request = RunRequest(
        system="transactional-kv", workload="bank", faults=("durability",), seed=0, mutants=("late-put-locks",)
    )
    assert "keeps locks of transaction" in judged(request).sentence
