"""Stories of nodes that gossip: GO-S* of the requirements, with real nodes of the system `gossip`."""

from __future__ import annotations

import pytest

from faultline.story.gossip_cluster import GossipCluster
from faultline.systems_under_test.reference.gossip.messages import GossipDigest, GossipStates, RoundBegun, WriteMetadata


@pytest.mark.rows("GO-R1", "GO-R6", "GO-R7", "GO-R8", "GO-S2")
def test_nodes_that_know_only_the_seed_come_to_know_each_other() -> None:
    cluster = GossipCluster(5, detector="none")
    assert list(cluster.nodes["delphi"].metadata.nodes()) == ["delphi"]
    cluster.rounds(4)
    assert all(list(node.metadata.nodes()) == sorted(cluster.members) for node in cluster.nodes.values())
    assert cluster.agree()
    assert cluster.broken() == []


@pytest.mark.rows("GO-R8")
def test_a_node_without_seeds_and_without_acquaintances_waits_to_be_asked() -> None:
    cluster = GossipCluster(1, detector="none")
    cluster.rounds(3)
    assert {event.peers for _, event in cluster.events_of(RoundBegun)} == {()}


@pytest.mark.rows("GO-S5", "GO-R11")
def test_two_halves_that_heard_different_things_agree_after_the_heal() -> None:
    cluster = GossipCluster(5, detector="none")
    cluster.rounds(4)
    cluster.split("athens", "byzantium")
    cluster.nodes["athens"].say("load", 7)
    cluster.nodes["delphi"].say("load", 9)
    cluster.rounds(4)
    assert cluster.known("byzantium", "athens", "load") == 7
    assert cluster.known("byzantium", "delphi", "load") is None
    cluster.heal()
    cluster.rounds(6)
    assert cluster.agree()
    assert cluster.known("ephesus", "athens", "load") == 7


@pytest.mark.rows("GO-S6", "GO-I5")
def test_when_nothing_changes_rounds_carry_no_values() -> None:
    cluster = GossipCluster(3, detector="none")
    cluster.rounds(5)
    cluster.sent.clear()
    cluster.rounds(3)
    assert {type(message) for message in cluster.sent} == {GossipDigest}
    cluster.nodes["athens"].say("load", 1)
    cluster.sent.clear()
    cluster.rounds(3)
    values = [delta.entries for m in cluster.sent if isinstance(m, GossipStates) for delta in m.states.values()]
    assert values and all(list(entries) == ["load"] for entries in values)


@pytest.mark.rows("GO-S8", "GO-S9")
def test_all_nodes_find_a_node_that_restarts_under_its_new_address() -> None:
    cluster = GossipCluster(3, detector="none")
    cluster.rounds(4)
    cluster.nodes["cyrene"].say("tokens", 256)
    cluster.rounds(3)
    assert cluster.known("athens", "cyrene", "tokens") == 256
    cluster.restart("cyrene")
    cluster.rounds(5)
    assert {cluster.known(node, "cyrene") for node in cluster.members} == {"cyrene:2"}
    assert cluster.known("athens", "cyrene", "tokens") is None
    assert cluster.known("cyrene", "cyrene", "tokens") is None


@pytest.mark.rows("GO-S11", "GO-R23", "GO-I6")
@pytest.mark.parametrize("detector", ["fixed", "phi-accrual", "swim", "heartbeats"])
def test_a_node_that_was_away_is_taken_for_down_and_for_up_again(detector: str) -> None:
    cluster = GossipCluster(3, detector=detector)
    cluster.rounds(6)
    assert cluster.nodes["athens"].up() == sorted(cluster.members)
    cluster.cut("cyrene")
    cluster.rounds(25)
    assert cluster.nodes["athens"].up() == ["athens", "byzantium"]
    assert cluster.nodes["cyrene"].up() == ["cyrene"]
    cluster.heal()
    cluster.rounds(12)
    assert all(node.up() == sorted(cluster.members) for node in cluster.nodes.values())


@pytest.mark.rows("GO-S11", "GO-I6", "HB-I1", "HB-I2")
def test_a_node_that_dies_is_down_for_all_others_in_time_and_up_when_it_is_back() -> None:
    for detector in ("heartbeats", "lifeguard"):
        cluster = GossipCluster(5, detector=detector, down_after_ms="500")
        cluster.rounds(6)
        cluster.kill("cyrene")
        cluster.rounds(25)
        others = [node for name, node in cluster.nodes.items() if name != "cyrene"]
        assert all(node.up() == ["athens", "byzantium", "delphi", "ephesus"] for node in others)
        cluster.start("cyrene")
        cluster.rounds(15)
        assert all(node.up() == sorted(cluster.members) for node in cluster.nodes.values())
        assert cluster.broken() == []


@pytest.mark.rows("HB-I2", "HB-R16")
def test_halves_that_took_each_other_for_dead_find_each_other_after_the_heal_under_lifeguard() -> None:
    cluster = GossipCluster(5, detector="lifeguard", down_after_ms="200")
    cluster.rounds(6)
    cluster.split("athens", "byzantium")
    cluster.rounds(60)
    assert cluster.nodes["athens"].up() == ["athens", "byzantium"]
    assert cluster.nodes["ephesus"].up() == ["cyrene", "delphi", "ephesus"]
    cluster.heal()
    cluster.rounds(18)
    assert all(node.up() == sorted(cluster.members) for node in cluster.nodes.values())
    assert cluster.broken() == []


@pytest.mark.rows("GO-R24")
def test_a_node_with_a_link_to_the_suspect_answers_for_it_under_swim() -> None:
    cluster = GossipCluster(3, detector="swim")
    cluster.rounds(4)
    cluster.cut("athens", "cyrene")
    cluster.rounds(20)
    assert cluster.nodes["athens"].up() == sorted(cluster.members)


@pytest.mark.rows("GO-S12")
def test_islands_meet_because_a_seed_is_asked_now_and_then() -> None:
    for every, meet in (("0", False), ("5", True)):
        cluster = GossipCluster(4, detector="none", seeds="2", seed_every=every)
        islands = [("athens", "cyrene"), ("byzantium", "delphi")]
        cluster.split(*islands[0])
        cluster.rounds(6)
        cluster.heal()
        cluster.rounds(12)
        has_met_all = list(cluster.nodes["cyrene"].metadata.nodes()) == sorted(cluster.members)
        assert has_met_all == meet


@pytest.mark.rows("GO-S13", "GO-M9")
def test_a_mute_peer_does_not_stop_the_rounds() -> None:
    cluster = GossipCluster(3, detector="none")
    cluster.rounds(3)
    cluster.cut("byzantium")
    cluster.nodes["athens"].say("load", 3)
    begun = len(cluster.events_of(RoundBegun))
    cluster.rounds(5)
    assert len(cluster.events_of(RoundBegun)) - begun == 3 * 5
    assert cluster.known("cyrene", "athens", "load") == 3


@pytest.mark.rows("GO-R16", "GO-R18", "GO-M8")
@pytest.mark.parametrize("exchange", ["three-way", "digest", "full", "checksum"])
def test_every_form_of_exchange_spreads_what_is_said(exchange: str) -> None:
    cluster = GossipCluster(4, detector="none", exchange=exchange)
    cluster.nodes["delphi"].say("load", 5)
    cluster.rounds(8)
    assert {cluster.known(node, "delphi", "load") for node in cluster.members} == {5}


@pytest.mark.rows("GO-R21", "GO-M13")
def test_two_nodes_may_know_different_things_so_gossip_decides_nothing() -> None:
    cluster = GossipCluster(3, detector="none")
    cluster.rounds(4)
    cluster.nodes["athens"].say("owner-of-partition-1", "athens")
    cluster.nodes["byzantium"].say("owner-of-partition-1", "byzantium")
    assert cluster.known("athens", "byzantium", "owner-of-partition-1") is None
    assert cluster.known("byzantium", "athens", "owner-of-partition-1") is None


def test_a_write_that_the_network_repeats_does_not_undo_a_later_one() -> None:
    cluster = GossipCluster(2)
    first, second = WriteMetadata(1, "k", 1), WriteMetadata(1, "k", 2)
    for client, write in (("alice", first), ("bob", second), ("alice", first)):
        cluster.hand(client, "athens", write)
    assert cluster.known("athens", "athens", "k") == 2
