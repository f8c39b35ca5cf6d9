"""coordinated-kv as six processes: three of the core, three with data, over TCP and real disks."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept_promises import assert_kept

from faultline.harness.plan import PlannedFault
from faultline.harness.planning import RunRequest

FAULTS = (
    PlannedFault("kill", 1_500_000, 600_000, "leader"),
    PlannedFault("partition", 5_000_000, 600_000, "leader", {"shape": "leader-alone"}),
)


@pytest.mark.real
@pytest.mark.slow
def test_owners_of_partitions_die_and_are_cut_off_as_processes_and_every_key_stays_linearizable(tmp_path: Path) -> None:
    request = RunRequest(
        system="coordinated-kv",
        workload="register",
        seed=5,
        world="local",
        nodes=6,
        duration_s=6.5,  # on a busy machine a killed process takes three seconds to come back
        faults=("kill", "partition"),
        options={"aim": "owner", "partitions": "3", "lease_ttl_ms": "1000", "client_timeout_ms": "3000"},
    )
    record = assert_kept(request, tmp_path, faults=FAULTS)
    assert "table-claimed" in record.marks
