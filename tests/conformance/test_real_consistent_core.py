"""The reference system as three processes: faults bite, everything heals, and the history is linearizable."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept_promises import assert_kept

from faultline.harness.plan import PlannedFault
from faultline.harness.planning import RunRequest

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
    record = assert_kept(request, tmp_path, faults=FAULTS)
    assert [interval.kind for interval in record.faults] == ["partition", "pause", "kill"]
    assert record.statistics["messages_cut"] > 0


COMPACTION = {
    "snapshot_every_entries": "20",
    "segment_size_bytes": "1024",
    "log_cleaning_interval_ms": "50",
    "snapshot_chunk_bytes": "100",
}


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.rows("LWM-R1", "LWM-S4")
def test_logs_are_cut_short_on_real_disks_and_a_follower_that_was_away_installs_a_snapshot(tmp_path: Path) -> None:
    request = RunRequest(system="consistent-core", seed=2, world="local", duration_s=4.0, options=COMPACTION)
    away = PlannedFault("kill", 300_000, 2_500_000, "follower")
    record = assert_kept(request, tmp_path, faults=(away,))
    assert {"snapshot-taken", "log-cleaned", "snapshot-installed"} <= set(record.marks)
