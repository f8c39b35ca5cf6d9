"""Stale messages let clients see a bug that they do not see in calm weather."""

from __future__ import annotations

import pytest

from faultline.harness.judge import judge
from faultline.harness.judgement import Judgement
from faultline.harness.planning import make_plan
from faultline.harness.request import RunRequest
from faultline.harness.run import run_simulated
from faultline.harness.verdict import Verdict
from faultline.registry import resolve

SEEDS = (0, 2)
WRONG_TOTAL = "bank/wrong-total"


def judged(seed: int, stale: str, *planted_bugs: str) -> Judgement:
    """Return the judgement of transfers without any fault."""
    request = RunRequest(
        system="transactional-kv", workload="bank", faults=(), planted_bugs=planted_bugs, seed=seed,
        weather={"stale": stale},
    )  # fmt: skip
    parts = resolve(request)
    return judge(run_simulated(make_plan(request, parts), parts), parts, run_id="stale")


def seen_by_clients(judgement: Judgement) -> bool:
    return WRONG_TOTAL in [finding.signature for finding in judgement.findings]


@pytest.mark.parametrize("seed", SEEDS)
def test_clients_see_a_decision_that_is_carried_out_twice_when_messages_are_stale(seed: int) -> None:
    assert seen_by_clients(judged(seed, "0.02", "commit-replayed"))


@pytest.mark.parametrize("seed", SEEDS)
def test_clients_see_nothing_of_that_bug_in_calm_weather(seed: int) -> None:
    assert not seen_by_clients(judged(seed, "0", "commit-replayed"))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_correct_system_passes_with_the_same_stale_messages(seed: int) -> None:
    assert judged(seed, "0.02").verdict is Verdict.PASS
