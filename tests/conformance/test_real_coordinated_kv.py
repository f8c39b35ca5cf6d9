"""coordinated-kv as six processes: three of the core, three with data, over TCP and real disks."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from faultline.harness.plan import PlannedFault
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.world.real.local import run_local
from faultline.registry import resolve

FAULTS = (
    PlannedFault("kill", 1_500_000, 600_000, "leader"),
    PlannedFault("partition", 2_800_000, 600_000, "leader", {"shape": "leader-alone"}),
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
        duration_s=4.5,
        faults=("kill", "partition"),
        options={"aim": "owner", "partitions": "3", "lease_ttl_ms": "1000", "client_timeout_ms": "3000"},
    )
    parts = resolve(request)
    plan = msgspec.structs.replace(make_plan(request, parts), faults=FAULTS)
    record = run_local(plan, parts, folder=tmp_path)
    assert record.errors == []
    assert record.breaches == []
    assert [interval.applied for interval in record.faults] == [None, None]
    assert "table-claimed" in record.marks
    promise, *_ = parts.checkers
    assert promise.check(record.history, record).verdict == "pass"
