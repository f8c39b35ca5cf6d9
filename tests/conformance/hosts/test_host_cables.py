"""A host whose cable is pulled hears only the harness, knows that it has no carrier, and is back at once."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from namespace_fixtures import on_namespaces

from faultline.harness.errors import HarnessError
from faultline.harness.judge import judge
from faultline.harness.plan import PlannedFault
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.verdict import Verdict
from faultline.harness.world.hosts.namespaces.datagrams import DatagramProbe
from faultline.harness.world.hosts.namespaces.host_set import NamespaceHosts
from faultline.harness.world.hosts.run import run_on_hosts
from faultline.registry import resolve

pytestmark = pytest.mark.real

LINKS = [(one, other) for one in ("n1", "n2", "n3") for other in ("n1", "n2", "n3") if one != other]
MS = 1_000


def open_links(hosts: NamespaceHosts, *, without: str = "") -> list[tuple[str, str]]:
    """Those on which a datagram passes; it is not waited for to and from the host `without` a cable."""
    probe = DatagramProbe({host.name: host.address for host in hosts.hosts}, hosts.network_of)
    try:
        return [link for link in LINKS if probe.passes(link, expected=without not in link)]
    finally:
        probe.close()


@on_namespaces
def test_a_host_without_its_cable_is_alone_but_can_still_be_managed(hosts: NamespaceHosts) -> None:
    assert not any(map(hosts.cables.is_down, ("n1", "n2", "n3")))
    hosts.cables.take_down("n2")
    try:
        assert [name for name in ("n1", "n2", "n3") if hosts.cables.is_down(name)] == ["n2"]
        assert open_links(hosts, without="n2") == [link for link in LINKS if "n2" not in link]
        assert hosts.fleet["n2"].run("hostname").text == "n2"
    finally:
        hosts.cables.bring_up("n2")
    assert not hosts.cables.is_down("n2")
    assert open_links(hosts) == LINKS


@on_namespaces
def test_the_cable_of_a_host_that_is_off_cannot_be_pulled(hosts: NamespaceHosts) -> None:
    with pytest.raises(HarnessError, match="The link of n9 cannot be set down: Cannot find device"):
        hosts.cables.take_down("n9")


@on_namespaces
def test_a_host_comes_back_from_a_reboot_with_both_its_links(hosts: NamespaceHosts) -> None:
    hosts.power_off("n3")
    hosts.power_on("n3")
    assert hosts.fleet["n3"].run("hostname").text == "n3"
    assert not hosts.cables.is_down("n3") and open_links(hosts) == LINKS


@pytest.mark.slow
@on_namespaces
def test_a_store_on_hosts_bears_pulled_cables(hosts: NamespaceHosts, tmp_path: Path) -> None:
    faults = (PlannedFault("link-down", 200 * MS, 900 * MS, "leader"),)
    request = RunRequest(system="consistent-core", world="hosts", seed=1, duration_s=2.0, faults=())
    parts = resolve(request)
    plan = msgspec.structs.replace(make_plan(request, parts), faults=faults)
    record = run_on_hosts(plan, parts, hosts, folder=tmp_path)
    assert record.errors == [] and record.breaches == []
    assert [(fault.kind, fault.applied) for fault in record.faults] == [("link-down", None)]
    assert "links-down" in record.marks
    judgement = judge(record, parts, run_id="cables")
    assert judgement.verdict is Verdict.PASS, judgement.sentence
