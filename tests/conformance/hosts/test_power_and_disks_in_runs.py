"""Runs whose hosts lose power and whose disks fail: real stores bear it while fsync is honest, and not when it lies."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from disk_fixtures import images_in_use, with_disks
from namespace_fixtures import on_namespaces

from faultline.harness.errors import HarnessError, UsageError
from faultline.harness.judge import judge
from faultline.harness.plan import Plan, PlannedFault
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Verdict
from faultline.harness.world.hosts.namespaces.host_set import NamespaceHosts
from faultline.harness.world.hosts.run import run_on_hosts
from faultline.harness.world.hosts.storage.disks import NoDisks
from faultline.registry import resolve

pytestmark = [pytest.mark.real, pytest.mark.slow]

MS = 1_000

NO_FINDING = (Verdict.PASS, Verdict.VACUOUS)
"""The verdicts of a promise that was kept. The faults here last under a second: on a busy machine they may meet fewer
operations than the floors ask for, which these tests do not claim."""


def carried_out(
    hosts: NamespaceHosts, folder: Path, system: str, faults: tuple[PlannedFault, ...], duration_s: float, fsync: str
) -> tuple[Plan, RunRecord, Verdict]:
    request = RunRequest(
        system=system, world="hosts", seed=1, duration_s=duration_s, faults=(), host_options={"fsync": fsync}
    )
    parts = resolve(request)
    plan = msgspec.structs.replace(make_plan(request, parts), faults=faults)
    record = run_on_hosts(plan, parts, hosts, folder=folder)
    return plan, record, judge(record, parts, run_id="disks").verdict


def has_no_etcd(hosts: NamespaceHosts) -> bool:
    return hosts.fleet["n1"].run("command -v etcd", check=False).exit_code != 0


@on_namespaces
@with_disks
def test_etcd_keeps_its_promise_through_the_loss_of_all_power(hosts: NamespaceHosts, tmp_path: Path) -> None:
    faults = (PlannedFault("power-off", 1_000 * MS, 200 * MS, "all"),)
    if has_no_etcd(hosts):
        with pytest.raises(HarnessError, match="no etcd"):
            carried_out(hosts, tmp_path, "etcd", faults, 3.0, "honest")
        return
    _, record, verdict = carried_out(hosts, tmp_path, "etcd", faults, 3.0, "honest")
    assert record.errors == [] and record.breaches == [] and verdict in NO_FINDING
    assert [(fault.kind, fault.applied, len(fault.nodes)) for fault in record.faults] == [("power-off", None, 3)]
    assert record.marks["power-lost"] == 1 and record.statistics["node_starts"] == 6
    assert images_in_use(hosts.supervisor.folder) == []


@on_namespaces
@with_disks
def test_etcd_on_disks_that_lie_loses_what_it_acknowledged(hosts: NamespaceHosts, tmp_path: Path) -> None:
    if has_no_etcd(hosts):
        return
    faults = (PlannedFault("power-off", 1_000 * MS, 300 * MS, "all"),)
    plan, record, verdict = carried_out(hosts, tmp_path, "etcd", faults, 1.6, "lies")
    assert plan.host_options == {"fsync": "lies"} and record.errors == []
    assert verdict is Verdict.VIOLATION


@on_namespaces
@with_disks
def test_disks_that_fail_all_together_each_in_its_way_cost_no_write(hosts: NamespaceHosts, tmp_path: Path) -> None:
    faults = (
        PlannedFault("disk-stall", 1_000 * MS, 900 * MS, "athens"),
        PlannedFault("disk-full", 1_001 * MS, 900 * MS, "byzantium"),
        PlannedFault("disk-read-only", 1_002 * MS, 900 * MS, "cyrene"),
    )
    # All start before the first of them stops: starting a node again takes its time.
    _, record, verdict = carried_out(hosts, tmp_path, "consistent-core", faults, 2.4, "honest")
    assert [(fault.kind, fault.applied) for fault in record.faults] == [(fault.kind, None) for fault in faults]
    assert record.errors == [] and record.breaches == [] and verdict in NO_FINDING
    # Who wrote to the disk that turned read-only has ended of that or was ended to mend it.
    assert record.statistics["node_starts"] >= 4
    assert images_in_use(hosts.supervisor.folder) == []


@on_namespaces
def test_a_node_whose_fsync_fails_ends_and_that_is_no_finding(hosts: NamespaceHosts, tmp_path: Path) -> None:
    faults = (
        PlannedFault("fsync-fail", 1_000 * MS, 900 * MS, "leader"),
        PlannedFault("fsync-fail", 1_001 * MS, 900 * MS, "follower"),
    )
    _, record, verdict = carried_out(hosts, tmp_path, "consistent-core", faults, 2.4, "honest")
    assert [(fault.kind, fault.applied) for fault in record.faults] == [(fault.kind, None) for fault in faults]
    assert record.errors == [] and record.breaches == [] and verdict in NO_FINDING
    # Who could not sync says so and ends, and is started again; the other one may have had nothing to sync any more.
    ended = record.statistics["ended_on_bad_disks"]
    assert 1 <= ended <= 2 and record.statistics["node_starts"] == 3 + ended
    assert "the disk refused" in (tmp_path / "nodes" / record.faults[0].nodes[0] / "node.log").read_text()


@on_namespaces
def test_an_fsync_that_always_fails_cannot_fail_for_a_while(hosts: NamespaceHosts, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be made to fail for a while"):
        carried_out(hosts, tmp_path, "consistent-core", (PlannedFault("fsync-fail", 0, MS),), 1.0, "fails")


@on_namespaces
def test_hosts_without_disks_refuse_power_off_with_the_reason(
    hosts: NamespaceHosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "disks", NoDisks("there is no loop device"))
    with pytest.raises(UsageError, match="cannot inject power-off: .* The reason: power-off: there is no loop device"):
        carried_out(hosts, tmp_path, "consistent-core", (PlannedFault("power-off", 0, MS),), 1.0, "honest")


@on_namespaces
def test_a_filter_that_a_host_cannot_have_is_refused(
    hosts: NamespaceHosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "no_filter.py"
    broken.write_text("import sys\nsys.exit('fsync=lies: the kernel takes no seccomp filter')\n")
    monkeypatch.setattr("faultline.harness.world.hosts.storage.fsync_filter.__file__", str(broken))
    with pytest.raises(UsageError, match="On n[123], fsync cannot be made to be wrong: .*takes no seccomp filter"):
        carried_out(hosts, tmp_path / "run", "consistent-core", (), 0.5, "lies")
