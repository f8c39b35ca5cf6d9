"""The links that each kind of partition cuts."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.harness.errors import UsageError
from faultline.harness.plan import NODE_NAMES, PlannedFault
from faultline.nemesis.partition import (
    SHAPES,
    Partition,
    between,
    bridge,
    halves,
    links_of,
    majorities_ring,
    one_way,
    random_links,
)

NODES = NODE_NAMES[:5]


def heard_by(node: str, links: tuple[tuple[str, str], ...], nodes: tuple[str, ...] = NODES) -> set[str]:
    return {source for source in nodes if (source, node) not in links}


def test_between_two_groups_all_links_are_cut_both_ways() -> None:
    assert set(between(["a"], ["b", "c"])) == {("a", "b"), ("b", "a"), ("a", "c"), ("c", "a")}


def test_halves_cut_the_smaller_from_the_larger() -> None:
    links = halves(NODES)
    assert heard_by("athens", links) == {"athens", "byzantium"}
    assert heard_by("ephesus", links) == {"cyrene", "delphi", "ephesus"}


def test_a_bridge_hears_all_nodes_and_the_halves_do_not_hear_each_other() -> None:
    links = bridge(NODES)
    assert heard_by("cyrene", links) == set(NODES)
    assert heard_by("athens", links) == {"athens", "byzantium", "cyrene"}
    assert heard_by("delphi", links) == {"cyrene", "delphi", "ephesus"}


@pytest.mark.parametrize("count", range(3, 10))
def test_in_a_ring_of_majorities_each_node_hears_a_majority_and_no_two_the_same(count: int) -> None:
    nodes = NODE_NAMES[:count]
    heard = [frozenset(heard_by(node, majorities_ring(nodes), nodes)) for node in nodes]
    assert {len(group) for group in heard} == {count // 2 + 1}
    assert len(set(heard)) == count
    assert all(node in group for node, group in zip(nodes, heard, strict=True))


def test_one_way_cuts_one_direction_only() -> None:
    deaf = one_way("athens", NODES, "in")
    assert heard_by("athens", deaf) == {"athens"}
    assert all("athens" in heard_by(node, deaf) for node in NODES)
    mute = one_way("athens", NODES, "out")
    assert heard_by("athens", mute) == set(NODES)
    assert all("athens" not in heard_by(node, mute) for node in NODES[1:])


@pytest.mark.parametrize("chance", [1, 2**40 + 17, 2**63 + 5])
def test_the_victim_is_in_the_minority(chance: int) -> None:
    links, _ = links_of("majority-minority", nodes=NODES, victim="delphi", direction="in", chance=chance)
    assert len(heard_by("delphi", links)) <= 2


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", range(2, 10))
def test_every_shape_cuts_something_and_nothing_twice(shape: str, count: int) -> None:
    nodes = NODE_NAMES[:count]
    links, description = links_of(shape, nodes=nodes, victim=nodes[0], direction="out", chance=99)
    assert links
    assert len(set(links)) == len(links)
    assert all(source != target for source, target in links)
    assert description


def test_a_shape_that_needs_more_nodes_becomes_one_and_says_so() -> None:
    links, description = links_of("bridge", nodes=("a", "b"), victim="a", direction="in", chance=1)
    assert set(links) == {("a", "b"), ("b", "a")}
    assert "too few nodes for bridge" in description


def test_an_unknown_shape_is_a_usage_error(port: Any) -> None:
    with pytest.raises(UsageError, match="no partition shape 'star'"):
        Partition().start(port, PlannedFault("partition", 0, 1, "one", {"shape": "star"}), 1)


def start(port: Any, shape: str, target: str = "one", at_us: int = 0, **argument: str) -> Any:
    return Partition().start(port, PlannedFault("partition", at_us, 1, target, {"shape": shape, **argument}), 1)


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_bites_and_heals(port: Any, shape: str) -> None:
    injection = start(port, shape)
    assert port.cuts == set(injection.links)
    assert Partition().verify(port, injection) is None
    Partition().stop(port, injection)
    assert port.is_healthy()


def test_leader_alone_isolates_the_leader(port: Any) -> None:
    injection = start(port, "leader-alone")
    assert injection.nodes == ("byzantium",)
    assert heard_by("byzantium", tuple(port.cuts)) == {"byzantium"}


def test_leader_alone_without_a_leader_isolates_a_drawn_node_and_says_so(port: Any) -> None:
    port.leads = None
    injection = start(port, "leader-alone")
    assert len(injection.nodes) == 1
    assert "no leader known" in injection.description


def test_a_rack_alone_is_the_whole_rack_of_the_target_apart_from_the_rest(port: Any) -> None:
    injection = start(port, "rack-alone", "leader")
    assert injection.nodes == ("byzantium", "ephesus")
    assert "rack-2 alone" in injection.description
    assert heard_by("byzantium", tuple(port.cuts)) == heard_by("ephesus", tuple(port.cuts)) == {"byzantium", "ephesus"}
    assert heard_by("cyrene", tuple(port.cuts)) == {"athens", "cyrene", "delphi"}


def test_between_two_racks_a_third_one_hears_both(port: Any) -> None:
    others = set()
    for at_us in range(20):
        port.cuts = set()
        injection = start(port, "between-racks", "cyrene", at_us=at_us)
        others.add(frozenset(set(injection.nodes) - {"cyrene"}))
        assert set(NODES) - heard_by("cyrene", tuple(port.cuts)) == set(injection.nodes) - {"cyrene"}
        assert len(port.cuts) == 4
    assert others == {frozenset({"athens", "delphi"}), frozenset({"byzantium", "ephesus"})}


def test_a_shape_of_racks_in_one_rack_becomes_one_and_says_so(port: Any) -> None:
    port.racks = {"rack-1": NODES}
    injection = start(port, "rack-alone", "delphi")
    assert heard_by("delphi", tuple(port.cuts)) == {"delphi"} and len(port.cuts) == 8
    assert "too few racks for rack-alone" in injection.description


def test_random_links_are_cut_both_ways_and_are_a_third_of_all() -> None:
    drawn = [random_links(NODES, 2**40 + 977 * number) for number in range(200)]
    assert all({(target, source) for source, target in links} == set(links) for links in drawn)
    assert len({frozenset(links) for links in drawn}) > 150
    assert 0.3 < sum(map(len, drawn)) / len(drawn) / 20 < 0.37
    assert set(random_links(("a", "b"), 1)) == {("a", "b"), ("b", "a")}


def test_a_direction_that_is_asked_for_is_taken(port: Any) -> None:
    injection = start(port, "one-way", "athens", direction="in")
    assert set(injection.links) == {(node, "athens") for node in NODES[1:]}


def test_a_cut_that_does_not_bite_is_told(port: Any) -> None:
    port.deaf.add("cut")
    problem = Partition().verify(port, start(port, "one", "athens"))
    assert problem is not None
    assert "athens->byzantium" in problem


def test_a_single_node_has_no_links_to_cut(lone_port: Any) -> None:
    assert "cluster of one" in str(Partition().verify(lone_port, start(lone_port, "halves")))


def test_the_end_of_a_later_partition_does_not_heal_the_earlier_one(port: Any) -> None:
    first = start(port, "one", "athens")
    second = start(port, "one", "byzantium", at_us=5)
    Partition().stop(port, second)
    assert port.cuts == set(first.links)
    assert Partition().verify(port, first) is None
    Partition().stop(port, first)
    assert port.is_healthy()


def test_ending_twice_is_ending_once(port: Any) -> None:
    injection = start(port, "halves")
    Partition().stop(port, injection)
    Partition().stop(port, injection)
    assert port.is_healthy()


def test_the_same_fault_is_resolved_the_same_way(port: Any) -> None:
    assert start(port, "random-halves").links == start(port, "random-halves").links
    drawn = {start(port, "random-halves", at_us=at_us).links for at_us in range(40)}
    assert len(drawn) > 5
