"""A consistent-core of one server, the yardstick of what replication costs: it commits what its own disk holds."""

from __future__ import annotations

from faultline.story.log_cluster import ELECTION_TIMEOUT_US, HEARTBEAT_US, Client, Cluster
from faultline.systems_under_test.patterns.data_replication.lone_log import OwnCopyDurable
from faultline.systems_under_test.patterns.data_replication.raft_election import VoteResponse
from faultline.systems_under_test.reference.shared.client_messages import RegisterClientRequest


def alone(**options: str) -> tuple[Cluster, Client]:
    """Athens leads itself, and Alice has a session."""
    cluster = Cluster(1, **options)
    cluster.pass_time(3 * ELECTION_TIMEOUT_US)
    alice = Client(cluster, "alice")
    cluster.hand("alice", "athens", RegisterClientRequest(0))
    cluster.deliver()
    cluster.pass_time(10_000)
    alice.client_id = alice.answers()[-1].client_id
    return cluster, alice


def test_one_server_elects_itself_and_answers_writes_and_reads() -> None:
    cluster, alice = alone()
    assert cluster.leaders() == ["athens"]
    written = alice.set("athens", "x", 1)
    cluster.deliver()
    read = alice.get("athens", "x")
    assert (alice.answer_to(written).error, alice.answer_to(read).value) == (None, 1)
    assert cluster.broken() == []


def test_one_server_does_not_lead_before_its_own_vote_is_on_its_disk() -> None:
    cluster = Cluster(1)
    cluster.time_out("athens")
    (flushed,) = cluster.take(lambda _, __, message: isinstance(message, VoteResponse))
    assert (cluster.leaders(), cluster.generation("athens")) == ([], 1)
    cluster.hand(*flushed)
    assert cluster.leaders() == ["athens"]


def test_the_vote_of_an_earlier_life_elects_no_leader_in_a_later_one() -> None:
    cluster = Cluster(1)
    cluster.time_out("athens")
    (flushed,) = cluster.take(lambda _, __, message: isinstance(message, VoteResponse))
    cluster.restart("athens")
    cluster.hand(*flushed)
    assert cluster.leaders() == []
    cluster.elect("athens")
    assert cluster.generation("athens") == 2


def test_a_command_is_neither_executed_nor_answered_before_its_flush_is_done() -> None:
    cluster, alice = alone()
    number = alice.set("athens", "x", 1)
    (flushed,) = cluster.take(lambda _, __, message: isinstance(message, OwnCopyDurable))
    cluster.deliver()
    assert alice.answer_to(number) is None
    assert cluster.values("athens") == {}
    cluster.hand(*flushed)
    assert alice.answer_to(number).error is None


def test_the_flush_of_an_earlier_life_commits_nothing_of_a_later_one() -> None:
    cluster, alice = alone()
    alice.set("athens", "x", 1)
    (flushed,) = cluster.take(lambda _, __, message: isinstance(message, OwnCopyDurable))
    cluster.restart("athens")
    cluster.hand(*flushed)
    assert cluster.mark("athens") == 0
    cluster.pass_time(3 * ELECTION_TIMEOUT_US)
    assert cluster.values("athens") == {"x": 1}


def test_a_batch_of_a_lone_server_is_committed_by_one_flush() -> None:
    cluster, alice = alone(batch_linger_ms="5")
    numbers = [alice.set("athens", f"key{value}", value) for value in range(3)]
    cluster.pass_time(5_000)
    assert [alice.answer_to(number).error for number in numbers] == [None] * 3
    assert cluster.broken() == []


def test_a_lone_server_asks_again_when_the_message_of_a_flush_is_lost() -> None:
    cluster, alice = alone()
    number = alice.set("athens", "x", 1)
    cluster.take(lambda _, __, message: isinstance(message, OwnCopyDurable))
    assert alice.answer_to(number) is None
    cluster.pass_time(3 * HEARTBEAT_US)
    assert alice.answer_to(number).error is None
