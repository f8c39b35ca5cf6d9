"""MariaDB with Galera on three hosts: linearizable rows through a partition, and nothing of it stays."""

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
def test_rows_of_galera_are_linearizable_through_a_partition(hosts: NamespaceHosts, tmp_path: Path) -> None:
    faults = [PlannedFault("partition", 500 * MS, 500 * MS, "one", {"shape": "one"})]
    result = run_store(hosts, tmp_path, "galera", faults, duration_s=4.0)
    if result is None:
        return
    record, judgement = result
    assert record.statistics["node_starts"] == 3
    assert judgement.verdict is Verdict.PASS, judgement.sentence
    assert "WSREP" in (tmp_path / "nodes" / "athens" / "node.log").read_text()
    for name, running in programs_on(hosts).items():
        assert "mariadbd" not in running, name
