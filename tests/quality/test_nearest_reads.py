"""Reads at the nearest follower are faster where distances differ, and no different where they do not."""

from __future__ import annotations

from statistics import median

import msgspec
import pytest

from faultline.harness.plan import Weather
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.registry import resolve

SEEDS = 4
MEASURED_US = 600_000
"""Latencies are sampled this long, from the start of the operations on, before reads are counted."""


def median_read_us(read_from: str, distance_us: int) -> float:
    """The median of the reads of a few calm runs in which clients are up to `distance_us` away from each node."""
    taken: list[int] = []
    for seed in range(SEEDS):
        options = {"read_from": read_from, "follower_reads": "session", "regions": "1"}
        request = RunRequest(
            system="follower-reads", workload="read-write", faults=(), seed=seed, options=options, beyond_promise=True
        )
        parts = resolve(request)
        weather = Weather(client_distance_us_max=distance_us)
        history = run_simulated(msgspec.structs.replace(make_plan(request, parts), weather=weather), parts).history
        taken += [
            history.complete_us[row] - history.invoke_us[row]
            for row in range(len(history))
            if history.f[row] == "read" and history.invoke_us[row] > history.invoke_us[0] + MEASURED_US
        ]
    return median(taken)


@pytest.mark.rows("FR-R4", "FR-R6")
def test_the_nearest_follower_is_found_where_distances_differ() -> None:
    assert median_read_us("nearest", 40_000) < 0.85 * median_read_us("follower", 40_000)


def test_where_everything_is_near_it_does_not_matter_who_is_asked() -> None:
    assert median_read_us("nearest", 0) == pytest.approx(median_read_us("follower", 0), rel=0.05)
