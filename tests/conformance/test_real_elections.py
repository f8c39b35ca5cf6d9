"""Each other style of election as processes over real sockets: a killed leader is replaced, and the history holds."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from faultline.harness.plan import PlannedFault
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.world.real.local import run_local
from faultline.registry import resolve


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.rows("LDR-S2", "LDR-R12", "LDR-R14")
@pytest.mark.parametrize(("election", "nodes"), [("zab", 3), ("external-store", 4)])
def test_a_killed_leader_is_replaced_in_real_processes_too(election: str, nodes: int, tmp_path: Path) -> None:
    request = RunRequest(
        system="consistent-core",
        seed=3,
        world="local",
        duration_s=2.5,
        faults=("kill",),
        nodes=nodes,
        options={"election": election, "failure_detector": "phi-accrual"},
    )
    parts = resolve(request)
    faults = (PlannedFault("kill", 500_000, 1_200_000, "leader"),)
    record = run_local(msgspec.structs.replace(make_plan(request, parts), faults=faults), parts, folder=tmp_path)
    assert record.errors == []
    assert record.breaches == []
    assert [interval.applied for interval in record.faults] == [None]
    assert record.marks.get("leader-changed", 0) > 0
    linearizability, *_ = parts.checkers
    assert linearizability.check(record.history, record).verdict == "pass"
