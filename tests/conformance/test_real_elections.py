"""Each other style of election as processes over real sockets: a killed leader is replaced, and the history holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept_promises import assert_kept

from faultline.harness.plan import PlannedFault
from faultline.harness.planning import RunRequest


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
    record = assert_kept(request, tmp_path, faults=(PlannedFault("kill", 500_000, 1_200_000, "leader"),))
    assert record.marks.get("leader-changed", 0) > 0
