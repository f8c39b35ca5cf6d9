"""Stories about Zab's election: the best log, then the highest id, wins; only the winner raises the generation."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.story.log_cluster import ELECTION_TIMEOUT_US, HEARTBEAT_US, Client, Cluster
from faultline.systems_under_test.patterns.data_replication.generation_agreement import (
    GenerationPromised,
    NewGeneration,
)
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import ServerRole
from faultline.systems_under_test.patterns.data_replication.zab_election import (
    ElectionNotification,
    FollowerInformation,
    Vote,
)


def settled(size: int = 3, **options: str) -> Cluster:
    """A cluster that has elected its first leader and heard from it."""
    cluster = Cluster(size, election="zab", **options)
    cluster.pass_time(2 * ELECTION_TIMEOUT_US)
    return cluster


def sent(cluster: Cluster, source: str, kind: type) -> list[Any]:
    """Return the messages of this kind that `source` has sent and no node has received."""
    return [message for sender, _, message in cluster.queue if sender == source and isinstance(message, kind)]


@pytest.mark.rows("LDR-R12", "LDR-R2", "LDR-R16")
@pytest.mark.parametrize(("size", "winner"), [(3, "cyrene"), (5, "ephesus")])
def test_servers_start_looking_and_among_equals_the_highest_id_wins(size: int, winner: str) -> None:
    cluster = Cluster(size, election="zab")
    assert {node.election.role for node in cluster.nodes.values()} == {ServerRole.LOOKING_FOR_LEADER}
    cluster.pass_time(ELECTION_TIMEOUT_US)
    assert cluster.leaders() == [winner]
    assert {cluster.generation(name) for name in cluster.members} == {1}
    assert cluster.broken() == []


@pytest.mark.rows("LDR-R12", "LDR-R7")
def test_a_more_recent_log_beats_a_higher_id() -> None:
    cluster = settled()
    cluster.cut("cyrene")
    cluster.pass_time(4 * ELECTION_TIMEOUT_US)
    assert cluster.leaders() == ["byzantium"]
    Client(cluster, "alice").register("byzantium").set("byzantium", "title", "Microservices")
    cluster.deliver()
    cluster.heal()
    cluster.kill("athens")
    cluster.kill("byzantium")
    cluster.kill("cyrene")
    cluster.start("athens")
    cluster.start("cyrene")
    cluster.pass_time(2 * ELECTION_TIMEOUT_US)
    assert cluster.leaders() == ["athens"]
    assert cluster.values("cyrene") == {"title": "Microservices"}
    assert cluster.broken() == []


@pytest.mark.rows("LDR-R12")
def test_a_server_that_is_cut_off_raises_no_generation_and_deposes_no_leader_when_it_returns() -> None:
    cluster = settled()
    cluster.cut("athens")
    cluster.pass_time(8 * ELECTION_TIMEOUT_US)
    assert cluster.generation("athens") == 1
    cluster.heal()
    cluster.pass_time(ELECTION_TIMEOUT_US)
    assert cluster.leaders() == ["cyrene"]
    assert cluster.nodes["athens"].election.leader_id == "cyrene"
    assert cluster.marks.count("leader-changed") == 0


@pytest.mark.rows("LDR-S2", "GEN-I5")
def test_a_killed_leader_is_replaced_in_a_higher_generation_and_comes_back_as_a_follower() -> None:
    cluster = settled()
    cluster.kill("cyrene")
    cluster.pass_time(4 * ELECTION_TIMEOUT_US)
    assert cluster.leaders() == ["byzantium"]
    assert cluster.generation("byzantium") == 2
    cluster.start("cyrene")
    cluster.pass_time(ELECTION_TIMEOUT_US)
    assert cluster.leaders() == ["byzantium"]
    assert cluster.nodes["cyrene"].election.leader_id == "byzantium"
    assert cluster.broken() == []


def test_a_newcomer_that_hears_the_notifications_of_those_settled_joins_their_leader() -> None:
    """It follows when a majority names a leader that says itself that it leads; before, it does not."""
    cluster = settled()
    cluster.kill("athens")
    cluster.start("athens")
    cluster.drop(lambda *_: True)
    chosen = Vote(9, 9, "cyrene")
    cluster.hand("byzantium", "athens", ElectionNotification("byzantium", 1, False, chosen))
    assert sent(cluster, "athens", FollowerInformation) == []
    cluster.hand("cyrene", "athens", ElectionNotification("cyrene", 1, False, chosen))
    assert sent(cluster, "athens", FollowerInformation) == [FollowerInformation("athens", 1)]


def test_a_leader_named_by_a_majority_that_does_not_say_so_itself_is_not_followed() -> None:
    cluster = Cluster(5, election="zab")
    for name in ("byzantium", "cyrene", "delphi"):
        cluster.hand(name, "athens", ElectionNotification(name, 1, False, Vote(0, 0, "ephesus")))
    assert sent(cluster, "athens", FollowerInformation) == []


@pytest.mark.rows("LDR-R8", "LDR-S5", "GEN-S3")
def test_a_promise_survives_a_restart_and_is_given_to_no_other_server() -> None:
    cluster = joining("byzantium", to="cyrene")
    cluster.hand("cyrene", "byzantium", NewGeneration("cyrene", 7))
    assert [answer.promised for answer in sent(cluster, "byzantium", GenerationPromised)] == [True]
    cluster.restart("byzantium")
    assert cluster.generation("byzantium") == 7
    cluster.drop(lambda *_: True)
    cluster = rejoin(cluster, "byzantium", to="athens")
    cluster.hand("athens", "byzantium", NewGeneration("athens", 7))
    assert [answer.promised for answer in sent(cluster, "byzantium", GenerationPromised)] == [False]


def joining(name: str, to: str) -> Cluster:
    """A cluster in which `name` has chosen `to`, and nothing else has happened."""
    return rejoin(Cluster(election="zab"), name, to)


def rejoin(cluster: Cluster, name: str, to: str) -> Cluster:
    others = [other for other in cluster.members if other != name]
    for other in others:
        cluster.hand(other, name, ElectionNotification(other, 50, False, Vote(9, 9, to)))
    cluster.drop(lambda *_: True)
    return cluster


@pytest.mark.rows("LDR-R6")
def test_a_promise_is_given_only_to_the_server_that_was_chosen() -> None:
    cluster = joining("byzantium", to="cyrene")
    cluster.hand("athens", "byzantium", NewGeneration("athens", 7))
    (answer,) = sent(cluster, "byzantium", GenerationPromised)
    assert not answer.promised
    assert cluster.generation("byzantium") == 0


@pytest.mark.rows("LDR-S10", "LDR-R9")
def test_repeated_late_and_foreign_promises_do_not_make_a_leader() -> None:
    cluster = Cluster(5, election="zab")
    cluster.pass_time(0)
    cluster.deliver(lambda _, __, message: isinstance(message, ElectionNotification))
    cluster.ports["ephesus"].now_us += HEARTBEAT_US
    gather(cluster, "ephesus", ("athens", "byzantium"))
    assert cluster.generation("ephesus") == 4
    for _ in range(3):
        cluster.hand("athens", "ephesus", GenerationPromised("athens", 4, True, 0, 0))
    cluster.hand("byzantium", "ephesus", GenerationPromised("byzantium", 3, True, 0, 0))
    cluster.hand("cyrene", "ephesus", GenerationPromised("cyrene", 4, True, 5, 3))
    cluster.hand("sparta", "ephesus", GenerationPromised("sparta", 4, True, 0, 0))
    assert not cluster.leads("ephesus")
    assert "promise-of-a-longer-log-not-counted" in cluster.marks
    cluster.hand("delphi", "ephesus", GenerationPromised("delphi", 4, True, 0, 0))
    assert cluster.leads("ephesus")


def gather(cluster: Cluster, name: str, followers: tuple[str, ...]) -> None:
    """Let `name` decide for itself and hear from `followers`, who know generation 3."""
    timer = cluster.ports[name].next_timer()
    assert timer is not None
    cluster.ports[name].ring(timer)
    for follower in followers:
        cluster.hand(follower, name, FollowerInformation(follower, 3))
    cluster.drop(lambda *_: True)


def test_a_promise_of_a_higher_generation_ends_the_attempt_and_the_next_one_goes_above_it() -> None:
    cluster = Cluster(election="zab")
    cluster.deliver(lambda _, __, message: isinstance(message, ElectionNotification))
    cluster.ports["cyrene"].now_us += HEARTBEAT_US
    gather(cluster, "cyrene", ("athens",))
    cluster.hand("athens", "cyrene", GenerationPromised("athens", 9, False, 0, 0))
    assert cluster.generation("cyrene") == 9
    cluster.pass_time(3 * ELECTION_TIMEOUT_US)
    assert [cluster.generation(name) for name in cluster.leaders()] == [10]
    assert cluster.broken() == []


def test_votes_of_an_older_round_are_answered_and_not_counted() -> None:
    cluster = Cluster(5, election="zab")
    cluster.drop(lambda *_: True)
    cluster.hand("byzantium", "athens", ElectionNotification("byzantium", 5, True, Vote(0, 0, "byzantium")))
    cluster.drop(lambda *_: True)
    for name in ("cyrene", "delphi", "ephesus"):
        cluster.hand(name, "athens", ElectionNotification(name, 4, True, Vote(9, 9, name)))
    assert [answer.round for answer in sent(cluster, "athens", ElectionNotification)] == [5, 5, 5]
    assert cluster.nodes["athens"].election._vote == Vote(0, 0, "byzantium")


def test_a_late_notification_does_not_take_back_a_better_vote_of_the_same_round() -> None:
    cluster = Cluster(election="zab")
    better, worse = Vote(0, 0, "cyrene"), Vote(0, 0, "byzantium")
    cluster.hand("byzantium", "athens", ElectionNotification("byzantium", 1, True, better))
    cluster.hand("byzantium", "athens", ElectionNotification("byzantium", 1, True, worse))
    assert cluster.nodes["athens"].election._votes["byzantium"] == better


@pytest.mark.rows("LDR-S11")
def test_a_leader_without_a_majority_steps_down_and_looks() -> None:
    cluster = settled()
    cluster.cut("cyrene")
    cluster.pass_time(4 * ELECTION_TIMEOUT_US)
    assert cluster.leaders() == ["byzantium"]
    assert cluster.nodes["cyrene"].election.role is ServerRole.LOOKING_FOR_LEADER
    assert "leader-stepped-down-without-quorum" in cluster.marks


def test_under_lease_reads_a_promise_is_refused_while_the_old_leader_may_hold_a_lease() -> None:
    cluster = Cluster(election="zab", read_mode="leader-lease")
    cluster.pass_time(3 * ELECTION_TIMEOUT_US)
    cluster.restart("byzantium")
    cluster.drop(lambda *_: True)
    rejoin(cluster, "byzantium", to="athens")
    cluster.hand("athens", "byzantium", NewGeneration("athens", 9))
    assert [answer.promised for answer in sent(cluster, "byzantium", GenerationPromised)] == [False]
    assert "vote-refused-leader-known" in cluster.marks


@pytest.mark.rows("LDR-S1", "LDR-R2", "LDR-I6")
def test_lost_messages_of_every_kind_cost_time_and_nothing_else() -> None:
    """Each kind of message is lost entirely for one election timeout; then a server leads, within two more."""
    for kind in (ElectionNotification, FollowerInformation, NewGeneration, GenerationPromised):
        cluster = Cluster(election="zab")
        for _ in range(5):
            cluster.pass_time(0)
            cluster.deliver(lambda _, __, message, kind=kind: not isinstance(message, kind))
            cluster.drop(lambda *_: True)
            ring_all(cluster)
        assert cluster.leaders() == []
        cluster.pass_time(3 * ELECTION_TIMEOUT_US)
        assert len(cluster.leaders()) == 1
        assert cluster.broken() == []


def ring_all(cluster: Cluster) -> None:
    for name in cluster.members:
        timer = cluster.ports[name].next_timer()
        assert timer is not None
        cluster.ports[name].ring(timer)
