"""The same test on hosts: nodes are started, struck and watched over SSH, and the run is judged like any other."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from namespace_fixtures import on_namespaces

from faultline.harness.errors import HarnessError, UsageError
from faultline.harness.judge import judge
from faultline.harness.plan import Plan, PlannedFault
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Verdict
from faultline.harness.world.hosts.cluster import HostCluster, _resolved
from faultline.harness.world.hosts.machines.host_sets import parse_hosts
from faultline.harness.world.hosts.namespaces.host_set import NamespaceHosts
from faultline.harness.world.hosts.network.links import NoLinkQualities
from faultline.harness.world.hosts.processes.remote_process import RemoteProcess
from faultline.harness.world.hosts.run import run_on_hosts
from faultline.harness.world.local.handshake import RunSecret
from faultline.harness.world.ports import NodeId
from faultline.registry import resolve

pytestmark = [pytest.mark.real, pytest.mark.slow]

MS = 1_000


def planned(faults: tuple[PlannedFault, ...] = (), **fields: Any) -> tuple[Plan, Any]:
    request = RunRequest(
        system="consistent-core", world="hosts", seed=1, **{"duration_s": 1.0, "faults": (), "operations": 60, **fields}
    )
    parts = resolve(request)
    return msgspec.structs.replace(make_plan(request, parts), faults=faults), parts


def assert_nothing_runs(hosts: NamespaceHosts) -> None:
    for name, result in hosts.fleet.run("grep -l node_process /proc/[0-9]*/cmdline; true").items():
        # The shell that asks is one of those whose command line has the word.
        pids = [path.split("/")[2] for path in result.text.splitlines()]
        commands = [hosts.fleet[name].run(f"cat /proc/{pid}/cmdline", check=False).stdout for pid in pids]
        assert not [command for command in commands if b"\0-m\0" in command]


@on_namespaces
def test_kill_pause_partition_and_clock_faults_bite_on_hosts_and_heal(hosts: NamespaceHosts, tmp_path: Path) -> None:
    # The kill comes last: starting the node again takes its time, and the run waits for that at the heal.
    faults = (
        PlannedFault("pause", 100 * MS, 200 * MS, "cyrene"),
        PlannedFault("clock-step", 150 * MS, 300 * MS, "byzantium", {"delta_us": 60_000_000}),
        PlannedFault("kill", 1_000 * MS, 300 * MS, "athens"),
    )
    if not hosts.links.refusal:
        faults = (*faults[:2], PlannedFault("partition", 500 * MS, 200 * MS, "byzantium", {"shape": "one"}), faults[2])
    plan, parts = planned(faults, duration_s=2.5)
    record: RunRecord = run_on_hosts(plan, parts, hosts, folder=tmp_path)
    assert record.errors == [] and record.breaches == []
    assert [(fault.kind, fault.applied) for fault in record.faults] == [(fault.kind, None) for fault in faults]
    assert record.statistics["node_starts"] == 4
    judgement = judge(record, parts, run_id="hosts")
    assert judgement.verdict is Verdict.PASS, judgement.sentence
    assert record.detail["hosts"] == {"athens": "n1", "byzantium": "n2", "cyrene": "n3"}
    addresses = dict(zip(plan.nodes, [host.address for host in hosts.hosts], strict=False))
    for node in plan.nodes:
        assert f"listens on {addresses[node]}:7077" in (tmp_path / "nodes" / node / "node.log").read_text()
        assert (tmp_path / "nodes" / node / "trace.jsonl").stat().st_size
    assert_nothing_runs(hosts)


@on_namespaces
def test_a_node_that_ends_of_its_own_is_a_finding(hosts: NamespaceHosts, tmp_path: Path) -> None:
    plan, parts = planned(duration_s=1.0)
    process = RemoteProcess(
        "athens", hosts.fleet["n1"], f"{hosts.hosts[0].folder}/athens", tmp_path / "own", RunSecret.drawn()
    )
    said: list[str] = []

    def crash_when_serving(sentence: str) -> None:
        said.append(sentence)
        if "leads" in sentence:
            hosts.fleet["n1"].run(f"kill -TERM $(cat {process.remote}/node.pid)")

    record = run_on_hosts(plan, parts, hosts, folder=tmp_path, progress=crash_when_serving)
    assert [(breach.invariant, breach.node) for breach in record.breaches] == [("node-crash", "athens")], said


@on_namespaces
def test_a_fault_that_hosts_cannot_inject_is_refused_by_name_with_the_reason(
    hosts: NamespaceHosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "qualities", NoLinkQualities("this kernel has no packet queues"))
    plan, parts = planned((PlannedFault("packet-loss", 0, MS),))
    refusal = (
        "The hosts world cannot inject packet-loss: it lacks loss.*The reason: loss: this kernel has no packet queues"
    )
    with pytest.raises(UsageError, match=refusal):
        run_on_hosts(plan, parts, hosts, folder=tmp_path)


@on_namespaces
def test_more_nodes_than_hosts_are_refused(hosts: NamespaceHosts, tmp_path: Path) -> None:
    plan, parts = planned(nodes=4)
    with pytest.raises(UsageError, match="4 nodes need as many hosts, but there are 3"):
        run_on_hosts(plan, parts, hosts, folder=tmp_path)


@on_namespaces
def test_a_node_that_cannot_start_is_an_error_with_its_log(hosts: NamespaceHosts, tmp_path: Path) -> None:
    plan, parts = planned()
    occupied = (
        hosts.fleet["n1"]
        .run(
            'setsid python3 -c \'import socket,time; s=socket.create_server(("0.0.0.0",7077)); '
            "time.sleep(60)' >/dev/null 2>&1 </dev/null & echo $!"
        )
        .text
    )
    try:
        hosts.fleet["n1"].run("until grep -qs :1BA5 /proc/net/tcp; do sleep 0.01; done")
        with pytest.raises(HarnessError, match="athens did not come up on n1.*address already in use"):
            run_on_hosts(plan, parts, hosts, folder=tmp_path)
    finally:
        hosts.fleet["n1"].run(f"kill -KILL {occupied}")
    assert_nothing_runs(hosts)


@on_namespaces
def test_the_fault_port_asks_the_kernel_of_the_host(hosts: NamespaceHosts, tmp_path: Path) -> None:
    plan, parts = planned()
    cluster = HostCluster(plan, parts.system_path, hosts, tmp_path)
    process = cluster.processes[NodeId("athens")]
    assert not process.is_alive()
    assert cluster.address(NodeId("athens")) is None
    for remote in cluster.processes.values():
        assert isinstance(remote, RemoteProcess)
        remote.prepare()
    try:
        cluster.spawn(NodeId("athens"))
        process.wait_until_up()
        assert process.is_alive() and not process.is_paused()
        assert cluster.address(NodeId("athens")) == (hosts.hosts[0].address, 7077)
        process.pause()
        assert process.is_paused()
        process.resume()
        assert not process.is_paused()
        # A stranger's signal is seen as well: it is the kernel that is asked, not a note of what was done.
        signal_athens(hosts, "STOP")
        wait_until_athens_is(hosts, "T")
        assert process.is_paused()
        process.kill()
        assert not process.is_alive() and process.take_crashes() == []
    finally:
        process.kill()


def signal_athens(hosts: NamespaceHosts, name: str) -> None:
    """As a stranger does it."""
    hosts.fleet["n1"].run(f"kill -{name} $(cat {hosts.hosts[0].folder}/athens/node.pid)")


def wait_until_athens_is(hosts: NamespaceHosts, states: str) -> None:
    """Wait until the kernel gives its process one of these state letters; one that is gone counts as dead, X."""
    number = f"$(cat {hosts.hosts[0].folder}/athens/node.pid)"
    status = f"(cat /proc/{number}/status 2>/dev/null || echo State: X)"
    hosts.fleet["n1"].run(f"until {status} | grep -q '^State:.[{states}]'; do :; done", timeout_s=10)


@contextmanager
def only_athens(hosts: NamespaceHosts, folder: Path) -> Iterator[RemoteProcess]:
    """The process of a node that runs without the others."""
    plan, parts = planned()
    cluster = HostCluster(plan, parts.system_path, hosts, folder)
    process = cluster.remote[NodeId("athens")]
    process.expect_end()  # it does not run yet, and that is no error
    process.prepare()
    try:
        cluster.spawn(NodeId("athens"))
        process.wait_until_up()
        yield process
    finally:
        process.kill()


@on_namespaces
def test_a_node_that_the_kernel_ended_for_want_of_memory_is_noted_before_it_is_reported(
    hosts: NamespaceHosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with only_athens(hosts, tmp_path) as process:
        process.is_short_of_memory = True
        process.note_end()
        assert process.ends_for_memory == 0 and process.is_alive()
        signal_athens(hosts, "KILL")
        wait_until_athens_is(hosts, "ZX")
        # SSH tells of it at the third question, not before.
        silences, told = iter((False, False)), process._channel.exit_status_ready
        monkeypatch.setattr(process._channel, "exit_status_ready", lambda: next(silences, True) and told())
        process.note_end()
        assert process.ends_for_memory == 1 and process.take_crashes() == []


@on_namespaces
def test_a_node_whose_power_will_go_is_stopped_before_so_that_it_acknowledges_nothing_more(
    hosts: NamespaceHosts, tmp_path: Path
) -> None:
    with only_athens(hosts, tmp_path) as process:
        process.expect_end()
        wait_until_athens_is(hosts, "T")
        assert process.is_paused()
    assert process.take_crashes() == []


@on_namespaces
def test_a_node_listens_on_the_address_it_was_given_and_no_other(hosts: NamespaceHosts, tmp_path: Path) -> None:
    with only_athens(hosts, tmp_path):
        listening = hosts.fleet["n1"].run("ss -Hltn 'sport = :7077'").text
    assert [line.split()[3] for line in listening.splitlines()] == [f"{hosts.hosts[0].address}:7077"]


@on_namespaces
def test_an_address_that_is_not_the_hosts_own_is_told_with_what_to_do(
    hosts: NamespaceHosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, parts = planned()
    elsewhere = msgspec.structs.replace(hosts.hosts[0], listen_address="192.0.2.1")
    monkeypatch.setattr(hosts, "hosts", (elsewhere, *hosts.hosts[1:]))
    cluster = HostCluster(plan, parts.system_path, hosts, tmp_path)
    process = cluster.remote[NodeId("athens")]
    process.prepare()
    cluster.spawn(NodeId("athens"))
    with pytest.raises(HarnessError, match=r"cannot listen on 192.0.2.1:7077.*listen_address in the host file"):
        process.wait_until_up()
    process.kill()


@on_namespaces
def test_the_secret_of_a_run_stands_in_no_file_command_line_or_environment(
    hosts: NamespaceHosts, tmp_path: Path
) -> None:
    plan, parts = planned()
    cluster = HostCluster(plan, parts.system_path, hosts, tmp_path)
    process, folder = cluster.remote[NodeId("athens")], f"{hosts.hosts[0].folder}/athens"
    process.prepare()
    try:
        cluster.spawn(NodeId("athens"))
        process.wait_until_up()
        content = hosts.fleet["n1"].run(f"cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ; cat {folder}/*.*", check=False)
    finally:
        process.kill()
    secret = cluster.secret.reveal()
    assert b"node_process" in content.stdout
    for told in (secret, secret.hex().encode(), b64encode(secret), repr(secret)[2:-1].encode()):
        assert told not in content.stdout


def test_a_name_is_resolved_where_the_harness_is_and_a_number_stays() -> None:
    assert _resolved("localhost") in ("127.0.0.1", "::1")
    assert _resolved("10.1.2.3") == "10.1.2.3"
    assert _resolved("no-such-host.invalid") == "no-such-host.invalid"


def test_a_specification_counts_its_hosts() -> None:
    assert parse_hosts("namespaces:5").count == 5
