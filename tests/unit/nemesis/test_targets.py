"""The nodes that a fault hits."""

from __future__ import annotations

import pytest

from faultline.harness.errors import UsageError
from faultline.harness.plan import FAULT_TARGETS, NODE_NAMES, PlannedFault
from faultline.harness.racks import racks_of
from faultline.nemesis.targets import fault_chance, minority_size, resolve, shuffled

NODES = NODE_NAMES[:5]
CHANCES = [fault_chance(PlannedFault("kill", at_us, 1), 7) for at_us in range(200)]


def hit(target: str, chance: int, nodes: tuple[str, ...] = NODES, leader: str | None = "cyrene") -> tuple[str, ...]:
    racks = racks_of(nodes, min(3, len(nodes)))
    return resolve(target, nodes=nodes, leader=leader, chance=chance, racks=racks).nodes


def test_the_leader_is_the_leader_and_a_follower_is_not() -> None:
    assert {hit("leader", chance) for chance in CHANCES} == {("cyrene",)}
    assert {hit("follower", chance) for chance in CHANCES} == {(node,) for node in NODES if node != "cyrene"}


def test_the_last_follower_is_the_same_for_as_long_as_the_leader_is() -> None:
    assert {hit("last-follower", chance) for chance in CHANCES} == {("ephesus",)}
    assert {hit("last-follower", chance, leader="ephesus") for chance in CHANCES} == {("delphi",)}
    fallback = resolve("last-follower", nodes=NODES, leader=None, chance=5)
    assert (fallback.nodes, fallback.note) == (("ephesus",), "no leader known: the last node")


def test_one_is_any_node() -> None:
    assert {hit("one", chance) for chance in CHANCES} == {(node,) for node in NODES}


@pytest.mark.parametrize(("count", "sizes"), [(3, {1}), (4, {1}), (5, {1, 2}), (7, {1, 2, 3})])
def test_a_minority_is_smaller_than_half(count: int, sizes: set[int]) -> None:
    assert {minority_size(count, chance) for chance in CHANCES} == sizes


@pytest.mark.parametrize(("count", "size"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_a_majority_is_the_smallest_one(count: int, size: int) -> None:
    assert {len(set(hit("majority", chance, NODES[:count]))) for chance in CHANCES} == {size}


def test_all_are_all_and_a_name_is_that_node() -> None:
    assert hit("all", 1) == NODES
    assert hit("delphi", 1) == ("delphi",)


def test_the_first_node_depends_neither_on_the_leader_nor_on_the_draw() -> None:
    assert {hit("first", chance, NODES, leader) for chance in CHANCES for leader in (None, "cyrene")} == {("athens",)}


def test_without_a_leader_a_drawn_node_is_hit_and_the_note_says_so() -> None:
    for target in ("leader", "follower"):
        resolution = resolve(target, nodes=NODES, leader=None, chance=5)
        assert len(resolution.nodes) == 1
        assert f"no {target} known" in resolution.note


@pytest.mark.parametrize("target", FAULT_TARGETS)
def test_every_target_hits_a_node_in_a_cluster_of_any_size(target: str) -> None:
    for count in range(1, 10):
        nodes = NODE_NAMES[:count]
        for leader in (None, nodes[0], "elsewhere"):
            resolved = hit(target, CHANCES[count], nodes, leader)
            assert resolved
            assert set(resolved) <= set(nodes)


def test_an_unknown_target_is_a_usage_error_that_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match="cannot be aimed at 'sparta'") as error:
        hit("sparta", 1)
    assert "leader" in error.value.next_step


def test_a_rack_is_hit_whole_and_each_one_sometimes() -> None:
    assert {hit("rack", chance) for chance in CHANCES} == {("athens", "delphi"), ("byzantium", "ephesus"), ("cyrene",)}
    assert {frozenset(hit("half-the-racks", chance)) for chance in CHANCES} == {
        frozenset({"athens", "delphi", "byzantium", "ephesus"}),
        frozenset({"athens", "delphi", "cyrene"}),
        frozenset({"byzantium", "ephesus", "cyrene"}),
    }


def test_a_rack_by_name_is_that_rack_and_the_note_names_a_drawn_one() -> None:
    assert hit("rack-2", 1) == ("byzantium", "ephesus")
    drawn = resolve("rack", nodes=NODES, leader=None, chance=4, racks={"left": NODES[:2]})
    assert (drawn.nodes, drawn.note) == (NODES[:2], "left")


def test_a_rack_without_racks_is_a_usage_error_that_says_how_to_have_some() -> None:
    with pytest.raises(UsageError, match="aimed at 'rack', but the plan has no racks") as error:
        resolve("rack", nodes=NODES, leader=None, chance=1)
    assert "--racks" in error.value.next_step


def test_a_shuffle_keeps_every_node_and_reaches_every_order() -> None:
    orders = {shuffled(NODES[:3], chance) for chance in CHANCES}
    assert len(orders) == 6
    assert all(sorted(order) == sorted(NODES[:3]) for order in orders)


def test_a_fault_draws_for_itself_alone() -> None:
    fault = PlannedFault("kill", 100, 50, "one")
    assert fault_chance(fault, 1) == fault_chance(fault, 1)
    assert fault_chance(fault, 1) != fault_chance(fault, 2)
    assert fault_chance(fault, 1) != fault_chance(PlannedFault("pause", 100, 50, "one"), 1)
