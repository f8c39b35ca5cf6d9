"""Locks of real stores: owners do not overlap, and a former owner's late write goes in only where nothing fences it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from namespace_fixtures import on_namespaces
from store_runs import run_store

from faultline.harness.history import History
from faultline.harness.plan import PlannedFault
from faultline.harness.verdict import Verdict
from faultline.harness.world.hosts.namespaces.host_set import NamespaceHosts

pytestmark = [pytest.mark.real, pytest.mark.slow]

MS = 1_000
QUICK_SESSIONS = {"tick_ms": "100", "session_timeout_ms": "1500"}
NO_FAIL_OVER = {"down_after_ms": "30000"}
"""Redis promises nothing of locks across a fail-over, which forgets owners and tokens."""


@on_namespaces
@pytest.mark.parametrize(
    ("system", "options", "fencing"),
    [
        ("etcd", {}, "on"),
        ("etcd", {}, "off"),
        ("zookeeper", QUICK_SESSIONS, "on"),
        ("redis-sentinel", NO_FAIL_OVER, "on"),
    ],
    ids=["etcd", "etcd-unfenced", "zookeeper", "redis"],
)
def test_locks_have_one_owner_and_late_writes_are_refused_by_a_fence_alone(
    hosts: NamespaceHosts, tmp_path: Path, system: str, options: dict[str, str], fencing: str
) -> None:
    faults = [PlannedFault("partition", 1_000 * MS, 700 * MS, "leader", {"shape": "leader-alone"})]
    # A late owner sleeps for seconds. In the longer run, no new leader prolongs the leases of some of these owners.
    duration_s = 12.0 if (system, fencing) == ("etcd", "on") else 6.0
    options = {**options, "fencing": fencing}
    result = run_store(hosts, tmp_path, system, faults, workload="locks", options=options, duration_s=duration_s)
    if result is None:
        return
    record, judgement = result
    history = record.history
    late = [row for row, f in enumerate(history.f) if f == "late-write" and history.error[row] != "not-held"]
    assert late, "no owner was late"
    found = {finding.anomaly for finding in judgement.findings}
    if fencing == "on":
        assert judgement.verdict is not Verdict.VIOLATION, judgement.sentence
        if system == "etcd":
            _expect_refusals_of_all_but_owners(history, late)
    else:
        assert found <= {"stale-write-accepted"}
        assert any(history.outcome[row] == "ok" for row in late)


def _expect_refusals_of_all_but_owners(history: History, late: Sequence[int]) -> None:
    """etcd's fence knows the owner, where the fences of the others know the newest token that has written.

    An owner that wrote late may own the lock still: a new leader prolongs all leases. But then no owner came after it.
    """
    assert any(history.error[row] == "stale-token" for row in late), [history.error[row] for row in late]
    acquired = [(history.key[row], history.result[row]["token"]) for row in _successes(history, "acquire")]
    for row in _successes(history, "late-write"):
        token, index = history.result[row]["token"], history.result[row]["index"]
        assert [who for lock, who in acquired if lock == history.key[row] and token < who < index] == []


def _successes(history: History, function: str) -> list[int]:
    return [row for row, f in enumerate(history.f) if f == function and history.outcome[row] == "ok"]
