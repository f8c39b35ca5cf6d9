"""The rules for cutting links, and what a set of hosts says it can do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from faultline.harness.errors import HarnessError, UsageError
from faultline.harness.world.hosts.cluster import capabilities_of
from faultline.harness.world.hosts.machines.host_sets import parse_hosts
from faultline.harness.world.hosts.namespaces.switch import ruleset
from faultline.harness.world.hosts.network.cables import NoCables
from faultline.harness.world.hosts.network.firewall import host_ruleset
from faultline.harness.world.hosts.network.links import NoLinkFaults, NoLinkQualities


def host_set(refusal: str, *, shares_clock: bool) -> Any:
    bad_links = NoLinkQualities("no netem")
    links, cables = SimpleNamespace(refusal=refusal), NoCables("it would lose its routes")
    return SimpleNamespace(links=links, qualities=bad_links, cables=cables, shares_clock=shares_clock)


def test_rules_name_each_cut_link_in_its_direction_and_in_one_order() -> None:
    rules = ruleset([("n2", "n1"), ("n1", "n3")])
    assert 'elements = { "n1" . "n3", "n2" . "n1" }' in rules
    assert rules == ruleset([("n1", "n3"), ("n2", "n1")])


def test_rules_replace_those_before_and_can_be_empty() -> None:
    assert ruleset([]).startswith("table bridge faultline\ndelete table bridge faultline\n")
    assert "elements" not in ruleset([]) and "elements" not in host_ruleset([])


def test_a_host_drops_what_comes_from_the_addresses_that_are_cut() -> None:
    assert "elements = { 10.0.0.1, 10.0.0.2 }" in host_ruleset(["10.0.0.2", "10.0.0.1"])


def test_capabilities_are_what_links_and_clocks_allow() -> None:
    assert capabilities_of(host_set("", shares_clock=True)) == {"kill", "pause", "cut", "clock-step", "clock-drift"}
    assert capabilities_of(host_set("no nft", shares_clock=False)) == {"kill", "pause"}


def test_links_that_cannot_be_cut_say_why() -> None:
    links = NoLinkFaults("the program nft is missing")
    with pytest.raises(HarnessError, match="cannot be cut: the program nft is missing"):
        links.cut([("n1", "n2")])
    links.restore([("n1", "n2")])
    assert not links.is_cut(("n1", "n2"))


def test_a_link_that_should_stay_up_says_why() -> None:
    cables = NoCables("a machine that loses its link loses its routes")
    with pytest.raises(HarnessError, match="The link of n1 cannot be taken down: .* loses its routes"):
        cables.take_down("n1")
    cables.bring_up("n1")
    assert not cables.is_down("n1")


@pytest.mark.parametrize("text", ["", "namespaces", "namespaces:0", "namespaces:10", "namespaces:x", "ssh:"])
def test_hosts_that_mean_nothing_are_refused_with_what_could_be_meant(text: str) -> None:
    with pytest.raises(UsageError, match="names no hosts") as caught:
        parse_hosts(text)
    assert "namespaces:N with N from 1 to 9, or ssh:FILE.toml" in caught.value.next_step
