"""quorum-register and quorum-kv as three processes: the promises they keep in virtual time they keep over TCP."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept_promises import assert_kept

from faultline.harness.plan import PlannedFault
from faultline.harness.planning import RunRequest

FAULTS = (PlannedFault("partition", 300_000, 500_000, "one"), PlannedFault("kill", 1_000_000, 400_000, "one"))


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize(("system", "workload"), [("quorum-register", "read-write"), ("quorum-kv", "siblings")])
def test_quorums_without_a_leader_keep_their_promise_as_real_processes(
    system: str, workload: str, tmp_path: Path
) -> None:
    request = RunRequest(
        system=system, workload=workload, seed=3, world="local", duration_s=2.0, faults=("kill", "partition")
    )
    assert_kept(request, tmp_path, faults=FAULTS)
