"""NATS itself on three hosts: a bucket is made, a follower dies and comes back, and its leader's reads stay true."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from namespace_fixtures import on_namespaces
from store_runs import programs_on

from faultline.harness.errors import HarnessError
from faultline.harness.judge import judge
from faultline.harness.plan import PlannedFault
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.verdict import Verdict
from faultline.harness.world.hosts.namespaces.host_set import NamespaceHosts
from faultline.harness.world.hosts.run import run_on_hosts
from faultline.registry import resolve

pytestmark = [pytest.mark.real, pytest.mark.slow]

MS = 1_000


@on_namespaces
def test_reads_of_the_leader_are_linearizable_while_a_follower_is_killed(hosts: NamespaceHosts, tmp_path: Path) -> None:
    request = RunRequest(system="nats", workload="read-write", world="hosts", seed=1, duration_s=2.5)
    parts = resolve(request)
    faults = (PlannedFault("kill", 100 * MS, 1_000 * MS, "follower"),)
    plan = msgspec.structs.replace(make_plan(request, parts), faults=faults)
    if hosts.fleet["n1"].run("PATH=$PATH:/usr/sbin command -v nats-server", check=False).exit_code:
        with pytest.raises(HarnessError, match="The host n1 has no nats-server") as refused:
            run_on_hosts(plan, parts, hosts, folder=tmp_path)
        assert "apt-get install nats-server" in refused.value.next_step
        return
    record = run_on_hosts(plan, parts, hosts, folder=tmp_path)
    assert record.errors == [] and record.breaches == []
    assert record.statistics["node_starts"] == 4
    judgement = judge(record, parts, run_id="nats")
    assert judgement.verdict is Verdict.PASS, judgement.sentence
    for name, running in programs_on(hosts).items():
        assert "nats-server" not in running, name
