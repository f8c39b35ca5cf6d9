"""Batching works among processes, too: of commands in a log and of requests on channels, and the history is
linearizable."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept_promises import assert_kept

from faultline.harness.plan import PlannedOperation
from faultline.harness.planning import RunRequest

END_US = 1_000_000


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "rounds", "marks"),
    [
        ({"batch_linger_ms": "3", "in_flight_max": "5"}, 60, ("commands-batched",)),
        ({"wire": "channel", "find_leader": "forward"}, 40, ("batch-sent", "request-forwarded")),
    ],
    ids=["commands", "channels"],
)
def test_busy_clients_are_served_in_batches_and_see_one_register(
    tmp_path: Path, options: dict[str, str], rounds: int, marks: tuple[str, ...]
) -> None:
    request = RunRequest(system="consistent-core", world="local", faults=(), duration_s=1.0, workers=8, options=options)
    operations = tuple(
        PlannedOperation(worker, 0, "write" if number % 3 else "read", f"k{number % 4}", 8 * number + worker)
        for number in range(rounds)
        for worker in range(8)
    )
    record = assert_kept(request, tmp_path, operations=operations, heal_us=END_US, end_us=END_US + 1)
    assert all(record.marks[mark] > 0 for mark in marks)
