"""Clients of real processes that act on what they read: answers of one client become values of another one's writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept_promises import assert_kept

from faultline.harness.history import History
from faultline.harness.plan import PlannedFault
from faultline.harness.planning import RunRequest

FAULTS = (PlannedFault("partition", 300_000, 400_000, "one"), PlannedFault("kill", 1_000_000, 400_000, "one"))


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize(
    ("system", "workload"),
    [
        ("timestamped-kv", "causal-writes"),
        ("follower-reads", "moved-sessions"),
        ("consistent-core", "dependent-writes"),
    ],
)
def test_clients_of_processes_write_what_they_read_and_find_the_cause_of_each_effect(
    system: str, workload: str, tmp_path: Path
) -> None:
    history = kept(system, workload, tmp_path)
    causes = [value[1] for f, value in zip(history.f, history.value, strict=True) if f == "write"]
    answers = [result for f, result in zip(history.f, history.result, strict=True) if f == "read"]
    assert any(cause is not None and cause in answers for cause in causes)


@pytest.mark.real
@pytest.mark.slow
def test_transactions_of_processes_write_the_registers_that_they_read_and_lose_no_update(tmp_path: Path) -> None:
    history = kept("transactional-kv", "lost-update", tmp_path)
    updates = [one for one in history.result if one and any(kind == "r" and value for kind, _, value in one)]
    assert any(kind == "w" for one in updates for kind, _, _ in one)


def kept(system: str, workload: str, folder: Path) -> History:
    request = RunRequest(
        system=system, workload=workload, seed=3, world="local", duration_s=5.0, faults=("kill", "partition")
    )
    return assert_kept(request, folder, faults=FAULTS).history
