"""Channels work among processes, too: batches in flight over one connection for each pair, and one register."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept_promises import assert_kept

from faultline.harness.plan import PlannedOperation
from faultline.harness.planning import RunRequest

END_US = 1_000_000


@pytest.mark.real
@pytest.mark.slow
def test_busy_clients_are_served_over_channels_and_see_one_register(tmp_path: Path) -> None:
    request = RunRequest(
        system="consistent-core",
        world="local",
        faults=(),
        duration_s=1.0,
        workers=8,
        options={"wire": "channel", "find_leader": "forward"},
    )
    operations = tuple(
        PlannedOperation(worker, 0, "write" if number % 3 else "read", f"k{number % 4}", 8 * number + worker)
        for number in range(40)
        for worker in range(8)
    )
    record = assert_kept(request, tmp_path, operations=operations, heal_us=END_US, end_us=END_US + 1)
    assert record.marks["batch-sent"] > 0 and record.marks["request-forwarded"] > 0
