"""Leases and watches as three processes: owners and watchers are not deceived while leaders are cut off and killed."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept_promises import assert_kept

from faultline.harness.plan import PlannedFault
from faultline.harness.planning import RunRequest

FAULTS = (
    PlannedFault("partition", 500_000, 600_000, "leader"),
    PlannedFault("kill", 1_500_000, 600_000, "leader"),
)


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize(("workload", "mark"), [("locks", "lease-refreshed"), ("watches", "events-replayed")])
def test_leases_and_watches_keep_their_promise_in_a_short_real_run(tmp_path: Path, workload: str, mark: str) -> None:
    request = RunRequest(
        system="coordination-service",
        workload=workload,
        seed=3,
        world="local",
        duration_s=3.0,
        faults=("kill", "partition"),
        options={"lease_ttl_ms": "400"},
    )
    record = assert_kept(request, tmp_path, faults=FAULTS)
    assert record.marks[mark] > 0
