"""The report of `doctor` on each host's links: the means, and the next best where one is missing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from faultline.harness.world.hosts.machines.connection import CommandResult
from faultline.harness.world.hosts.machines.host import Host
from faultline.harness.world.hosts.network.cables import NoCables
from faultline.harness.world.hosts.network.link_examination import connections_of, links_of_bridged, links_of_machine
from faultline.harness.world.hosts.network.links import NoLinkFaults, NoLinkQualities


class Machine:
    """A machine on which commands that contain one of `broken` fail."""

    def __init__(self, *broken: str) -> None:
        self.host = Host(name="n1", address="10.0.0.1")
        self.broken = broken

    def run(self, command: str, **_: Any) -> CommandResult:
        failed = any(word in command for word in self.broken)
        output = b"" if failed else b"1\n0\n"
        return CommandResult(host="n1", command=command, exit_code=failed, stdout=output, stderr=b"not there" * failed)


def told(*broken: str) -> dict[str, Any]:
    machine: Any = Machine(*broken)
    return {found.name: found for found in [*links_of_machine(machine), *connections_of(machine)]}


def test_a_machine_with_everything_is_healthy_and_says_by_what_means() -> None:
    found = told()
    assert all(finding.healthy for finding in found.values())
    assert "netem on the sending hosts" in found["packet faults"].seen
    assert "next best: partition" in found["link-down"].seen


def test_a_machine_without_netem_loses_packets_and_refuses_the_rest_by_name() -> None:
    finding = told("netem")["packet faults"]
    assert finding.healthy
    assert finding.seen.startswith("loss: nftables on the receiving hosts; no delay, duplicate, reorder, corrupt, rate")
    assert "it has no netem (not there); next best: --hosts namespaces:N" in finding.seen


def test_a_machine_that_can_do_nothing_to_links_names_the_next_step_for_each() -> None:
    found = told("netem", "nft", "ss -K")
    for name in ("partition", "packet faults", "connection-kill", "connection-reset"):
        assert not found[name].healthy and found[name].next_step, name
    assert "apt-get install nftables" in found["partition"].next_step
    assert "Next best: connection-reset" in found["connection-kill"].next_step


def test_hosts_behind_one_bridge_tell_what_the_bridge_lacks() -> None:
    lacking = SimpleNamespace(
        links=NoLinkFaults("no nft"), qualities=NoLinkQualities("no packet queues"), cables=NoCables("no cable")
    )
    found = {finding.name: finding for finding in links_of_bridged("n2", lacking)}
    assert [(name, finding.seen) for name, finding in found.items()] == [
        ("partition", "no nft"),
        ("packet faults", "no packet queues"),
        ("link-down", "no cable"),
    ]
    assert all(not finding.healthy and "Next best" in finding.next_step for finding in found.values())
