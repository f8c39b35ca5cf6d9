"""Links between hosts are really cut, in the direction that was asked for, and whole again afterwards."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from namespace_fixtures import host_file_of, on_namespaces

from faultline.harness.errors import HarnessError, UsageError
from faultline.harness.world.hosts.machines.host_sets import SshHosts, open_hosts, parse_hosts
from faultline.harness.world.hosts.namespaces.datagrams import DatagramProbe, socket_in
from faultline.harness.world.hosts.namespaces.host_set import NamespaceHosts
from faultline.harness.world.hosts.namespaces.switch import Switch

pytestmark = pytest.mark.real

LINKS = [(one, other) for one in ("n1", "n2", "n3") for other in ("n1", "n2", "n3") if one != other]


def cut_links(hosts: NamespaceHosts, *cut: tuple[str, str]) -> list[tuple[str, str]]:
    """Return the links over which no datagram passes, by a probe of the test's own; none is awaited over `cut`."""
    probe = DatagramProbe({host.name: host.address for host in hosts.hosts}, hosts.network_of)
    try:
        return [link for link in LINKS if not probe.passes(link, expected=link not in cut)]
    finally:
        probe.close()


@on_namespaces
def test_a_cut_is_directed_and_ends(hosts: NamespaceHosts) -> None:
    if hosts.links.refusal:
        with pytest.raises(HarnessError, match="cannot be cut"):
            hosts.links.cut([("n1", "n2")])
        return
    # Before any host has spoken to another: address resolution must not turn one direction into two.
    hosts.links.cut([("n1", "n2")])
    assert [link for link in LINKS if hosts.links.is_cut(link)] == cut_links(hosts, ("n1", "n2")) == [("n1", "n2")]
    hosts.links.cut([("n3", "n1")])
    assert cut_links(hosts, ("n1", "n2"), ("n3", "n1")) == [("n1", "n2"), ("n3", "n1")]
    hosts.links.restore([("n1", "n2")])
    assert cut_links(hosts, ("n3", "n1")) == [("n3", "n1")]
    hosts.links.restore(LINKS)
    assert cut_links(hosts) == [] and not any(map(hosts.links.is_cut, LINKS))


@on_namespaces
def test_an_open_connection_is_cut_too_and_the_harness_still_gets_through(hosts: NamespaceHosts) -> None:
    if hosts.links.refusal:
        assert "nft" in hosts.links.refusal or "bridge" in hosts.links.refusal
        return
    ask = "bash -c 'exec 3<>/dev/tcp/n2/22; read -r -t 5 line <&3; echo $line'"
    assert hosts.fleet["n1"].run(ask).text.startswith("SSH-2.0")
    hosts.links.cut([("n1", "n2"), ("n2", "n1")])
    try:
        assert hosts.fleet["n1"].run("timeout 0.3 " + ask, check=False).text == ""
        assert hosts.fleet["n2"].run("hostname").text == "n2"
    finally:
        hosts.links.restore(LINKS)
    assert hosts.fleet["n1"].run(ask).text.startswith("SSH-2.0")


@on_namespaces
def test_the_probe_finds_its_host_again_after_a_reboot(hosts: NamespaceHosts) -> None:
    assert not hosts.links.is_cut(("n1", "n2"))
    hosts.power_off("n2")
    hosts.power_on("n2")
    assert not hosts.links.is_cut(("n1", "n2")) and not hosts.links.is_cut(("n2", "n1"))


@on_namespaces
def test_a_bridge_that_takes_no_rules_says_so(hosts: NamespaceHosts) -> None:
    probe = DatagramProbe({}, hosts.network_of)
    with pytest.raises(HarnessError, match="does not take the rules for cutting links: .*no such program"):
        Switch(hosts.supervisor.network, "/bin/no such program", probe)


@on_namespaces
def test_a_network_that_is_gone_is_named(hosts: NamespaceHosts) -> None:
    with pytest.raises(HarnessError, match="/proc/0/ns/net cannot be entered"):
        socket_in(Path("/proc/0/ns/net"), "127.0.0.1")


@pytest.fixture
def host_file(hosts: NamespaceHosts | HarnessError, tmp_path: Path) -> Path:
    """The same hosts, named by their addresses only."""
    path = tmp_path / "hosts.toml"
    if isinstance(hosts, NamespaceHosts):
        host_file_of(hosts, path)
    return path


@on_namespaces
def test_the_real_clock_of_this_very_machine_is_not_struck(hosts: NamespaceHosts, host_file: Path) -> None:
    host_file.write_text(host_file.read_text().replace("[defaults]", '[defaults]\nclock = "real"'))
    with pytest.raises(UsageError, match="The real clock of n1 cannot be struck: it shares it with n2"):
        open_hosts(parse_hosts(f"ssh:{host_file}"))
    lines = host_file.read_text().splitlines()
    host_file.write_text("\n".join(lines[: lines.index("[hosts.n2]")]))
    with pytest.raises(UsageError, match="it is the machine that Faultline runs on"):
        open_hosts(parse_hosts(f"ssh:{host_file}"))


@on_namespaces
def test_hosts_over_ssh_cut_links_in_their_own_firewalls_and_leave_no_rule(
    hosts: NamespaceHosts, host_file: Path
) -> None:
    over_ssh = open_hosts(parse_hosts(f"ssh:{host_file}"))
    assert isinstance(over_ssh, SshHosts) and over_ssh.shares_clock
    try:
        if over_ssh.links.refusal:
            assert "nft" in over_ssh.links.refusal
            return
        over_ssh.links.cut([("n1", "n2"), ("n2", "n3")])
        assert [link for link in LINKS if over_ssh.links.is_cut(link)] == [("n1", "n2"), ("n2", "n3")]
        assert cut_links(hosts, ("n1", "n2"), ("n2", "n3")) == [("n1", "n2"), ("n2", "n3")]
        over_ssh.links.restore([("n1", "n2")])
        assert cut_links(hosts, ("n2", "n3")) == [("n2", "n3")]
    finally:
        over_ssh.close()
    assert cut_links(hosts) == []
    # The path of a shell that is no login shell may lack the folders in which Debian keeps nft.
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    left = subprocess.run(
        ["nsenter", f"--net={hosts.network_of('n3')}", "nft", "list", "tables"],
        capture_output=True,
        check=True,
        env=os.environ | {"PATH": path},
    )
    assert left.stdout == b""
