"""The reference system as three processes: faults bite, everything heals, and the history is linearizable."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from faultline.harness.plan import PlannedFault
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.world.real.local import run_local
from faultline.registry import resolve

FAULTS = (
    PlannedFault("partition", 500_000, 800_000, "leader"),
    PlannedFault("pause", 1_700_000, 800_000, "leader"),
    PlannedFault("kill", 2_900_000, 700_000, "leader"),
)


@pytest.mark.real
@pytest.mark.slow
def test_the_correct_system_passes_a_short_real_run_with_kills_pauses_and_cuts(tmp_path: Path) -> None:
    request = RunRequest(
        system="consistent-core", seed=2, world="local", duration_s=4.0, faults=("kill", "pause", "partition")
    )
    parts = resolve(request)
    plan = msgspec.structs.replace(make_plan(request, parts), faults=FAULTS)
    record = run_local(plan, parts, folder=tmp_path)
    assert record.errors == []
    assert record.breaches == []
    assert [interval.kind for interval in record.faults] == ["partition", "pause", "kill"]
    assert [interval.applied for interval in record.faults] == [None, None, None]
    assert record.statistics["messages_cut"] > 0
    linearizability, *_ = parts.checkers
    assert linearizability.check(record.history, record).verdict == "pass"
