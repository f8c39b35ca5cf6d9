"""A heal that ends after its run has given up on it disturbs no other run."""

from __future__ import annotations

import asyncio
from pathlib import Path

from faultline.harness.plan import Plan
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.world.local.cluster import LocalCluster
from faultline.harness.world.local.fault_port import local_fault_port
from faultline.harness.world.local.run import RealRun
from faultline.registry import resolve


def test_a_heal_that_is_done_after_the_run_has_ended_is_not_reported(tmp_path: Path) -> None:
    request = RunRequest(system="consistent-core", world="local", duration_s=1.0, faults=())
    parts = resolve(request)
    plan: Plan = make_plan(request, parts)
    cluster = LocalCluster(plan, parts.system_path, tmp_path)
    run = RealRun(plan, parts, cluster, lambda loop: local_fault_port(cluster, loop), world="local")
    run._loop = asyncio.new_event_loop()
    run._healed = asyncio.Event()
    run._loop.close()
    run._tell(run._note_healed)
    assert not run._healed.is_set()
