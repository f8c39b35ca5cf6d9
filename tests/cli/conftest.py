"""Fixtures of the command-line tests."""

import pytest

from faultline.harness.judge import judge
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.verdict import Verdict
from faultline.registry import resolve


@pytest.fixture(scope="session")
def violating_seed() -> int:
    """The first seed under which the planted bug stale-read shows with the defaults of `faultline run`."""
    parts = resolve(RunRequest(system="consistent-core"))
    for seed in range(200):
        plan = make_plan(RunRequest(system="consistent-core", mutants=("stale-read",), seed=seed), parts)
        if judge(run_simulated(plan, parts), parts, run_id="search").verdict is Verdict.VIOLATION:
            return seed
    raise AssertionError("stale-read showed in none of 200 seeds")
