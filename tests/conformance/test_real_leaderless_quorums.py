"""quorum-register and quorum-kv as three processes: the promises they keep in virtual time they keep over TCP."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from faultline.harness.plan import PlannedFault
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.world.real.local import run_local
from faultline.registry import resolve

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
    parts = resolve(request)
    plan = msgspec.structs.replace(make_plan(request, parts), faults=FAULTS)
    record = run_local(plan, parts, folder=tmp_path)
    assert record.errors == []
    assert record.breaches == []
    assert [interval.applied for interval in record.faults] == [None, None]
    promise, *_ = parts.checkers
    assert promise.check(record.history, record).verdict == "pass"
