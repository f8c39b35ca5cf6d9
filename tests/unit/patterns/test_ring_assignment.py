"""Partitions by token ring: who owns what, who gets what at a join, and invariants that can say no."""

from __future__ import annotations

import pytest

from faultline.harness.invariant import Breach
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import NotEnoughClusterNodes
from faultline.systems_under_test.patterns.data_partitioning.token_ring import RingAssignment
from faultline.systems_under_test.reference.partitioned_kv.invariants import (
    OneJoinsAtATime,
    OwnersFollowTheRing,
)
from faultline.systems_under_test.reference.partitioned_kv.messages import RingMoves, RingSettled

OLD = ["athens", "byzantium", "cyrene"]
WITH_DELPHI = [*OLD, "delphi"]
PARTITIONS = 256


def joined(ring: RingAssignment, owners: list[str], live: list[str]) -> tuple[list[str], list[str]]:
    """The owners after the planned moves, and from whom these came."""
    moves = ring.plan(owners, live)
    after = list(owners)
    for move in moves:
        after[move.partition] = move.target
    assert {move.target for move in moves} <= {"delphi", "ephesus"}
    return after, [move.source for move in moves]


@pytest.mark.rows("FXP-R33")
def test_who_joins_with_one_token_relieves_a_single_other_and_gets_what_the_ring_gives() -> None:
    ring = RingAssignment(PARTITIONS, 1)
    after, sources = joined(ring, ring.assign(OLD, 3), WITH_DELPHI)
    assert len(set(sources)) == 1
    assert after == ring.owners(WITH_DELPHI)


@pytest.mark.rows("FXP-R34")
def test_who_joins_with_many_tokens_takes_a_little_from_all() -> None:
    ring = RingAssignment(PARTITIONS, 64)
    after, sources = joined(ring, ring.assign(OLD, 3), WITH_DELPHI)
    assert set(sources) == set(OLD)
    assert after == ring.owners(WITH_DELPHI)
    assert ring.plan(after, WITH_DELPHI) == []


@pytest.mark.rows("FXP-R35", "FXP-S12")
def test_one_joins_at_a_time_and_a_join_that_was_broken_off_goes_on_first() -> None:
    ring = RingAssignment(PARTITIONS, 16)
    owners = ring.assign(OLD, 3)
    members = [*WITH_DELPHI, "ephesus"]
    first = ring.plan(owners, members)
    assert {move.target for move in first} == {"delphi"}
    owners[first[0].partition] = "delphi"
    assert {move.target for move in ring.plan(owners, [*OLD, "ephesus"])} == {"ephesus"}
    rest = ring.plan(owners, members)
    assert {(move.partition, move.source, move.target) for move in rest} == {
        (move.partition, move.source, move.target) for move in first[1:]
    }


def test_what_a_dead_member_owns_is_not_planned_to_move() -> None:
    ring = RingAssignment(PARTITIONS, 16)
    owners = ring.assign(OLD, 3)
    moves = ring.plan(owners, ["athens", "cyrene", "delphi"])
    assert moves
    assert "byzantium" not in {move.source for move in moves}


def test_a_ring_is_not_begun_with_too_few_members() -> None:
    with pytest.raises(NotEnoughClusterNodes, match="2 members live"):
        RingAssignment(PARTITIONS, 16).assign(OLD[:2], 3)


def test_the_invariants_of_a_ring_accept_what_is_right_and_name_what_is_not() -> None:
    ring = RingAssignment(PARTITIONS, 4)
    right = ring.owners(WITH_DELPHI)
    number = right.index("delphi")
    wrong = [*right[:number], "athens", *right[number + 1 :]]
    told: list[Breach] = []
    OwnersFollowTheRing().observe(1, "athens", RingSettled(tuple(right), 4), told.append)
    assert told == []
    OwnersFollowTheRing().observe(1, "athens", RingSettled(tuple(wrong), 4), told.append)
    assert [breach.invariant for breach in told] == ["FXP-R32"]
    assert f"athens owns partition {number}; the next token around the circle is delphi's" in told[0].sentence


def planned(ring: RingAssignment, owners: list[str], *live: str) -> tuple[tuple[int, str], ...]:
    return tuple((move.partition, move.target) for move in ring.plan(owners, [*OLD, *live]))


@pytest.mark.rows("FXP-R35")
def test_two_who_join_at_once_are_named() -> None:
    ring = RingAssignment(PARTITIONS, 4)
    owners = ring.assign(OLD, 3)
    of_one, of_another = planned(ring, owners, "delphi"), planned(ring, owners, "ephesus")
    told: list[Breach] = []
    OneJoinsAtATime().observe(1, "athens", RingMoves(tuple(owners), of_one, 4), told.append)
    assert told == []
    OneJoinsAtATime().observe(1, "athens", RingMoves(tuple(owners), of_one + of_another, 4), told.append)
    assert [breach.sentence for breach in told] == ["delphi and ephesus get partitions at the same time."]


@pytest.mark.rows("FXP-R35")
def test_partitions_that_are_handed_on_against_the_tokens_are_no_joins() -> None:
    ring = RingAssignment(PARTITIONS, 4)
    owners = ring.assign(OLD, 3)
    handed_on = ((owners.index("athens"), "byzantium"), (owners.index("byzantium"), "cyrene"))
    told: list[Breach] = []
    OneJoinsAtATime().observe(1, "athens", RingMoves(tuple(owners), handed_on, 4), told.append)
    OneJoinsAtATime().observe(
        1, "athens", RingMoves(tuple(owners), (*handed_on, *planned(ring, owners, "delphi")), 4), told.append
    )
    assert told == []
