"""paxos-kv as three processes: no node leads, faults bite all the same, and the history is linearizable."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept_promises import assert_kept

from faultline.harness.plan import PlannedFault
from faultline.harness.planning import RunRequest

FAULTS = (
    PlannedFault("partition", 400_000, 600_000, "one"),
    PlannedFault("pause", 1_300_000, 500_000, "one"),
    PlannedFault("kill", 2_100_000, 500_000, "one"),
)


@pytest.mark.real
@pytest.mark.slow
def test_a_system_without_a_leader_starts_heals_and_passes_as_real_processes(tmp_path: Path) -> None:
    request = RunRequest(
        system="paxos-kv", seed=3, world="local", duration_s=3.0, faults=("kill", "pause", "partition")
    )
    assert_kept(request, tmp_path, faults=FAULTS)
