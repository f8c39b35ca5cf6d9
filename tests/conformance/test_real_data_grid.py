"""data-grid as real processes: backups take over from owners that are cut off, killed and paused."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept_promises import assert_kept

from faultline.harness.plan import PlannedFault
from faultline.harness.planning import RunRequest

FAULTS = (
    PlannedFault("kill", 800_000, 500_000, "leader"),
    PlannedFault("pause", 2_200_000, 600_000, "one"),
)


@pytest.mark.real
@pytest.mark.slow
def test_a_grid_of_real_processes_loses_nothing_while_a_copy_lives(tmp_path: Path) -> None:
    request = RunRequest(
        system="data-grid",
        workload="register",
        seed=3,
        nodes=5,
        world="local",
        duration_s=4.0,
        faults=("leadership",),
    )
    assert_kept(request, tmp_path, faults=FAULTS)
