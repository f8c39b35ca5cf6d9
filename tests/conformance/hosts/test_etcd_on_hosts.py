"""etcd itself, three members on three hosts: struck by faults and linearizable, and left with nothing behind."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from namespace_fixtures import on_namespaces
from store_runs import programs_on, run_store

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
def test_etcd_is_linearizable_through_kill_pause_and_partition(hosts: NamespaceHosts, tmp_path: Path) -> None:
    faults = [PlannedFault("pause", 100 * MS, 300 * MS, "leader"), PlannedFault("kill", 1_300 * MS, 300 * MS, "leader")]
    if not hosts.links.refusal:
        faults.insert(1, PlannedFault("partition", 600 * MS, 400 * MS, "leader", {"shape": "leader-alone"}))
    request = RunRequest(system="etcd", world="hosts", seed=1, duration_s=3.0, faults=())
    parts = resolve(request)
    plan = msgspec.structs.replace(make_plan(request, parts), faults=tuple(faults))
    if hosts.fleet["n1"].run("command -v etcd", check=False).exit_code:
        with pytest.raises(HarnessError, match="The host n1 has no etcd") as refused:
            run_on_hosts(plan, parts, hosts, folder=tmp_path)
        assert "apt-get install etcd-server" in refused.value.next_step
        return
    record = run_on_hosts(plan, parts, hosts, folder=tmp_path)
    assert record.errors == [] and record.breaches == []
    assert [(fault.kind, fault.applied) for fault in record.faults] == [(fault.kind, None) for fault in faults]
    assert record.statistics["node_starts"] == 4
    judgement = judge(record, parts, run_id="etcd")
    assert judgement.verdict is Verdict.PASS, judgement.sentence
    assert "etcd" in (tmp_path / "nodes" / "athens" / "node.log").read_text()
    for name, running in programs_on(hosts).items():
        assert "etcd" not in running, name


@on_namespaces
def test_the_logs_of_etcd_tell_that_its_leader_changed_and_leave_out_its_founding(
    hosts: NamespaceHosts, tmp_path: Path
) -> None:
    done = run_store(hosts, tmp_path, "etcd", [PlannedFault("kill", 200 * MS, 3_500 * MS, "leader")], duration_s=4.5)
    if done is None:
        return
    record, judgement = done
    logs = [log.read_text() for log in tmp_path.glob("nodes/*/node.log")]
    elections = sum(log.count("became leader at term") for log in logs)
    assert record.marks["leader-changed"] == judgement.exposure.features["leader-changed"] == elections - 1 >= 1
    assert judgement.exposure.features["snapshot-installed"] == 0
