"""Connections between processes of this machine are killed and reset, links are narrow, and the store bears it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from faultline.harness.errors import UsageError
from faultline.harness.plan import PlannedFault
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.world.local.world import run_local
from faultline.registry import resolve

FAULTS = (
    PlannedFault("connection-kill", 300_000, 100_000, "all"),
    PlannedFault("connection-reset", 600_000, 700_000, "leader"),
    PlannedFault("packet-rate", 1_500_000, 400_000, "all", {"rate_kbit_per_s": 500}),
)


@pytest.mark.real
@pytest.mark.slow
def test_connections_are_killed_and_reset_and_the_store_stays_linearizable(tmp_path: Path) -> None:
    request = RunRequest(system="consistent-core", seed=2, world="local", duration_s=2.5, faults=())
    parts = resolve(request)
    record = run_local(msgspec.structs.replace(make_plan(request, parts), faults=FAULTS), parts, folder=tmp_path)
    assert (record.errors, record.breaches) == ([], [])
    assert [(fault.kind, fault.applied) for fault in record.faults] == [(fault.kind, None) for fault in FAULTS]
    assert len(record.faults[0].links) == 6 and "connections" in record.faults[0].description
    assert {"connections-killed", "connections-reset", "links-narrowed"} <= set(record.marks)
    linearizability, *_ = parts.checkers
    assert linearizability.check(record.history, record).verdict == "pass"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.kind)
def test_the_simulated_world_has_no_connections_and_no_bytes_and_says_so(fault: PlannedFault) -> None:
    request = RunRequest(system="consistent-core", seed=2, duration_s=1.0, faults=())
    parts = resolve(request)
    plan = msgspec.structs.replace(make_plan(request, parts), faults=(fault,))
    missing = fault.kind.removeprefix("packet-")
    with pytest.raises(UsageError, match=f"The simulated world cannot inject {fault.kind}: it lacks {missing}"):
        run_simulated(plan, parts)


@pytest.mark.parametrize("kind", ["packet-reorder", "packet-corrupt", "link-down"])
def test_the_local_world_has_no_packets_and_no_links_to_take_down_and_says_so(kind: str, tmp_path: Path) -> None:
    request = RunRequest(system="consistent-core", seed=2, world="local", duration_s=1.0, faults=())
    parts = resolve(request)
    plan = msgspec.structs.replace(make_plan(request, parts), faults=(PlannedFault(kind, 0, 1_000),))
    with pytest.raises(UsageError, match=f"The local world cannot inject {kind}"):
        run_local(plan, parts, folder=tmp_path)
