"""transactional-kv as three processes: half of a transfer is never seen, over TCP and SIGKILL as in virtual time.

Replicated, the promise is the same, and the invariants of groups are read from the nodes' own traces.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from kept_promises import assert_kept

from faultline.harness.plan import PlannedFault
from faultline.harness.planning import RunRequest

FAULTS = (PlannedFault("partition", 300_000, 400_000, "one"), PlannedFault("kill", 1_000_000, 400_000, "one"))


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize("replication_factor", ["1", "3"])
def test_transactions_are_atomic_as_real_processes(tmp_path: Path, replication_factor: str) -> None:
    request = RunRequest(
        system="transactional-kv",
        workload="bank",
        seed=3,
        world="local",
        duration_s=2.0,
        faults=("kill", "partition"),
        options={"replication_factor": replication_factor},
    )
    record = assert_kept(request, tmp_path, faults=FAULTS)
    assert ("group-served-by-new-leader" in record.marks) == (replication_factor == "3")
