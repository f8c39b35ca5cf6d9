"""PostgreSQL itself, a primary and two standbys on three hosts: serializable, and left with nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from namespace_fixtures import on_namespaces
from store_runs import programs_on, run_store

from faultline.harness.plan import PlannedFault
from faultline.harness.verdict import Verdict
from faultline.harness.world.hosts.namespaces.host_set import NamespaceHosts

pytestmark = [pytest.mark.real, pytest.mark.slow]

MS = 1_000


@on_namespaces
def test_postgresql_is_serializable_through_kill_and_partition(hosts: NamespaceHosts, tmp_path: Path) -> None:
    faults = [
        PlannedFault("partition", 300 * MS, 500 * MS, "leader", {"shape": "leader-alone"}),
        PlannedFault("kill", 1_300 * MS, 300 * MS, "leader"),
    ]
    result = run_store(hosts, tmp_path, "postgresql", faults, workload="txn-append")
    if result is None:
        return
    record, judgement = result
    assert record.statistics["node_starts"] == 4
    assert judgement.verdict is Verdict.PASS, judgement.sentence
    assert "streaming WAL from primary" in (tmp_path / "nodes" / "cyrene" / "node.log").read_text()
    for name, running in programs_on(hosts).items():
        assert "postgres" not in running, name


@on_namespaces
@pytest.mark.parametrize(
    ("isolation", "model"),
    [
        ("serializable", "strict-serializable"),
        ("repeatable-read", "strong-snapshot-isolation"),
        ("read-committed", "read-committed"),
    ],
)
def test_selections_by_a_condition_are_isolated_as_postgresql_promises(
    hosts: NamespaceHosts, tmp_path: Path, isolation: str, model: str
) -> None:
    result = run_store(hosts, tmp_path, "postgresql", [], workload="predicates", options={"isolation": isolation})
    if result is None:
        return
    _, judgement = result
    order = next(check for check in judgement.checks if check.checker == "closed-predicate")
    assert order.verdict is Verdict.PASS, order.sentence
    assert order.detail["model"] == model
