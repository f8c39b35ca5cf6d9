"""logged-store as real processes: a killed server recovers from its log and its file, and no write is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept_promises import assert_kept

from faultline.harness.plan import PlannedFault
from faultline.harness.planning import RunRequest

FAULTS = (
    PlannedFault("kill", 500_000, 300_000, "all"),
    PlannedFault("pause", 1_200_000, 300_000, "one"),
    PlannedFault("kill", 1_900_000, 300_000, "all"),
)


@pytest.mark.real
@pytest.mark.slow
def test_servers_without_copies_recover_from_their_own_disks_as_real_processes(tmp_path: Path) -> None:
    request = RunRequest(
        system="logged-store",
        workload="read-write",
        options={"store_every_entries": "10"},
        seed=3,
        world="local",
        duration_s=3.0,
        faults=("kill", "pause"),
    )
    assert_kept(request, tmp_path, faults=FAULTS)
