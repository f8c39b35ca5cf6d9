"""Every bug that only replicated partitions can have is caught in its campaign; the correct system passes it.

Each is looked for from a seed on at which it is known to show: a run of three groups takes half a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import msgspec
import pytest
from campaign_runs import judged, requests, sentences_of_failures

from faultline.harness.planning import RunRequest
from faultline.harness.verdict import Verdict
from faultline.registry import load_system

BUGS = {
    name: bug
    for name, bug in load_system("transactional-kv").mutants.items()
    if bug.options.get("replication_factor") == "3"
}
SHOWS_FROM_SEED = {
    "vote-before-replication": 7,
    "decision-before-replication": 7,
    "serves-when-elected": 0,
    "locks-not-taken-over": 0,
    "deposed-leader-lets-go": 3,
    "deposed-leader-answers": 1,
    "participants-by-address": 5,
    "stamped-when-replayed": 0,
}
RUNS_MAX = 12


def runs_from(campaign: str, seed: int, mutants: tuple[str, ...] = ()) -> Iterator[RunRequest]:
    return (msgspec.structs.replace(request, seed=request.seed + seed) for request in requests(campaign, 50, mutants))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(BUGS))
def test_a_bug_of_replicated_partitions_is_caught_in_its_campaign_by_one_of_its_checkers(name: str) -> None:
    bug = BUGS[name]
    seen: set[str] = set()
    for request in islice(runs_from(bug.campaign, SHOWS_FROM_SEED[name], (name,)), RUNS_MAX):
        judgement = judged(request)
        if judgement.verdict is Verdict.VIOLATION:
            seen |= {found for finding in judgement.findings for found in (finding.checker, finding.anomaly)}
        if seen & set(bug.caught_by):
            return
    pytest.fail(f"{name} was not caught in {RUNS_MAX} runs of {bug.campaign}; seen: {sorted(seen)}")


@pytest.mark.slow
@pytest.mark.rows("TPC-R44", "TPC-S14", "TPC-I1", "TPC-I5")
@pytest.mark.parametrize("campaign", sorted({bug.campaign for bug in BUGS.values()}))
@pytest.mark.parametrize("seed", [0, 7])
def test_replicated_partitions_pass_the_campaigns_that_catch_their_bugs(campaign: str, seed: int) -> None:
    assert sentences_of_failures(islice(runs_from(campaign, seed), 2)) == []


@pytest.mark.slow
@pytest.mark.rows("TPC-R44", "TPC-I4", "TPC-S16")
def test_banks_on_replicated_partitions_add_up_while_leaders_die() -> None:
    assert sentences_of_failures(requests("bank", 1, replication_factor="3")) == []


def test_the_bugs_of_replicated_partitions_are_those_whose_first_seed_is_known() -> None:
    assert sorted(BUGS) == sorted(SHOWS_FROM_SEED)
