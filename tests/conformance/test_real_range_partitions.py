"""range-kv as three processes: ranges split and move over TCP as they do in virtual time, and the promises hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept_promises import assert_kept

from faultline.harness.plan import PlannedFault
from faultline.harness.planning import RunRequest

FAULTS = (PlannedFault("partition", 300_000, 400_000, "one"), PlannedFault("kill", 900_000, 400_000, "leader"))
OPTIONS = {"splits": "k12", "partition_size_max": "12", "split_check_ms": "100", "spread": "after-split"}


@pytest.mark.real
@pytest.mark.slow
def test_ranges_that_split_and_move_keep_their_promise_as_real_processes(tmp_path: Path) -> None:
    request = RunRequest(
        system="range-kv",
        workload="scans",
        seed=3,
        world="local",
        duration_s=2.0,
        faults=("kill", "partition"),
        options=OPTIONS,
    )
    record = assert_kept(request, tmp_path, faults=FAULTS)
    assert record.marks["partition-split"]
    assert record.marks["partition-moved"]
