"""Hosts made of namespaces: they are apart from each other and from this machine, and nothing of them stays."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from namespace_fixtures import on_namespaces, opened, other_harness
from process_table import processes_with

from faultline.harness.errors import HarnessError
from faultline.harness.world.hosts.machines.connection import Connection, Patience
from faultline.harness.world.hosts.machines.errors import HostUnreachable
from faultline.harness.world.hosts.namespaces import host_set, supervisor
from faultline.harness.world.hosts.namespaces.host_set import NamespaceHosts
from faultline.harness.world.hosts.namespaces.requirements import missing_requirements

pytestmark = pytest.mark.real

NAMESPACES = ("net", "mnt", "pid", "uts", "ipc")


@on_namespaces
def test_each_host_has_namespaces_of_its_own(hosts: NamespaceHosts) -> None:
    seen = hosts.fleet.run("; ".join(f"readlink /proc/self/ns/{kind}" for kind in NAMESPACES))
    ours = {os.readlink(f"/proc/self/ns/{kind}") for kind in NAMESPACES}
    theirs = [line for result in seen.values() for line in result.text.splitlines()]
    assert len(set(theirs)) == len(theirs) == 3 * len(NAMESPACES)
    assert not ours & set(theirs)


@on_namespaces
def test_hosts_know_their_names_and_reach_each_other_by_them(hosts: NamespaceHosts) -> None:
    assert [(name, result.text) for name, result in hosts.fleet.run("hostname").items()] == [
        (host.name, host.name) for host in hosts.hosts
    ]
    answer = hosts.fleet["n1"].run("bash -c 'exec 3<>/dev/tcp/n2/22 && head -c 4 <&3'", timeout_s=5)
    assert answer.text == "SSH-"


@on_namespaces
def test_a_file_in_the_system_folders_of_one_host_is_seen_by_no_other_host(hosts: NamespaceHosts) -> None:
    hosts.fleet["n1"].run("echo mine >/etc/faultline-test")
    assert hosts.fleet["n1"].run("cat /etc/faultline-test").text == "mine"
    assert hosts.fleet["n2"].run("test -e /etc/faultline-test", check=False).exit_code == 1
    assert not Path("/etc/faultline-test").exists()


@on_namespaces
def test_no_route_leads_out_of_the_hosts(hosts: NamespaceHosts) -> None:
    refused = hosts.fleet["n1"].run("bash -c 'exec 3<>/dev/tcp/192.0.2.1/80'", check=False, timeout_s=5)
    assert refused.exit_code != 0 and b"unreachable" in refused.stderr


@on_namespaces
def test_power_off_ends_every_process_and_power_on_brings_the_same_disk_back(hosts: NamespaceHosts) -> None:
    link = hosts.fleet["n3"]
    link.run("echo kept >/var/kept; setsid sleep 1000 >/dev/null 2>&1 </dev/null & true")
    hosts.power_off("n3")
    hosts.power_on("n3")
    assert link.run("cat /var/kept").text == "kept"
    assert link.run("grep -l '^sleep' /proc/[0-9]*/comm", check=False).text == ""
    assert hosts.fleet["n1"].run("hostname").text == "n1"


@on_namespaces
def test_sets_live_side_by_side_and_a_closed_one_leaves_nothing(hosts: NamespaceHosts) -> None:
    other = NamespaceHosts(1)
    folder = other.supervisor.folder
    assert other.hosts[0].address not in {host.address for host in hosts.hosts}
    assert other.fleet["n1"].run("hostname").text == hosts.fleet["n1"].run("hostname").text == "n1"
    other.close()
    assert_gone(folder)
    assert hosts.fleet["n1"].run("hostname").text == "n1"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_hosts_go_when_the_process_that_made_them_is_killed(number: signal.Signals) -> None:
    probe = opened(1)
    if isinstance(probe, HarnessError):
        assert probe.next_step
        return
    probe.close()
    with other_harness() as other:
        other.kill(number)
    assert_gone(other.folder)


def assert_gone(folder: Path) -> None:
    """No file, no mount, no process; the link's name may be in the kernel's hands a moment longer."""
    assert not folder.exists()
    assert str(folder) not in Path("/proc/mounts").read_text()
    assert processes_with(str(folder)) == []


def test_a_machine_that_lacks_something_is_told_what_and_what_to_do() -> None:
    found = missing_requirements("linux", lambda: 1000, {"ip": "/sbin/ip"}.get, list)
    assert [missing.what for missing in found] == [
        "only root may make namespaces with links",
        "the program sshd is missing",
        "the program unshare is missing",
        "the program nsenter is missing",
    ]
    assert "apt-get install openssh-server" in found[1].next_step
    (missing,) = missing_requirements("darwin", lambda: 0, {}.get)
    assert missing.what == "only Linux has namespaces"
    assert missing_requirements("linux", lambda: 0, lambda name: f"/usr/sbin/{name}") == []


def test_a_supervisor_that_cannot_be_made_says_why_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # A name of its own: other sets may come and go on this machine meanwhile.
    monkeypatch.setattr(host_set, "SETS", f"faultline-refused-{os.getpid()}-")
    monkeypatch.setattr(host_set, "missing_requirements", list)
    monkeypatch.setattr(supervisor, "_UNSHARE", ("/bin/sh", "-c", "echo unshare: Operation not permitted >&2; exit 1"))
    with pytest.raises(HarnessError, match="cannot be made: unshare: Operation not permitted") as caught:
        NamespaceHosts(1)
    assert "--world local" in caught.value.next_step
    assert list(Path("/tmp").glob(f"faultline-refused-{os.getpid()}-*")) == []


@on_namespaces
def test_a_host_that_is_off_is_named(hosts: NamespaceHosts) -> None:
    hosts.power_off("n2")
    try:
        hasty = Connection(hosts.hosts[1], Patience(connect_s=0.1, attempts=2, pause_s=0.01))
        with pytest.raises(HostUnreachable, match="n2 .root@198.19.* in 2 attempts"):
            hasty.run("true")
    finally:
        hosts.power_on("n2")
    assert hosts.fleet["n2"].run("hostname").text == "n2"
