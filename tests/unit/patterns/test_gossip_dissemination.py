"""The knowledge of a gossiping node, and the exchange after which two nodes know the same."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultline.systems_under_test.patterns.cluster_management.gossip_dissemination import (
    ClusterMetadata,
    chosen_peers,
)

PLANETS = ("mercury", "venus", "earth", "mars", "jupiter", "saturn", "uranus", "neptune")
MANY = 1_000


def planets() -> dict[str, ClusterMetadata]:
    """Eight nodes with a fact each."""
    known = {name: ClusterMetadata(name, 1) for name in PLANETS}
    for name, metadata in known.items():
        metadata.put("fact", f"about {name}")
    return known


def tell(source: ClusterMetadata, target: ClusterMetadata) -> None:
    """The source sends all it knows, and takes what the target has beyond that."""
    answer = target.newer_than(source.digest(), MANY)
    target.merge(source.whole())
    source.merge(answer)


def push(source: ClusterMetadata, target: ClusterMetadata) -> None:
    """The source sends all it knows; the answer is lost."""
    target.merge(source.whole())


def meet(one: ClusterMetadata, other: ClusterMetadata, most: int = MANY) -> int:
    """One three-way exchange by digests; how many values travelled."""
    there = other.newer_than(one.digest(), most)
    one.merge(there)
    back = one.newer_than(other.digest(), most)
    other.merge(back)
    return sum(len(delta.entries) for deltas in (there, back) for delta in deltas.values())


def knowledge(metadata: ClusterMetadata) -> dict[str, dict[str, object]]:
    return {
        node: {key: metadata.get(node, key) for key in sorted(metadata.states[node].entries)}
        for node in metadata.nodes()
        if metadata.states[node].entries
    }


def rounds_until_all_know(nodes: int, fanout: int, seed: int) -> int:
    """Every node tells `fanout` others per round, all at once; how many rounds until all know all."""
    rng = Random(seed)
    known = [{number} for number in range(nodes)]
    rounds = 0
    while any(len(facts) < nodes for facts in known):
        rounds += 1
        for number in range(nodes):
            others = [other for other in range(nodes) if other != number]
            for peer in chosen_peers(others, fanout, lambda _, bound: rng.randrange(bound)):
                union = known[number] | known[peer]
                known[number], known[peer] = union, set(union)
    return rounds


@pytest.mark.rows("GO-S1", "GO-R5", "GO-R10", "SYS-S13")
def test_after_the_planets_have_talked_mars_knows_seven_facts_and_random_rounds_tell_the_rest() -> None:
    known = planets()
    pairs = [("mercury", "venus"), ("venus", "neptune"), ("jupiter", "mars"), ("uranus", "earth"), ("earth", "mars")]
    for source, target in pairs:
        push(known[source], known[target])
    tell(known["neptune"], known["mars"])
    assert sorted(known["mars"].nodes()) == sorted(set(PLANETS) - {"saturn"})
    rng = Random(7)
    for _ in range(8):
        for name in PLANETS:
            tell(known[name], known[rng.choice([other for other in PLANETS if other != name])])
    assert len({str(knowledge(metadata)) for metadata in known.values()}) == 1
    assert len(knowledge(known["saturn"])) == 8


@pytest.mark.rows("GO-S2", "GO-R9")
def test_two_who_know_only_the_seed_learn_of_each_other() -> None:
    neptune, jupiter, saturn = (ClusterMetadata(name, 1) for name in ("neptune", "jupiter", "saturn"))
    for node in (neptune, jupiter, saturn):
        node.put("address", node.own)
    meet(jupiter, neptune)
    meet(saturn, neptune)
    meet(neptune, jupiter)
    assert list(jupiter.nodes()) == list(saturn.nodes()) == ["jupiter", "neptune", "saturn"]


@pytest.mark.rows("GO-S6", "GO-I5", "GO-R18")
def test_who_know_the_same_send_each_other_nothing_and_one_change_travels_alone() -> None:
    one, other = ClusterMetadata("one", 1), ClusterMetadata("other", 1)
    for number in range(20):
        one.put(f"k{number}", number)
    other.put("address", "here")
    assert meet(one, other) == 21
    assert meet(one, other) == meet(other, one) == 0
    assert one.checksum() == other.checksum()
    one.put("k3", "new")
    assert one.checksum() != other.checksum()
    assert meet(other, one) == 1
    assert other.get("one", "k3") == "new"


@pytest.mark.rows("GO-S7", "GO-R14")
def test_a_newcomer_gets_everything_from_the_first_node_that_it_meets() -> None:
    one, newcomer = ClusterMetadata("one", 1), ClusterMetadata("newcomer", 1)
    one.put("a", 1)
    one.put("b", 2)
    newcomer.merge(one.newer_than({}, MANY))
    assert knowledge(newcomer)["one"] == {"a": 1, "b": 2}


@pytest.mark.rows("GO-S8", "GO-R25", "GO-R26", "GO-M3", "GO-M12")
def test_a_restarted_nodes_new_address_wins_and_what_it_says_no_more_is_forgotten() -> None:
    old, other = ClusterMetadata("one", 1), ClusterMetadata("other", 1)
    for number in range(8):
        old.put("tokens", number)
    old.put("address", "old:1")
    meet(old, other)
    new = ClusterMetadata("one", 2)
    new.put("address", "new:2")
    meet(new, other)
    assert knowledge(other)["one"] == {"address": "new:2"}
    other.merge(old.whole())
    assert other.get("one", "address") == "new:2"


@pytest.mark.rows("GO-S9", "GO-R13", "GO-M4")
def test_a_restarted_node_does_not_take_its_past_for_its_own() -> None:
    old, other, new = ClusterMetadata("one", 1), ClusterMetadata("other", 1), ClusterMetadata("one", 2)
    for number in range(9):
        old.put("address", f"old:{number}")
    meet(old, other)
    new.put("address", "new")
    new.merge(other.whole())
    assert new.get("one", "address") == "new"
    assert knowledge(new)["one"] == {"address": "new"}


@pytest.mark.rows("GO-S14", "GO-R15")
def test_a_reply_that_is_cut_short_loses_its_highest_versions_and_nothing_else() -> None:
    one, other = ClusterMetadata("one", 1), ClusterMetadata("other", 1)
    for number in range(10):
        one.put(f"k{number}", number)
    one.put("k0", "again")
    first = one.newer_than(other.digest(), 4)
    assert [entry.version for entry in first["one"].entries.values()] == [2, 3, 4, 5]
    other.merge(first)
    while meet(other, one, most=4):
        pass
    assert knowledge(other) == knowledge(one)


@pytest.mark.rows("GO-R15")
def test_a_delta_that_begins_above_what_is_known_is_not_taken() -> None:
    one, other, restarted = ClusterMetadata("one", 1), ClusterMetadata("other", 1), ClusterMetadata("other", 2)
    one.put("a", 1)
    meet(one, other)
    one.put("b", 2)
    late = one.newer_than(other.digest(), MANY)
    assert restarted.merge(late) == []
    assert restarted.digest().get("one") is None


@pytest.mark.rows("GO-S15", "GO-R20", "GO-M1")
def test_an_old_message_that_comes_late_takes_nothing_back() -> None:
    one, other = ClusterMetadata("one", 1), ClusterMetadata("other", 1)
    one.put("a", "old")
    late = one.whole()
    one.put("a", "new")
    meet(one, other)
    assert other.merge(late) == []
    assert other.get("one", "a") == "new"


@pytest.mark.rows("GO-R12", "GO-M10", "GO-M11")
def test_one_counter_per_node_numbers_all_its_statements() -> None:
    one = ClusterMetadata("one", 1)
    assert [one.put(key, 0).version for key in ("a", "b", "a", "c")] == [1, 2, 3, 4]


def test_a_deleted_key_stays_deleted_even_if_a_node_still_knew_it() -> None:
    one, late, other = (ClusterMetadata(name, 1) for name in ("one", "late", "other"))
    one.put("a", 1)
    meet(one, late)
    one.delete("a")
    meet(one, other)
    meet(late, other)
    assert other.get("one", "a") is None
    assert late.get("one", "a") is None


@pytest.mark.rows("GO-R2", "GO-R19")
@given(st.integers(0, 12), st.integers(0, 5), st.integers(0, 2**32))
def test_peers_are_distinct_and_no_more_than_asked_for(pool: int, fanout: int, seed: int) -> None:
    rng = Random(seed)
    nodes = [f"n{number}" for number in range(pool)]
    peers = chosen_peers(nodes, fanout, lambda _, bound: rng.randrange(bound))
    assert len(peers) == len(set(peers)) == min(fanout, pool)
    assert set(peers) <= set(nodes)


@pytest.mark.rows("GO-S3", "GO-R4", "GO-R3")
def test_rounds_until_all_know_all_grow_like_the_logarithm_of_the_cluster() -> None:
    rounds = {nodes: max(rounds_until_all_know(nodes, 3, seed) for seed in range(10)) for nodes in (8, 100, 300)}
    assert rounds[8] <= 3
    assert rounds[100] <= 6
    assert rounds[300] <= 8


EXCHANGES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 4)), max_size=60)


@pytest.mark.rows("GO-I1", "GO-I2", "GO-I3", "GO-I4", "GO-R27")
@given(EXCHANGES, st.integers(1, 3))
def test_in_any_order_of_meetings_no_node_goes_back_and_in_the_end_all_agree(
    steps: list[tuple[int, int, int]], most: int
) -> None:
    nodes = [ClusterMetadata(f"n{number}", 1) for number in range(3)]
    for node in nodes:
        node.put("address", 1)
    generations = [1, 1, 1]
    for actor, partner, action in steps:
        before = [node.digest() for node in nodes]
        if action == 0:
            nodes[actor].put(f"k{partner}", len(before))
        elif action == 1:
            generations[actor] += 1
            nodes[actor] = ClusterMetadata(f"n{actor}", generations[actor])
            nodes[actor].put("address", generations[actor])
            before[actor] = {}
        elif actor != partner:
            meet(nodes[actor], nodes[partner], most)
        for node, digest in zip(nodes, before, strict=True):
            assert all(node.digest()[name] >= version for name, version in digest.items())
            for name, version in node.digest().items():
                assert version <= nodes[int(name[1:])].digest()[name]
    for _ in range(40):
        for one in nodes:
            for other in nodes:
                if one is not other:
                    meet(one, other, most)
    assert knowledge(nodes[0]) == knowledge(nodes[1]) == knowledge(nodes[2])
