"""Bugs planted in the leaderless systems are caught in their campaigns; the correct systems pass there."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import pytest

from faultline.campaign.planfile import load_plan
from faultline.harness.judge import judge
from faultline.harness.judgement import Judgement
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.system import Mutant
from faultline.harness.verdict import Verdict
from faultline.registry import load_system, resolve

SYSTEMS = ("quorum-register", "quorum-kv")
BUGS = [(system, name) for system in SYSTEMS for name in sorted(load_system(system).mutants)]
SEEDS_MAX = 100
TWIN_SEEDS = 8


def requests(campaign: str, seeds: int, mutants: tuple[str, ...] = (), **options: str) -> Iterator[RunRequest]:
    plan = load_plan(campaign)
    cells = [cell for cell in plan.cells() if not cell.mutants]
    for seed, cell in itertools.product(range(seeds), cells):
        yield RunRequest(
            system=cell.system,
            workload=cell.workload,
            faults=cell.faults,
            seed=seed,
            mutants=mutants,
            options={**plan.options, **options},
            nodes=plan.nodes,
            operations=plan.operations,
        )


def judged(request: RunRequest) -> Judgement:
    parts = resolve(request)
    return judge(run_simulated(make_plan(request, parts), parts), parts, run_id=f"seed-{request.seed}")


def names_of(judgement: Judgement) -> set[str]:
    return {finding.checker for finding in judgement.findings} | {finding.anomaly for finding in judgement.findings}


def mutants_of(system: str) -> Mapping[str, Mutant]:
    return load_system(system).mutants


@pytest.mark.parametrize(("system", "name"), BUGS)
def test_a_planted_quorum_bug_is_caught_in_its_campaign_by_one_of_its_checkers(system: str, name: str) -> None:
    mutant = mutants_of(system)[name]
    seen: set[str] = set()
    for request in requests(mutant.campaign, SEEDS_MAX, (name,)):
        judgement = judged(request)
        if judgement.verdict is Verdict.VIOLATION:
            seen |= names_of(judgement)
        if seen & set(mutant.caught_by):
            return
    pytest.fail(f"{name} was not caught in {SEEDS_MAX} seeds of {mutant.campaign}; seen: {sorted(seen)}")


@pytest.mark.rows("VVC-I3", "VVC-I4")
@pytest.mark.parametrize(
    "campaign", sorted({mutant.campaign for system in SYSTEMS for mutant in mutants_of(system).values()})
)
def test_the_correct_quorum_system_passes_the_campaign_that_catches_planted_bugs(campaign: str) -> None:
    judgements = [judged(request) for request in requests(campaign, TWIN_SEEDS)]
    assert [judgement.sentence for judgement in judgements if judgement.verdict is not Verdict.PASS] == []


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_planted_quorum_bug_says_what_it_breaks_and_how_it_shows(system: str) -> None:
    for name, mutant in mutants_of(system).items():
        assert mutant.name == name
        assert mutant.summary and mutant.shows_as and mutant.caught_by and mutant.id
        assert mutant.worlds == ("simulated", "local") or mutant.why_not


def test_without_the_write_back_some_run_shows_time_running_backwards_which_its_twin_does_not() -> None:
    for off, on in zip(
        requests("quorums", 25, write_back="off"), requests("quorums", 25, write_back="on"), strict=True
    ):
        judgement = judged(off)
        if judgement.verdict is Verdict.VIOLATION:
            assert {(finding.checker, finding.anomaly) for finding in judgement.findings} == {
                ("linearizability", "stale-read")
            }
            assert judged(on).verdict is Verdict.PASS
            return
    pytest.fail("no anomaly in 25 seeds")


@pytest.mark.parametrize(("versions", "expected"), [("last-write-wins", Verdict.VIOLATION), ("dotted", Verdict.PASS)])
def test_where_the_last_writer_wins_acknowledged_writes_are_lost(versions: str, expected: Verdict) -> None:
    judgements = [judged(request) for request in requests("siblings", 3, versions=versions)]
    assert {judgement.verdict for judgement in judgements} == {expected}
    anomalies = {finding.anomaly for judgement in judgements for finding in judgement.findings}
    assert ("lost-write" in anomalies) == (expected is Verdict.VIOLATION)


@pytest.mark.parametrize("versions", ["server-id", "client-id"])
def test_counters_per_node_and_per_client_lose_nothing_either(versions: str) -> None:
    judgements = [judged(request) for request in requests("siblings", 5, versions=versions)]
    assert {judgement.verdict for judgement in judgements} == {Verdict.PASS}
