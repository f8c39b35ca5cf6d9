"""Stories about elections: LDR-S*, GEN-S*, SYS-S5 of the requirements, told step by step."""

from __future__ import annotations

import pytest

from faultline.story.log_cluster import ELECTION_TIMEOUT_US, Client, Cluster
from faultline.systems_under_test.patterns.data_replication.raft_election import (
    PreVoteRequest,
    VoteRequest,
    VoteResponse,
)
from faultline.systems_under_test.patterns.data_replication.replicated_log import (
    ReplicationRequest,
    ReplicationResponse,
)
from faultline.systems_under_test.reference.shared.client_messages import RegisterClientRequest


@pytest.mark.rows("LDR-S1", "LDR-R2")
@pytest.mark.parametrize("size", [3, 5])
def test_a_cold_start_refuses_clients_until_exactly_one_leader_emerges(size: int) -> None:
    """LDR-S1."""
    cluster = Cluster(size)
    early = Client(cluster, "alice")
    cluster.hand("alice", "byzantium", RegisterClientRequest(0))
    assert [redirect.leader_id for redirect in early.redirects()] == [None]
    cluster.pass_time(3 * ELECTION_TIMEOUT_US)
    assert cluster.leaders() == ["athens"]
    assert {cluster.nodes[name].election.leader_id for name in cluster.members} == {"athens"}
    assert cluster.broken() == []


@pytest.mark.rows("LDR-S2", "LDR-R10")
def test_a_killed_leader_is_replaced_and_comes_back_as_a_follower() -> None:
    """LDR-S2."""
    cluster = Cluster()
    cluster.elect("athens")
    cluster.kill("athens")
    cluster.pass_time(3 * ELECTION_TIMEOUT_US)
    assert cluster.leaders() == ["byzantium"]
    cluster.start("athens")
    cluster.pass_time(ELECTION_TIMEOUT_US)
    assert cluster.leaders() == ["byzantium"]
    assert cluster.nodes["athens"].election.leader_id == "byzantium"


@pytest.mark.rows("LDR-S3")
@pytest.mark.parametrize("size", [3, 4])
def test_a_split_vote_elects_no_leader_and_the_next_round_resolves_it(size: int) -> None:
    """LDR-S3: two candidates ask at the same instant, and no third server is up to decide between them."""
    cluster = Cluster(size, pre_vote="off")
    if size == 3:
        cluster.kill("cyrene")
    else:
        cluster.cut("athens", "cyrene")
        cluster.cut("byzantium", "delphi")
    cluster.time_out("athens")
    cluster.time_out("byzantium")
    cluster.deliver()
    assert cluster.leaders() == []
    assert {cluster.generation("athens"), cluster.generation("byzantium")} == {1}
    cluster.heal()
    cluster.pass_time(3 * ELECTION_TIMEOUT_US)
    assert len(cluster.leaders()) == 1
    assert cluster.generation(cluster.leaders()[0]) > 1
    assert cluster.broken() == []


@pytest.mark.rows("LDR-S4")
def test_a_candidate_with_a_shorter_log_is_refused_but_its_generation_is_adopted() -> None:
    """LDR-S4."""
    cluster = Cluster(pre_vote="off")
    cluster.elect("athens")
    cluster.cut("cyrene")
    alice = Client(cluster, "alice").register("athens")
    alice.set("athens", "title", "Microservices")
    cluster.deliver()
    cluster.kill("athens")
    cluster.heal()
    cluster.time_out("cyrene")
    cluster.deliver()
    assert not cluster.leads("cyrene")
    assert cluster.generation("byzantium") == 2
    assert "vote-refused-stale-log" in cluster.marks
    cluster.time_out("byzantium")
    cluster.deliver()
    assert cluster.leads("byzantium")


@pytest.mark.rows("LDR-S4", "LDR-R7")
def test_an_older_last_generation_loses_against_a_shorter_log_of_a_newer_one() -> None:
    """LDR-R7: the generation of the last entry decides before the index does."""
    cluster = Cluster(pre_vote="off")
    cluster.elect("athens")
    cluster.split("athens")
    for value in range(5):
        Client(cluster, "alice").set("athens", "title", value)
    cluster.elect("byzantium")
    assert len(cluster.log("athens")) > len(cluster.log("byzantium"))
    cluster.heal()
    last = len(cluster.log("athens"))
    cluster.hand("athens", "cyrene", VoteRequest("athens", 9, last, 1))
    answer = cluster.take(lambda source, target, _: (source, target) == ("cyrene", "athens"))[-1][2]
    assert isinstance(answer, VoteResponse) and not answer.granted


def vote_answers(cluster: Cluster, voter: str, candidate: str, generation: int) -> bool:
    cluster.hand(candidate, voter, VoteRequest(candidate, generation, 99, 99))
    answer = cluster.take(lambda source, target, _: (source, target) == (voter, candidate))[-1][2]
    assert isinstance(answer, VoteResponse)
    return answer.granted


@pytest.mark.rows("LDR-S5", "LDR-R8", "GEN-R2")
def test_a_vote_survives_a_restart() -> None:
    """LDR-S5: the repeated answer is the same, and no other candidate gets the vote of that generation."""
    cluster = Cluster()
    assert vote_answers(cluster, "cyrene", "athens", 3)
    cluster.restart("cyrene")
    assert not vote_answers(cluster, "cyrene", "byzantium", 3)
    assert vote_answers(cluster, "cyrene", "athens", 3)


def test_the_planted_bug_vote_twice_gives_the_vote_away_again() -> None:
    cluster = Cluster(planted_bugs=("vote-twice",))
    assert vote_answers(cluster, "cyrene", "athens", 3)
    assert vote_answers(cluster, "cyrene", "byzantium", 3)


@pytest.mark.rows("LDR-S6", "GEN-R2")
def test_a_candidate_that_restarts_does_not_vote_for_another_in_the_same_generation() -> None:
    """LDR-S6."""
    cluster = Cluster(pre_vote="off")
    cluster.time_out("athens")
    cluster.restart("athens")
    assert cluster.generation("athens") == 1
    assert not vote_answers(cluster, "athens", "byzantium", 1)


@pytest.mark.rows("LDR-S10", "LDR-R9")
def test_votes_of_an_old_generation_and_repeated_votes_do_not_count() -> None:
    """LDR-S10."""
    cluster = Cluster(5, pre_vote="off")
    cluster.time_out("athens")
    cluster.drop(lambda *_: True)
    cluster.time_out("athens")
    cluster.drop(lambda *_: True)
    assert cluster.generation("athens") == 2
    cluster.hand("byzantium", "athens", VoteResponse("byzantium", 1, True))
    cluster.hand("cyrene", "athens", VoteResponse("cyrene", 1, True))
    for _ in range(3):
        cluster.hand("delphi", "athens", VoteResponse("delphi", 2, True))
    assert not cluster.leads("athens")
    cluster.hand("ephesus", "athens", VoteResponse("ephesus", 2, True))
    assert cluster.leads("athens")


@pytest.mark.rows("LDR-S11")
def test_a_leader_on_the_minority_side_acknowledges_nothing_and_its_suffix_is_discarded() -> None:
    """LDR-S11 and LOG-S14."""
    cluster = Cluster(5)
    cluster.elect("athens")
    alice = Client(cluster, "alice").register("athens")
    cluster.split("athens", "byzantium")
    numbers = [alice.set("athens", "title", value) for value in range(3)]
    cluster.deliver()
    cluster.elect("cyrene")
    cluster.heal()
    cluster.heartbeat("athens")
    cluster.deliver()
    assert cluster.leaders() == ["cyrene"]
    cluster.pass_time(ELECTION_TIMEOUT_US)
    assert [alice.answers_to(number) for number in numbers] == [[], [], []]
    assert cluster.log("athens") == cluster.log("cyrene")
    assert "entries-truncated" in cluster.marks
    assert cluster.broken() == []


@pytest.mark.rows("GEN-S1", "GEN-S2", "GEN-R5", "GEN-R6")
def test_a_paused_leader_is_recognised_by_its_generation_and_steps_down() -> None:
    """GEN-S1: leader 1 sleeps for 5 s, generation 2 begins, and what leader 1 then sends is refused."""
    cluster = Cluster()
    cluster.elect("athens")
    alice = Client(cluster, "alice").register("athens")
    number = alice.set("athens", "title", "while paused")
    from_the_past = cluster.take(lambda source, _, message: source == "athens")
    cluster.elect("byzantium")
    cluster.take(lambda _, target, __: target == "athens")
    cluster.ports["athens"].now_us += 5_000_000
    for item in from_the_past:
        cluster.hand(*item)
    refusals = [message for _, target, message in cluster.queue if target == "athens"]
    assert refusals
    assert all(isinstance(message, ReplicationResponse) for message in refusals)
    assert {(message.succeeded, message.generation) for message in refusals} == {(False, 2)}
    cluster.deliver()
    assert cluster.leaders() == ["byzantium"]
    assert cluster.generation("athens") == 2
    assert alice.answers_to(number) == []
    assert "deposed-leader-stepped-down" in cluster.marks


@pytest.mark.rows("GEN-S3", "LDR-I4")
def test_a_generation_adopted_by_a_vote_survives_a_restart_without_any_entry() -> None:
    """GEN-S3."""
    cluster = Cluster()
    assert vote_answers(cluster, "cyrene", "athens", 7)
    cluster.restart("cyrene")
    assert cluster.generation("cyrene") == 7
    cluster.hand("byzantium", "cyrene", ReplicationRequest("byzantium", 6, 1, 0, 0, 0, 0, []))
    refusal = cluster.take(lambda source, _, __: source == "cyrene")[-1][2]
    assert isinstance(refusal, ReplicationResponse)
    assert (refusal.succeeded, refusal.generation) == (False, 7)
    assert not vote_answers(cluster, "cyrene", "byzantium", 7)


@pytest.mark.rows("GEN-S4")
def test_a_success_of_an_earlier_leadership_is_not_counted() -> None:
    """GEN-S4."""
    cluster = Cluster()
    cluster.elect("athens")
    cluster.elect("byzantium")
    cluster.elect("athens")
    cluster.cut("athens")
    number = Client(cluster, "alice").set("athens", "title", 1)
    mark = cluster.mark("athens")
    cluster.hand("cyrene", "athens", ReplicationResponse("cyrene", 1, 99, 0, True, mark + 1))
    assert cluster.mark("athens") == mark
    assert number == 1


@pytest.mark.rows("GEN-S2", "GEN-R8")
def test_after_a_double_failure_the_entry_of_the_higher_generation_wins() -> None:
    """SYS-S5 in Raft's variant: Bob's entry (generation 1) and Alice's (generation 2) claim the same index."""
    cluster = Cluster()
    neptune, jupiter, saturn = cluster.members
    cluster.elect(neptune)
    bob = Client(cluster, "bob").register(neptune)
    cluster.cut(neptune)
    bobs = bob.set(neptune, "boston", 10)
    cluster.kill(neptune)
    cluster.elect(jupiter)
    alice = Client(cluster, "alice").register(jupiter)
    cluster.cut(jupiter)
    alices = alice.set(jupiter, "boston", 20)
    cluster.kill(jupiter)
    cluster.heal()
    cluster.start(neptune)
    cluster.start(jupiter)
    cluster.kill(saturn)
    cluster.time_out(neptune)
    cluster.deliver()
    assert not cluster.leads(neptune)
    cluster.elect(jupiter)
    cluster.heartbeat(jupiter)
    cluster.deliver()
    assert cluster.values(neptune) == cluster.values(jupiter) == {"boston": 20}
    assert cluster.log(neptune) == cluster.log(jupiter)
    assert bob.answers_to(bobs) == alice.answers_to(alices) == []
    assert cluster.broken() == []


@pytest.mark.rows("CC-R24", "CC-S11", "CC-M7")
@pytest.mark.parametrize(("pre_vote", "leader_changes"), [("on", 0), ("off", 1)])
def test_a_server_that_was_cut_off_disturbs_the_leader_only_without_pre_vote(
    pre_vote: str, leader_changes: int
) -> None:
    """LOG-S16: it times out again and again, and without pre-vote its generation runs away. Both ways all is well
    in the end.
    """
    cluster = Cluster(pre_vote=pre_vote)
    cluster.elect("athens")
    cluster.cut("cyrene")
    cluster.pass_time(4 * ELECTION_TIMEOUT_US)
    assert (cluster.generation("cyrene") > 1) == (pre_vote == "off")
    leaders_before = cluster.marks.count("leader-changed")
    cluster.heal()
    cluster.pass_time(6 * ELECTION_TIMEOUT_US)
    assert cluster.marks.count("leader-changed") - leaders_before == leader_changes
    assert len(cluster.leaders()) == 1
    assert cluster.broken() == []


def test_a_server_that_hears_its_leader_refuses_a_pre_vote_and_changes_nothing() -> None:
    cluster = Cluster()
    cluster.elect("athens")
    cluster.hand("cyrene", "byzantium", PreVoteRequest("cyrene", 2, 99, 99))
    answer = cluster.take(lambda source, _, __: source == "byzantium")[-1][2]
    assert not answer.granted
    assert cluster.generation("byzantium") == 1
    assert "pre-vote-refused" in cluster.marks


def test_under_lease_reads_a_vote_is_refused_before_its_generation_is_adopted() -> None:
    """LOG-R23."""
    cluster = Cluster(read_mode="leader-lease")
    cluster.pass_time(3 * ELECTION_TIMEOUT_US)
    assert not vote_answers(cluster, "byzantium", "cyrene", 9)
    assert cluster.generation("byzantium") == 1


def test_under_lease_reads_a_restarted_server_gives_no_vote_for_one_election_timeout() -> None:
    """LOG-S7: it has forgotten the leader, whose lease may still run."""
    cluster = Cluster(read_mode="leader-lease")
    cluster.pass_time(3 * ELECTION_TIMEOUT_US)
    cluster.restart("byzantium")
    assert not vote_answers(cluster, "byzantium", "cyrene", 9)
    cluster.go_silent("byzantium")
    assert vote_answers(cluster, "byzantium", "cyrene", 9)


def test_a_lease_is_not_forgotten_when_a_higher_generation_is_heard_of() -> None:
    """LOG-R23: cyrene answered the leader's heartbeat; a late answer of a lost election does not free its vote."""
    cluster = Cluster(read_mode="leader-lease")
    cluster.pass_time(3 * ELECTION_TIMEOUT_US)
    cluster.hand("byzantium", "cyrene", VoteResponse("byzantium", 5, False))
    assert cluster.generation("cyrene") == 5
    assert cluster.nodes["cyrene"].election.leader_id is None
    assert not vote_answers(cluster, "cyrene", "byzantium", 6)
    cluster.go_silent("cyrene")
    assert vote_answers(cluster, "cyrene", "byzantium", 6)
