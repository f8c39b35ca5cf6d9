"""Reads from followers as three processes: a session keeps its promise while leaders are cut off, paused and killed."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept_promises import assert_kept

from faultline.harness.plan import PlannedFault
from faultline.harness.planning import RunRequest

FAULTS = (
    PlannedFault("partition", 500_000, 700_000, "follower"),
    PlannedFault("kill", 1_500_000, 600_000, "leader"),
)


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.rows("FR-I1", "FR-I2")
def test_sessions_keep_their_promise_in_a_short_real_run_with_reads_from_the_nearest_followers(tmp_path: Path) -> None:
    request = RunRequest(
        system="follower-reads",
        workload="follower-reads",
        seed=3,
        world="local",
        duration_s=3.0,
        faults=("kill", "partition"),
        options={"read_from": "nearest", "follower_reads": "session", "store": "versioned"},
    )
    record = assert_kept(request, tmp_path, faults=FAULTS)
    assert record.marks["follower-read-served"] > 0
