"""Quorum: the table of QRM-R2 and who is counted (QRM-R7)."""

from __future__ import annotations

from itertools import combinations

import pytest

from faultline.systems_under_test.patterns.data_replication.quorum import QuorumTracker, majority, tolerated_failures


@pytest.mark.rows("QRM-R1", "QRM-R4")
@pytest.mark.parametrize(
    ("n", "needed", "tolerated"), [(1, 1, 0), (2, 2, 0), (3, 2, 1), (4, 3, 1), (5, 3, 2), (6, 4, 2), (7, 4, 3)]
)
def test_majorities_and_tolerated_failures_are_those_of_the_table(n: int, needed: int, tolerated: int) -> None:
    assert (majority(n), tolerated_failures(n)) == (needed, tolerated)


@pytest.mark.rows("QRM-I1")
@pytest.mark.parametrize("n", range(1, 7))
def test_any_two_majorities_share_a_member(n: int) -> None:
    quorums = [frozenset(quorum) for quorum in combinations(range(n), majority(n))]
    assert all(one & other for one in quorums for other in quorums)


@pytest.mark.parametrize("n", [0, -1])
def test_a_cluster_without_members_has_no_majority(n: int) -> None:
    with pytest.raises(ValueError, match="at least one member"):
        majority(n)


@pytest.mark.rows("QRM-R7")
def test_a_quorum_is_reached_by_distinct_members_only() -> None:
    tracker = QuorumTracker(["athens", "byzantium", "cyrene"])
    assert tracker.record("athens")
    assert not tracker.record("athens")
    assert not tracker.reached
    assert tracker.record("cyrene")
    assert tracker.reached
    assert tracker.recorded == ("athens", "cyrene")


@pytest.mark.rows("QRM-R7", "QRM-S7")
def test_nodes_that_are_no_members_do_not_count() -> None:
    tracker = QuorumTracker(["athens", "byzantium", "cyrene"])
    assert not tracker.record("ephesus")
    tracker.record("athens")
    assert not tracker.reached


def test_a_member_named_twice_is_one_member() -> None:
    assert QuorumTracker(["athens", "byzantium", "athens"]).needed == 2
    assert QuorumTracker(["athens", "athens"]).needed == 1


def test_another_quorum_size_can_be_asked_for() -> None:
    tracker = QuorumTracker(["athens", "byzantium", "cyrene"], needed=3)
    assert [tracker.reached for member in ("athens", "byzantium", "cyrene") if tracker.record(member)] == [
        False,
        False,
        True,
    ]


@pytest.mark.parametrize("needed", [0, 4, -1])
def test_a_quorum_that_can_never_decide_anything_is_refused(needed: int) -> None:
    with pytest.raises(ValueError, match="never be reached"):
        QuorumTracker(["athens", "byzantium", "cyrene"], needed=needed)
