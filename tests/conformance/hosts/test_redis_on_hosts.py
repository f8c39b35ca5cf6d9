"""Redis itself on three hosts: faults hit its real master, a fail-over is followed, and nothing is left behind."""

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
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Verdict
from faultline.harness.world.hosts.namespaces.host_set import NamespaceHosts
from faultline.harness.world.hosts.run import run_on_hosts
from faultline.registry import resolve

pytestmark = [pytest.mark.real, pytest.mark.slow]

MS = 1_000


def carried_out(
    hosts: NamespaceHosts,
    folder: Path,
    *faults: PlannedFault,
    duration_s: float,
    system: str = "redis-sentinel",
    **options: str,
) -> RunRecord | None:
    """The record of a run; None when the hosts have no Redis, and the refusal says so."""
    request = RunRequest(system=system, workload="set", world="hosts", seed=1, duration_s=duration_s, options=options)
    parts = resolve(request)
    plan = msgspec.structs.replace(make_plan(request, parts), faults=faults)
    if hosts.fleet["n1"].run("command -v redis-server", check=False).exit_code:
        with pytest.raises(HarnessError, match="The host n1 has no redis-server") as refused:
            run_on_hosts(plan, parts, hosts, folder=folder)
        assert "apt-get install redis-server" in refused.value.next_step
        return None
    record = run_on_hosts(plan, parts, hosts, folder=folder)
    assert record.errors == [] and record.breaches == []
    for name, running in programs_on(hosts).items():
        assert not any("redis" in program for program in running), name
    return record


@on_namespaces
def test_a_pause_of_the_master_makes_another_one_and_faults_then_hit_that_one(
    hosts: NamespaceHosts, tmp_path: Path
) -> None:
    # Should the vote be split, the next comes after twice the time that a fail-over may take.
    quick = {"down_after_ms": "500", "failover_timeout_ms": "2000"}
    faults = (
        PlannedFault("pause", 100 * MS, 10_000 * MS, "leader"),
        PlannedFault("kill", 10_300 * MS, 200 * MS, "leader"),
    )
    record = carried_out(hosts, tmp_path, *faults, duration_s=10.7, **quick)
    if record is None:
        return
    first, second = record.faults
    assert first.roles == ("leader",) and second.nodes != first.nodes
    assert record.statistics["node_starts"] == 4
    answered = {node for node, outcome in zip(record.history.node, record.history.outcome) if outcome == "ok"}
    assert answered - set(first.nodes)
    assert "+switch-master" in (tmp_path / "nodes" / second.nodes[0] / "node.log").read_text()


def assert_passes(record: RunRecord) -> None:
    request = RunRequest(system=record.plan.system, workload="set", world="hosts")
    judgement = judge(record, resolve(request), run_id="redis")
    assert judgement.verdict is Verdict.PASS, judgement.sentence


@on_namespaces
def test_without_a_fail_over_nothing_is_lost(hosts: NamespaceHosts, tmp_path: Path) -> None:
    faults = (PlannedFault("pause", 100 * MS, 1_500 * MS, "follower"),)
    # A master that a slow disk holds up for a second is not to be replaced.
    record = carried_out(hosts, tmp_path, *faults, duration_s=2.5, down_after_ms="60000")
    if record is not None:
        assert_passes(record)


@on_namespaces
def test_three_masters_of_a_cluster_serve_again_after_one_was_killed(hosts: NamespaceHosts, tmp_path: Path) -> None:
    faults = (PlannedFault("kill", 100 * MS, 1_000 * MS, "leader"),)
    record = carried_out(
        hosts, tmp_path, *faults, duration_s=2.5, system="redis-cluster", append_fsync="always", node_timeout_ms="500"
    )
    if record is not None:
        assert record.faults[0].roles == ("leader",)
        assert len({node for node, outcome in zip(record.history.node, record.history.outcome) if outcome == "ok"}) > 1
        assert_passes(record)
