"""partitioned-kv as four processes: partitions move over TCP and real disks as they do in virtual time."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept_promises import assert_kept

from faultline.harness.plan import PlannedFault
from faultline.harness.planning import RunRequest

FAULTS = (PlannedFault("partition", 800_000, 400_000, "one"), PlannedFault("kill", 1_500_000, 400_000, "one"))


@pytest.mark.real
@pytest.mark.slow
def test_partitions_move_between_real_processes_and_every_key_stays_linearizable(tmp_path: Path) -> None:
    request = RunRequest(
        system="partitioned-kv",
        workload="register",
        seed=5,
        world="local",
        nodes=4,
        duration_s=2.5,
        faults=("kill", "partition"),
        options={"reassign_every_ms": "200", "hand_on": "6", "late_nodes": "1", "join_after_ms": "500"},
    )
    record = assert_kept(request, tmp_path, faults=FAULTS)
    assert {"hosts-already", "not-hosted-refused", "late-move-ignored"} & set(record.marks)
