"""Bad links between machines over SSH: what their kernels can do is done and seen by datagrams, the rest refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from namespace_fixtures import host_file_of, on_namespaces

from faultline.harness.errors import HarnessError
from faultline.harness.world.faults import LinkQuality
from faultline.harness.world.hosts.machines.host_sets import HostSet, open_hosts, parse_hosts
from faultline.harness.world.hosts.machines.leftovers import leftovers_on
from faultline.harness.world.hosts.namespaces.host_set import NamespaceHosts
from faultline.harness.world.hosts.network.link_quality import judged
from faultline.harness.world.hosts.network.netem import Netem
from faultline.harness.world.hosts.network.remote_qualities import RemoteQualities
from faultline.harness.world.hosts.network.station_probe import StationProbe

pytestmark = pytest.mark.real

LINKS = [(one, other) for one in ("n1", "n2", "n3") for other in ("n1", "n2", "n3") if one != other]
LINK = ("n1", "n2")
BAD = (
    LinkQuality(loss=0.3),
    LinkQuality(delay_us=40_000, jitter_us=5_000),
    LinkQuality(duplicate=0.5),
    LinkQuality(corrupt=0.2),
    LinkQuality(delay_us=20_000, reorder=0.3),
    LinkQuality(rate_kbit_per_s=1_000),
)


@contextmanager
def over_ssh(hosts: NamespaceHosts, folder: Path) -> Iterator[HostSet]:
    """The same hosts, named by their addresses only."""
    file = host_file_of(hosts, folder / "hosts.toml")
    opened = open_hosts(parse_hosts(f"ssh:{file}"))
    try:
        yield opened
    finally:
        opened.close()


@on_namespaces
def test_machines_lose_packets_by_what_they_have_and_are_as_they_were_afterwards(
    hosts: NamespaceHosts, tmp_path: Path
) -> None:
    with over_ssh(hosts, tmp_path) as remote:
        links, quality = remote.qualities, LinkQuality(loss=0.3)
        if "loss" in links.refusals:
            with pytest.raises(HarnessError, match="cannot be degraded"):
                links.degrade([LINK], quality)
            return
        links.degrade([LINK], quality)
        assert links.qualities(LINKS) == dict.fromkeys(LINKS, LinkQuality()) | {LINK: quality}
        links.degrade(LINKS, LinkQuality())
        assert links.qualities(LINKS) == dict.fromkeys(LINKS, LinkQuality())
        links.degrade([LINK], quality)
    left = hosts.fleet["n2"].run("PATH=$PATH:/usr/sbin:/sbin; nft list tables; tc qdisc show dev eth0").text
    assert "faultline" not in left and "fa17" not in left


@on_namespaces
def test_machines_without_netem_refuse_by_name_what_nftables_cannot_do(hosts: NamespaceHosts, tmp_path: Path) -> None:
    with over_ssh(hosts, tmp_path) as remote:
        if not remote.qualities.refusals:
            assert remote.qualities.means == "netem on the sending hosts"
            return
        assert all("no netem" in reason for reason in remote.qualities.refusals.values())
        with pytest.raises(HarnessError, match="no netem"):
            remote.qualities.degrade([LINK], LinkQuality(delay_us=1_000))


@pytest.mark.parametrize("shares_clock", [True, False])
@on_namespaces
def test_stations_see_what_a_link_does_to_their_datagrams(hosts: NamespaceHosts, shares_clock: bool) -> None:
    if hosts.qualities.refusals:
        return
    probe = StationProbe(hosts.fleet, shares_clock=shares_clock)
    try:
        for quality in BAD:
            hosts.qualities.degrade([LINK], quality)
            expected = dict.fromkeys(LINKS, LinkQuality()) | {LINK: quality}
            seen = probe.observe(expected)
            assert {link: judged(expected[link], result) for link, result in seen.items()} == expected
            # The same datagrams do not pass for another link's.
            assert judged(LinkQuality(loss=0.9), seen[LINK]) != LinkQuality(loss=0.9)
    finally:
        hosts.qualities.degrade(LINKS, LinkQuality())
        probe.close()


@on_namespaces
def test_the_tree_of_classes_picks_the_packets_of_one_link_and_goes_again(hosts: NamespaceHosts) -> None:
    # In netem's place, so that this can be seen on kernels without it: a bucket into which no packet fits.
    means = Netem(hosts.fleet, lambda _: "tbf rate 8kbit burst 10b latency 1us")
    links = RemoteQualities(hosts.fleet, shares_clock=True, chosen=means)
    try:
        links.degrade([LINK], LinkQuality(loss=1.0))
        assert links.qualities(LINKS) == dict.fromkeys(LINKS, LinkQuality()) | {LINK: LinkQuality(loss=1.0)}
        assert not hosts.links.is_cut(LINK), "what proves cuts passes"
        links.degrade([("n1", "n3")], LinkQuality(loss=1.0))
        links.degrade([LINK], LinkQuality())
        assert [link for link, quality in links.qualities(LINKS).items() if quality.loss] == [("n1", "n3")]
    finally:
        links.close()
    assert "fa17" not in hosts.fleet["n1"].run("PATH=$PATH:/usr/sbin:/sbin tc qdisc show dev eth0").text


@on_namespaces
def test_what_a_killed_harness_leaves_on_a_device_is_found_and_removed(hosts: NamespaceHosts) -> None:
    Netem(hosts.fleet, lambda _: "tbf rate 8kbit burst 10b latency 1us").apply({LINK: LinkQuality(loss=1.0)})
    (left,) = leftovers_on(hosts.fleet["n1"])
    assert left.what == "n1: the delays and losses on eth0"
    left.remove()
    assert leftovers_on(hosts.fleet["n1"]) == []


@on_namespaces
def test_a_host_without_python_says_that_its_links_cannot_be_probed(hosts: NamespaceHosts, tmp_path: Path) -> None:
    with over_ssh(hosts, tmp_path) as remote:
        probe = StationProbe(remote.fleet, shares_clock=True)
        remote.fleet["n1"].open = lambda command: hosts.fleet["n1"].open("echo no such program >&2")  # type: ignore[method-assign]  # a stand-in
        with pytest.raises(HarnessError, match="On n1, links cannot be probed: no such program"):
            probe.observe({LINK: LinkQuality()})
        probe.close()
