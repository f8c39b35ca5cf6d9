"""Stories of a cluster that its oldest member coordinates: EL-S* of the requirements."""

from __future__ import annotations

import pytest
from emergent_driver import TIMEOUT_MS, EmergentCluster

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.cluster_management.emergent_leader import Member, Membership, absorbs
from faultline.systems_under_test.reference.emergent.node import NOT_ENOUGH_MEMBERS, NOT_JOINED
from faultline.systems_under_test.reference.membership.messages import (
    Heartbeat,
    JoinRequest,
    JoinResponse,
    MembershipAcknowledged,
    MembershipMade,
    MergeInto,
    UpdateMembership,
)

A, B, C, D, E = "athens", "byzantium", "cyrene", "delphi", "ephesus"
NOTICED = TIMEOUT_MS + 100
MERGED = 1_000


def five(**options: str) -> EmergentCluster:
    cluster = EmergentCluster(5, **options)
    cluster.wait(800)
    assert cluster.agreed()
    return cluster


@pytest.mark.rows("EL-S1", "EL-R1", "EL-R3", "EL-R5", "EL-R7", "EL-R9")
def test_members_are_numbered_as_they_join_and_the_seed_coordinates() -> None:
    cluster = EmergentCluster(3, seeds="1")
    assert [(member.address, member.age) for member in cluster.membership(A).live] == [(A, 1)]
    cluster.wait(200)
    assert cluster.agreed()
    assert sorted(member.age for member in cluster.membership(A).live) == [1, 2, 3]
    assert cluster.membership(A).version == 3
    assert cluster.coordinators() == {A}


@pytest.mark.rows("EL-S2", "EL-R6", "EL-I7")
def test_a_member_that_starts_before_its_seed_goes_on_asking_and_serves_no_client_meanwhile() -> None:
    cluster = EmergentCluster(3, seeds="1")
    cluster.kill(A)
    cluster.restart(B)
    cluster.wait(1_000)
    assert cluster.ask(B).error == NOT_JOINED
    cluster.start(A)
    cluster.wait(300)
    assert B in cluster.live(A)


@pytest.mark.rows("EL-S2", "EL-R6")
def test_with_a_limit_of_five_attempts_a_joiner_gives_up_for_good() -> None:
    cluster = EmergentCluster(2, seeds="1", join_attempts="5")
    cluster.kill(A)
    cluster.restart(B)
    cluster.wait(2_000)
    cluster.start(A)
    cluster.wait(2_000)
    assert not cluster.joined(B)


@pytest.mark.rows("EL-S3", "EL-R13", "EL-M15", "EL-M16")
@pytest.mark.parametrize("lost", [False, True])
def test_a_joiner_is_answered_when_all_have_acknowledged_or_after_a_while(lost: bool) -> None:
    cluster = EmergentCluster(4, seeds="1")
    cluster.kill(D)
    cluster.wait(400)
    cluster.start(D)
    cluster.deliver(lambda _, __, m: isinstance(m, (JoinRequest, UpdateMembership)))
    assert not cluster.joined(D)
    if lost:
        cluster.drop(lambda source, _, m: source == C and isinstance(m, MembershipAcknowledged))
    cluster.deliver(lambda _, __, m: isinstance(m, (MembershipAcknowledged, JoinResponse)))
    assert cluster.joined(D) is not lost
    cluster.wait(250)
    assert cluster.joined(D)


@pytest.mark.rows("EL-S4", "EL-R14", "EL-R15", "EL-M5", "EL-M6")
def test_a_heartbeat_with_an_old_version_is_answered_with_the_membership() -> None:
    cluster = five()
    cluster.kill(E)
    cluster.pass_time(1_000 * (TIMEOUT_MS - 60))
    for _ in range(20):
        if not cluster.membership(A).failed:
            cluster.ports[A].ring(cluster.ports[A].next_timer())
    cluster.drop(lambda _, target, m: target == B and isinstance(m, UpdateMembership))
    cluster.deliver()
    assert cluster.membership(B).version < cluster.membership(A).version
    version = cluster.membership(B).version
    cluster.hand(B, A, Heartbeat(cluster.nodes[B].instance, version, A))
    repairs = cluster.take(lambda source, _, m: source == A and isinstance(m, UpdateMembership))
    assert [target for _, target, _ in repairs] == [B]
    cluster.hand(*repairs[0])
    assert cluster.membership(B) == cluster.membership(A)


@pytest.mark.rows("EL-S5", "EL-R2", "EL-R18", "EL-I5", "EL-M3")
def test_only_the_coordinator_marks_a_silent_member_as_failed() -> None:
    cluster = five()
    cluster.split(A)
    cluster.kill(C)
    cluster.wait(TIMEOUT_MS - 50)
    cluster.heal()
    cluster.wait(200)
    assert cluster.failed(B) == [C]
    assert cluster.agreed()
    assert cluster.broken() == []


@pytest.mark.rows("EL-S6", "EL-R20", "EL-I2")
def test_when_the_coordinator_dies_only_the_next_oldest_takes_over() -> None:
    cluster = five()
    order = cluster.live(A)
    cluster.kill(A)
    cluster.wait(NOTICED)
    assert cluster.coordinators() == {order[1]}
    assert cluster.failed(order[1]) == [A]
    assert cluster.broken() == []


@pytest.mark.rows("EL-S7", "EL-M2")
@pytest.mark.parametrize("others", [1, 3])
def test_when_the_coordinator_and_another_die_together_the_oldest_survivor_takes_over(others: int) -> None:
    cluster = five()
    order = cluster.live(A)
    cluster.kill(A)
    cluster.kill(order[others])
    cluster.wait(NOTICED)
    survivors = [member for member in order if member in cluster.nodes]
    assert cluster.coordinators() == {survivors[0]}
    assert cluster.failed(survivors[0]) == sorted({A, order[others]})


@pytest.mark.rows("EL-S8", "EL-M1")
def test_who_alone_does_not_hear_the_coordinator_does_not_take_over() -> None:
    cluster = five()
    youngest = cluster.live(A)[-1]
    cluster.cut(A, youngest)
    cluster.wait(2 * NOTICED)
    assert A in cluster.coordinators()
    assert youngest not in [node for node, _ in cluster.events_of(MembershipMade)]


@pytest.mark.rows("EL-S9", "EL-R10", "EL-R9", "EL-M7", "EL-M8", "EL-M13")
def test_a_member_that_had_failed_comes_back_once_and_as_the_youngest() -> None:
    cluster = five()
    cluster.kill(C)
    cluster.wait(NOTICED)
    assert cluster.failed(A) == [C]
    cluster.start(C)
    cluster.wait(300)
    assert cluster.live(A)[-1] == C
    assert cluster.failed(A) == []
    assert cluster.agreed()


@pytest.mark.rows("EL-S10", "EL-R11", "EL-I4")
def test_a_restart_that_no_member_noticed_leaves_one_entry_with_a_new_age() -> None:
    cluster = five()
    age = cluster.membership(A).member(C).age
    cluster.restart(C)
    cluster.wait(300)
    entries = [member for member in cluster.membership(A).live if member.address == C]
    assert len(entries) == 1 and entries[0].age > age and entries[0].instance == 2
    assert cluster.agreed()


@pytest.mark.rows("EL-S10", "EL-R11")
def test_a_join_that_is_repeated_gets_the_same_answer_and_changes_nothing() -> None:
    cluster = five()
    version = cluster.membership(A).version
    cluster.hand(C, A, JoinRequest(C, cluster.nodes[C].instance, version, 5))
    assert cluster.membership(A).version == version


def cut_in_two() -> EmergentCluster:
    """Five members, and B and C cut off from the rest until all have noticed."""
    cluster = five()
    cluster.split(B, C)
    cluster.wait(NOTICED)
    return cluster


@pytest.mark.rows("EL-S11", "EL-R21", "EL-R22", "EL-I6", "EL-M9", "EL-M10")
def test_cut_in_two_the_larger_half_serves_and_the_smaller_refuses() -> None:
    cluster = cut_in_two()
    assert cluster.live(A)[0] == A and sorted(cluster.live(A)) == [A, D, E]
    assert sorted(cluster.live(B)) == [B, C]
    assert len(cluster.coordinators()) == 2
    assert cluster.ask(D).view["live"] == [A, D, E]
    assert cluster.ask(C).error == NOT_ENOUGH_MEMBERS


@pytest.mark.rows("EL-S11", "EL-R22")
def test_before_the_cut_is_noticed_both_halves_answer_for_the_whole_which_is_the_window() -> None:
    cluster = five()
    cluster.split(B, C)
    cluster.wait(TIMEOUT_MS - 100)
    assert cluster.ask(C).view["live"] == cluster.ask(D).view["live"] == sorted(cluster.members)


@pytest.mark.rows("EL-S12", "EL-R24", "EL-R25", "EL-R27", "EL-M12", "EL-M17", "EL-I1")
def test_after_the_heal_the_smaller_group_dissolves_into_the_larger() -> None:
    cluster = cut_in_two()
    oldest_there = max(member.age for member in cluster.membership(A).live)
    cluster.heal()
    cluster.wait(MERGED)
    assert cluster.agreed()
    assert cluster.coordinators() == {A}
    assert cluster.failed(A) == []
    ages = {member.address: member.age for member in cluster.membership(A).live}
    assert min(ages[B], ages[C]) > oldest_there
    assert cluster.broken() == []


@pytest.mark.rows("EL-S13", "EL-R26", "EL-M11")
def test_of_two_equal_halves_the_one_with_the_older_coordinator_stays() -> None:
    cluster = EmergentCluster(4)
    cluster.wait(800)
    cluster.split(A, D)
    cluster.wait(NOTICED)
    assert cluster.ask(A).error == cluster.ask(B).error == NOT_ENOUGH_MEMBERS
    cluster.heal()
    cluster.wait(MERGED)
    assert cluster.agreed()
    assert cluster.coordinators() == {A}


@pytest.mark.rows("EL-R26")
def test_the_rule_that_decides_between_two_groups_says_the_same_to_both() -> None:
    old, young = Member(A, 1, 1), Member(B, 2, 1)
    larger, smaller = Membership(5, (young, Member(C, 3, 1))), Membership(4, (old,))
    assert absorbs(larger, 1, old) and not absorbs(smaller, 2, young)
    assert absorbs(smaller, 1, young) and not absorbs(Membership(9, (young,)), 1, old)


@pytest.mark.rows("EL-S14")
def test_a_cluster_cut_in_three_becomes_one_whatever_heals_first() -> None:
    cluster = five()
    for one in (A, B, C, D, E):
        for other in (A, B, C, D, E):
            if one < other and {one, other} not in ({A, B}, {C, D}):
                cluster.cut(one, other)
    cluster.wait(NOTICED)
    assert len(cluster.coordinators()) == 3
    cluster.cuts -= {(one, other) for one in (A, B, C, D) for other in (A, B, C, D)}
    cluster.wait(MERGED)
    cluster.heal()
    cluster.wait(MERGED)
    assert cluster.agreed()
    assert sorted(cluster.live(A)) == sorted(cluster.members)


@pytest.mark.rows("EL-S15", "EL-R29", "EL-M14", "EL-R8")
@pytest.mark.parametrize("seeds", ["1", "2"])
def test_a_seed_that_restarts_ends_as_the_youngest_of_the_old_cluster(seeds: str) -> None:
    cluster = five(seeds=seeds)
    cluster.kill(A)
    cluster.wait(NOTICED)
    cluster.start(A)
    if seeds == "1":
        assert cluster.ask(A).error == NOT_ENOUGH_MEMBERS, "it remembers how large the cluster was"
    cluster.wait(MERGED)
    assert cluster.agreed()
    assert cluster.live(B)[-1] == A


@pytest.mark.rows("EL-S16", "EL-M4", "EL-R14")
def test_a_welcome_that_comes_after_a_newer_update_changes_nothing() -> None:
    cluster = five()
    old = cluster.membership(C)
    cluster.kill(E)
    cluster.wait(NOTICED)
    new = cluster.membership(C)
    assert new.version > old.version
    cluster.hand(A, C, JoinResponse(cluster.nodes[C].instance, old))
    cluster.hand(A, C, UpdateMembership(old))
    assert cluster.membership(C) == new


@pytest.mark.rows("EL-S17", "EL-R30", "EL-M18", "EL-I8")
def test_a_coordinator_that_was_paused_expels_no_member_and_comes_back_as_the_youngest() -> None:
    cluster = five()
    paused, cluster.ports[A].waiting = cluster.ports[A].waiting, []
    cluster.cut(A)
    cluster.wait(NOTICED)
    assert cluster.live(B)[0] != A
    cluster.heal()
    cluster.ports[A].waiting = paused
    cluster.wait(MERGED)
    assert "slept-through" in cluster.marks
    assert cluster.agreed()
    assert cluster.live(B)[-1] == A
    assert cluster.broken() == []


@pytest.mark.rows("EL-S18")
def test_a_member_that_is_not_heard_is_told_and_joins_again_when_it_is() -> None:
    cluster = five()
    cluster.cuts |= {(C, other) for other in cluster.members if other != C}
    cluster.wait(NOTICED)
    assert cluster.failed(A) == [C]
    cluster.heal()
    cluster.wait(MERGED)
    assert cluster.agreed()
    assert cluster.live(A)[-1] == C


@pytest.mark.rows("EL-S19", "EL-R28")
def test_when_the_target_of_a_merge_dies_the_dissolved_group_finds_the_others() -> None:
    cluster = cut_in_two()
    cluster.heal()
    for _ in range(MERGED):
        if not cluster.joined(B):
            break
        cluster.wait(1)
    cluster.kill(A)
    cluster.wait(2 * MERGED)
    assert cluster.agreed()
    assert sorted(cluster.live(B)) == [B, C, D, E]


@pytest.mark.rows("EL-S20", "EL-R8", "EL-R4")
def test_without_seeds_the_members_go_on_and_no_new_member_is_admitted() -> None:
    cluster = five(seeds="1")
    cluster.kill(E)
    cluster.wait(NOTICED)
    cluster.kill(A)
    cluster.wait(NOTICED)
    assert cluster.ask(B).view is not None
    cluster.start(E)
    cluster.wait(MERGED)
    assert not cluster.joined(E)
    cluster.start(A)
    cluster.wait(MERGED)
    assert cluster.agreed()
    assert sorted(cluster.live(B)) == sorted(cluster.members)


@pytest.mark.rows("EL-R12")
def test_a_seed_that_does_not_coordinate_passes_a_join_on() -> None:
    cluster = five()
    assert cluster.coordinators() == {A}
    cluster.hand(C, B, JoinRequest(C, 2, 0, 1))
    passed = cluster.take(lambda source, _, m: source == B and isinstance(m, JoinRequest))
    assert [target for _, target, _ in passed] == [A]


@pytest.mark.rows("EL-R19", "EL-R16")
@pytest.mark.parametrize("dead", [(A,), (A, B), (B, C), (A, B, C)])
def test_in_a_ring_members_that_die_are_noticed_by_the_next_that_live(dead: tuple[str, ...]) -> None:
    cluster = five(heartbeats="ring")
    for member in dead:
        cluster.kill(member)
    cluster.wait(4 * NOTICED)
    assert cluster.agreed()
    assert cluster.failed(E) == sorted(dead)


@pytest.mark.rows("EL-R28")
def test_a_merge_from_a_member_that_does_not_coordinate_is_ignored() -> None:
    cluster = five()
    cluster.hand(D, C, MergeInto(D))
    cluster.hand(A, C, MergeInto(A))
    assert cluster.joined(C)


def test_a_node_knows_itself_by_its_start() -> None:
    cluster = five()
    cluster.hand(A, C, UpdateMembership(Membership(99, (Member(NodeId(A), 1, 1), Member(NodeId(C), 2, 77)))))
    assert not cluster.joined(C), "that C is another start of the process, so this one was removed"
