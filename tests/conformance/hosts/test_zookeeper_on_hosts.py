"""ZooKeeper itself, three members on three hosts: linearizable for reads after a commit, and nothing left behind."""

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
def test_zookeeper_is_linearizable_through_kill_and_partition(hosts: NamespaceHosts, tmp_path: Path) -> None:
    # Two calm seconds come first: on a busy machine hardly a compare-and-set succeeds beside these faults.
    faults = [
        PlannedFault("partition", 2_300 * MS, 700 * MS, "leader", {"shape": "leader-alone"}),
        PlannedFault("kill", 3_800 * MS, 300 * MS, "leader"),
    ]
    # Members must not give each other up in the partition: when epochs follow each other so closely, version 3.8.0 may
    # lose acknowledged writes (ZOOKEEPER-4643).
    result = run_store(hosts, tmp_path, "zookeeper", faults, options={"tick_ms": "1000"}, duration_s=5.5)
    if result is None:
        return
    record, judgement = result
    assert record.statistics["node_starts"] == 4
    assert judgement.verdict is Verdict.PASS, judgement.sentence
    assert "QuorumPeer" in (tmp_path / "nodes" / "athens" / "node.log").read_text()
    for name, running in programs_on(hosts).items():
        assert "java" not in running, name
