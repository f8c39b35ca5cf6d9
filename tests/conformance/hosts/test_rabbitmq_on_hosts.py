"""RabbitMQ on three hosts: what was confirmed comes out once though the leader is cut off, and nothing of it stays."""

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
def test_confirmed_elements_of_rabbitmq_come_out_though_its_leader_is_cut_off(
    hosts: NamespaceHosts, tmp_path: Path
) -> None:
    faults = [PlannedFault("partition", 500 * MS, 1_000 * MS, "leader", {"shape": "one"})]
    result = run_store(hosts, tmp_path, "rabbitmq", faults, workload="queue", duration_s=4.0)
    if result is None:
        return
    record, judgement = result
    assert record.statistics["node_starts"] == 3
    # Unknown: what was lent to a channel whose end RabbitMQ has not noticed yet is missing.
    # Delivered again: what an acknowledgement took back that only the member which was cut off had heard.
    found = {finding.anomaly for finding in judgement.findings}
    assert judgement.verdict in (Verdict.PASS, Verdict.UNKNOWN) or found == {"duplicated-delivery"}, judgement.sentence
    assert any(row.f == "drain" and row.outcome == "ok" and row.result for row in record.history.rows())
    assert "Starting RabbitMQ" in (tmp_path / "nodes" / "athens" / "node.log").read_text()
    for name, running in programs_on(hosts).items():
        assert not {"beam.smp", "epmd", "erl_child_setup"} & running, name
