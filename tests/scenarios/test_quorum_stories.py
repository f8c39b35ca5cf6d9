"""Stories of the quorum in a cluster with a leader, where one majority decides about updates and about leaders."""

from __future__ import annotations

from itertools import pairwise

import pytest

from faultline.story.log_cluster import ELECTION_TIMEOUT_US, Client, Cluster
from faultline.systems_under_test.patterns.data_replication.quorum import tolerated_failures

SPLITS = [
    pytest.param(5, ("delphi", "ephesus"), id="three-two"),
    pytest.param(4, ("cyrene", "delphi"), id="two-two"),
    pytest.param(2, ("byzantium",), id="one-one"),
    pytest.param(6, ("delphi", "ephesus", "fatima"), id="three-three"),
]


def led_by_athens(size: int, **options: str) -> tuple[Cluster, Client]:
    cluster = Cluster(size, **options)
    cluster.elect("athens")
    return cluster, Client(cluster, "alice").register("athens")


def elects(cluster: Cluster, name: str) -> bool:
    """Return whether the servers that `name` reaches elect it when it stands again and again."""
    cluster.go_silent()
    for _ in range(4):
        cluster.time_out(name)
        cluster.deliver()
        if cluster.leads(name):
            return True
    return False


@pytest.mark.rows("QRM-S1", "QRM-S2", "QRM-R3", "QRM-R5")
@pytest.mark.parametrize(("size", "other_side"), SPLITS)
def test_a_side_commits_and_elects_exactly_when_it_has_a_majority_of_all(
    size: int, other_side: tuple[str, ...]
) -> None:
    cluster, alice = led_by_athens(size, pre_vote="off")
    cluster.split(*other_side)
    number = alice.set("athens", "title", "Nitroservices")
    cluster.deliver()
    has_majority = size - len(other_side) > size / 2
    assert (alice.answer_to(number) is not None) is has_majority
    assert not elects(cluster, other_side[0])
    if size > 2:
        assert elects(cluster, "byzantium") is has_majority
    assert cluster.broken() == []


@pytest.mark.rows("QRM-S4", "QRM-R5")
def test_of_two_two_and_one_no_part_acknowledges_or_elects_until_two_of_them_meet() -> None:
    cluster, alice = led_by_athens(5)
    cluster.split("athens", "byzantium")
    cluster.split("cyrene", "delphi")
    number = alice.set("athens", "title", "Nitroservices")
    cluster.deliver()
    assert alice.answers_to(number) == []
    assert [elects(cluster, name) for name in ("byzantium", "cyrene", "ephesus")] == [False] * 3
    cluster.heal()
    cluster.split("athens", "byzantium")
    assert elects(cluster, "cyrene")
    assert cluster.broken() == []


@pytest.mark.rows("QRM-S6")
def test_of_two_leaders_that_share_a_bridge_only_the_newer_one_acknowledges() -> None:
    """cyrene sees both sides, which do not see each other."""
    cluster, alice = led_by_athens(5, pre_vote="off")
    for name in ("athens", "byzantium"):
        cluster.cut(name, "delphi", "ephesus")
    cluster.elect("delphi")
    assert sorted(cluster.leaders()) == ["athens", "delphi"]
    old = alice.set("athens", "title", "old")
    cluster.deliver()
    bob = Client(cluster, "bob").register("delphi")
    new = bob.set("delphi", "title", "new")
    cluster.deliver()
    assert [answer.error for answer in bob.answers_to(new)] == [None]
    assert [answer for answer in alice.answers_to(old) if answer.error is None] == []
    cluster.heal()
    cluster.pass_time(ELECTION_TIMEOUT_US)
    assert cluster.leaders() == ["delphi"]
    assert {cluster.values(name).get("title") for name in cluster.members} == {"new"}
    assert cluster.broken() == []


@pytest.mark.rows("QRM-R2", "QRM-R4")
def test_each_further_server_costs_messages_and_only_every_second_one_tolerates_another_failure() -> None:
    sent = []
    for size in range(2, 8):
        cluster, alice = led_by_athens(size)
        before = len(cluster.queue)
        alice.set("athens", "title", "Nitroservices")
        sent.append(len(cluster.queue) - before)
    assert all(one < other for one, other in pairwise(sent))
    assert [tolerated_failures(size) for size in range(3, 7)] == [1, 1, 2, 2]
