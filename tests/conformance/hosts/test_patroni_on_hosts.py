"""PostgreSQL with Patroni on three hosts: three programs on each come up as one cluster, and nothing of them stays."""

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
def test_patroni_makes_one_cluster_that_outlives_the_pause_of_its_primary(
    hosts: NamespaceHosts, tmp_path: Path
) -> None:
    faults = [PlannedFault("pause", 500 * MS, 500 * MS, "leader")]
    result = run_store(hosts, tmp_path, "patroni", faults, workload="set")
    if result is None:
        return
    record, judgement = result
    assert record.statistics["node_starts"] == 3
    assert judgement.verdict is Verdict.PASS, judgement.sentence
    logs = [(tmp_path / "nodes" / node / "node.log").read_text() for node in record.plan.nodes]
    assert sum("trying to bootstrap a new cluster" in log for log in logs) == 1
    for name, running in programs_on(hosts).items():
        assert not {"postgres", "patroni", "etcd"} & running, name
