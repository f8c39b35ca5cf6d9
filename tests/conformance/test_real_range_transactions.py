"""range-transactions as three processes: ranges move under open transactions over TCP, and half of none is seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept_promises import assert_kept

from faultline.harness.plan import PlannedFault
from faultline.harness.planning import RunRequest

FAULTS = (PlannedFault("partition", 300_000, 400_000, "one"), PlannedFault("kill", 1_000_000, 400_000, "one"))


@pytest.mark.real
@pytest.mark.slow
def test_transactions_are_atomic_on_ranges_that_move_between_real_processes(tmp_path: Path) -> None:
    request = RunRequest(
        system="range-transactions",
        workload="bank",
        seed=3,
        world="local",
        duration_s=2.0,
        faults=("kill", "partition"),
        options={"move_every_ms": "200", "error_bound_ms": "20"},
    )
    record = assert_kept(request, tmp_path, faults=FAULTS)
    assert "range-moved" in record.marks
