"""Two clusters that list each other's members: no member is silent, so no merge begins, and yet one is to remain."""

from __future__ import annotations

import pytest
from emergent_driver import EmergentCluster

from faultline.systems_under_test.patterns.cluster_management.emergent_leader import Member, Membership
from faultline.systems_under_test.reference.membership.messages import JoinRequest, JoinResponse, UpdateMembership

A, B, C, D, E = "athens", "byzantium", "cyrene", "delphi", "ephesus"
MERGED_MS = 1_000


@pytest.mark.rows("EL-I1", "EL-R26")
def test_two_seeds_that_admit_each_other_late_end_under_one_coordinator() -> None:
    cluster = EmergentCluster(2)
    cluster.cut(A, B)
    cluster.wait(MERGED_MS)
    assert cluster.coordinators() == {A, B}
    cluster.heal()
    cluster.hand(A, B, JoinRequest(A, cluster.nodes[A].instance, 0, 1))
    cluster.hand(B, A, JoinRequest(B, cluster.nodes[B].instance, 0, 1))
    assert cluster.membership(A).version == cluster.membership(B).version
    assert sorted(cluster.live(A)) == sorted(cluster.live(B)) == [A, B]
    cluster.wait(MERGED_MS)
    assert cluster.agreed()
    assert cluster.coordinators() == {A}
    assert cluster.broken() == []


@pytest.mark.rows("EL-I1", "EL-R26")
@pytest.mark.parametrize("heartbeats", ["all", "ring"])
@pytest.mark.parametrize("followers_of_b", [(B,), (B, C, D, E), (B, D)])
@pytest.mark.parametrize("unknown_to_a", [None, E])
def test_two_clusters_that_list_each_other_under_one_version_become_one(
    heartbeats: str, followers_of_b: tuple[str, ...], unknown_to_a: str | None
) -> None:
    cluster = EmergentCluster(5, heartbeats=heartbeats)
    cluster.wait(800)
    under_b = Membership(9, tuple(Member(address, age, 1) for age, address in enumerate((B, A, D, C, E), 1)), (), 6, 5)
    known_to_a = [address for address in (A, B, C, D, E) if address != unknown_to_a]
    under_a = Membership(9, tuple(Member(address, age, 1) for age, address in enumerate(known_to_a, 1)), (), 6, 5)
    for node in cluster.members:
        follows_b = node in followers_of_b or node == unknown_to_a
        cluster.hand(B if follows_b else A, node, UpdateMembership(under_b if follows_b else under_a))
    assert cluster.coordinators() == {A, B}
    cluster.wait(2 * MERGED_MS)
    assert cluster.agreed()
    stays = A if unknown_to_a is None else B
    assert cluster.coordinators() == {stays}, "the larger cluster, or the one whose coordinator is first by name"
    assert sorted(cluster.live(A)) == sorted(cluster.members)
    assert cluster.broken() == []


def _founded_apart() -> EmergentCluster:
    cluster = EmergentCluster(3)
    cluster.cut(A, B)
    cluster.cut(A, C)
    cluster.wait(MERGED_MS)
    cluster.heal()
    return cluster


@pytest.mark.rows("EL-I6", "EL-R26")
def test_a_seed_that_founded_a_cluster_meanwhile_takes_the_late_answer_to_its_request() -> None:
    cluster = _founded_apart()
    admitted = cluster.membership(B).with_member(A, cluster.nodes[A].instance, 1)
    assert cluster.live(A) == [A]
    cluster.hand(B, A, JoinResponse(cluster.nodes[A].instance, admitted))
    assert sorted(cluster.live(A)) == [A, B, C]
    assert cluster.coordinators() == {B}


@pytest.mark.rows("EL-R26")
def test_a_late_answer_does_not_take_a_coordinator_from_its_members() -> None:
    cluster = _founded_apart()
    admitted = cluster.membership(A).with_member(B, cluster.nodes[B].instance, 9)
    cluster.hand(A, B, JoinResponse(cluster.nodes[B].instance, admitted))
    assert sorted(cluster.live(B)) == [B, C]
