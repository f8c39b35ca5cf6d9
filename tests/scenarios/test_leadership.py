"""Stories of leadership in any style of election: what a leader may say, who is obeyed, and how soon there is one."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.harness.world.ports import NodeId
from faultline.story.log_cluster import ELECTION_TIMEOUT_US, HEARTBEAT_US, Client, Cluster, StaggeredPorts
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import ServerRole
from faultline.systems_under_test.patterns.data_replication.leader_key_store import (
    CreateLeaderKey,
    DeleteLeaderKey,
    LeaderKeyCreated,
    LeaderKeyDeleted,
    LeaderKeyStore,
    ReadLeaderKey,
    WatchLeaderKey,
)
from faultline.systems_under_test.patterns.data_replication.raft_election import VoteRequest, VoteResponse
from faultline.systems_under_test.patterns.data_replication.replicated_log import (
    ReplicationRequest,
    ReplicationResponse,
)
from faultline.systems_under_test.reference.shared.client_messages import SetValue

STYLES = (("raft", 3), ("zab", 3), ("external-store", 4))


def sent(cluster: Cluster, source: str, kind: type) -> list[Any]:
    return [message for sender, _, message in cluster.queue if sender == source and isinstance(message, kind)]


def request(leader: str, generation: int) -> ReplicationRequest:
    """A heartbeat of `leader`."""
    return ReplicationRequest(leader, generation, 1, 0, 0, 0, 0, [])


# -- in every style ---------------------------------------------------------------------------------------------------


@pytest.mark.rows("CC-R1", "CC-I6")
@pytest.mark.rows("LDR-I6", "LDR-R10", "LDR-R16", "GEN-I5", "LDR-S1", "LDR-S2")
@pytest.mark.parametrize(("style", "size"), STYLES)
def test_with_a_majority_in_contact_a_server_leads_within_four_election_timeouts_again_and_again(
    style: str, size: int
) -> None:
    cluster = Cluster(size, election=style)
    generations = []
    for _ in range(4):
        cluster.pass_time(4 * ELECTION_TIMEOUT_US)
        (leader,) = cluster.leaders()
        generations.append(cluster.generation(leader))
        cluster.kill(leader)
        cluster.pass_time(4 * ELECTION_TIMEOUT_US)
        cluster.start(leader)
    assert generations == sorted(set(generations))
    assert cluster.broken() == []


@pytest.mark.rows("LDR-R1", "LDR-R13")
@pytest.mark.parametrize(("style", "size"), STYLES)
def test_a_server_that_hears_a_leader_of_its_generation_or_a_higher_one_follows_it(style: str, size: int) -> None:
    cluster = Cluster(size, election=style)
    cluster.pass_time(ELECTION_TIMEOUT_US // 5)
    for generation in (7, 9):
        cluster.hand("cyrene", "athens", request("cyrene", generation))
        election = cluster.nodes["athens"].election
        assert (election.role, election.leader_id) == (ServerRole.FOLLOWING, "cyrene")
        assert cluster.generation("athens") == generation


@pytest.mark.rows("GEN-R4", "GEN-R6", "LDR-R13", "LDR-I5")
@pytest.mark.parametrize(("style", "size"), STYLES)
def test_a_leader_that_learns_of_a_higher_generation_steps_down_and_answers_no_client(style: str, size: int) -> None:
    cluster = Cluster(size, election=style)
    cluster.pass_time(4 * ELECTION_TIMEOUT_US)
    (leader,) = cluster.leaders()
    alice = Client(cluster, "alice").register(leader)
    number = alice.set(leader, "title", "Microservices")
    held = cluster.take(lambda _, target, __: target != "alice")
    other = next(name for name in cluster.members[:3] if name != leader)
    cluster.hand(other, leader, ReplicationResponse(other, 99, 1, 0, False, 0))
    assert not cluster.leads(leader)
    assert cluster.generation(leader) == 99
    for item in held:
        cluster.hand(*item)
    cluster.deliver()
    assert alice.answers_to(number) == []
    assert len(alice.redirects()) == 1


@pytest.mark.rows("GEN-R5", "GEN-R3")
@pytest.mark.parametrize(("style", "size"), STYLES)
def test_a_request_of_a_lower_generation_is_refused_with_the_own_one_and_changes_nothing(style: str, size: int) -> None:
    cluster = Cluster(size, election=style)
    cluster.pass_time(4 * ELECTION_TIMEOUT_US)
    cluster.hand("cyrene", "byzantium", request("cyrene", 8))
    cluster.drop(lambda *_: True)
    due_us = [timer.due_us for timer in cluster.ports["byzantium"].waiting if timer.callback]
    cluster.ports["byzantium"].now_us += 1_000
    cluster.hand("athens", "byzantium", request("athens", 7))
    (refusal,) = sent(cluster, "byzantium", ReplicationResponse)
    assert (refusal.succeeded, refusal.generation) == (False, 8)
    assert cluster.nodes["byzantium"].election.leader_id == "cyrene"
    assert [timer.due_us for timer in cluster.ports["byzantium"].waiting if timer.callback] == due_us


@pytest.mark.rows("LDR-R18")
def test_a_timer_only_queues_its_event_and_the_queue_makes_the_transition(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(pre_vote="off")
    queued: list[tuple[NodeId, Any]] = []
    monkeypatch.setattr(cluster.nodes["athens"], "_post", queued.append)
    timer = cluster.ports["athens"].next_timer()
    assert timer is not None
    cluster.ports["athens"].ring(timer)
    assert cluster.nodes["athens"].election.role is ServerRole.FOLLOWING
    cluster.nodes["athens"]._handle(queued[0])
    assert cluster.nodes["athens"].election.role is ServerRole.LOOKING_FOR_LEADER


# -- Raft's steps -----------------------------------------------------------------------------------------------------


@pytest.mark.rows("LDR-R4", "LDR-R5", "LDR-R11", "GEN-R1")
def test_a_candidate_raises_the_generation_votes_for_itself_and_asks_all_others() -> None:
    cluster = Cluster(pre_vote="off")
    assert {node.election.role for node in cluster.nodes.values()} == {ServerRole.FOLLOWING}
    cluster.time_out("athens")
    assert (cluster.generation("athens"), cluster.nodes["athens"]._clock.voted_for) == (1, "athens")
    assert [(target, message) for _, target, message in cluster.queue] == [
        ("byzantium", VoteRequest("athens", 1, 0, 0)),
        ("cyrene", VoteRequest("athens", 1, 0, 0)),
    ]


@pytest.mark.rows("LDR-R6", "LDR-R7", "LDR-R11", "LDR-R13")
def test_the_rules_of_voting_in_their_order() -> None:
    """cyrene's log ends at 3/2. Each line: who asks, in which generation, with which last entry, and the answer."""
    cluster = Cluster(pre_vote="off")
    cluster.elect("athens")
    cluster.elect("byzantium")
    assert cluster.log("cyrene") == [1, 2]
    for candidate, generation, index, last_generation, granted, afterwards in (
        ("athens", 5, 9, 1, False, 5),  # adopts the generation, refuses an older last entry however long the log
        ("athens", 5, 1, 2, False, 5),  # refuses a shorter log of the same last generation
        ("athens", 5, 2, 2, True, 5),  # has not voted yet in 5: an equal log is up to date
        ("athens", 5, 2, 2, True, 5),  # the same candidate again gets the same answer
        ("byzantium", 5, 9, 4, False, 5),  # first to ask has won
        ("byzantium", 4, 9, 4, False, 5),  # a lower generation never
        ("byzantium", 6, 1, 3, True, 6),  # a newer last generation beats a longer log
    ):
        cluster.drop(lambda *_: True)
        cluster.hand(candidate, "cyrene", VoteRequest(candidate, generation, index, last_generation))
        (answer,) = sent(cluster, "cyrene", VoteResponse)
        assert (answer.granted, answer.generation, cluster.generation("cyrene")) == (granted, afterwards, afterwards)
    assert cluster.nodes["cyrene"].election.role is ServerRole.FOLLOWING


@pytest.mark.rows("LDR-R9")
def test_the_new_leader_sends_heartbeats_at_once_and_at_every_interval_to_all() -> None:
    cluster = Cluster(pre_vote="off")
    cluster.time_out("athens")
    cluster.deliver(lambda _, __, message: isinstance(message, VoteRequest | VoteResponse))
    assert cluster.leads("athens")
    assert {target for _, target, message in cluster.queue if not message.entries} == {"byzantium", "cyrene"}
    cluster.deliver()
    for _ in range(3):
        cluster.heartbeat("athens")
        assert {target for _, target, message in cluster.queue if not message.entries} == {"byzantium", "cyrene"}
        cluster.deliver()


# -- what clients see -------------------------------------------------------------------------------------------------


@pytest.mark.rows("CC-R3")
@pytest.mark.rows("LDR-S7", "LDR-R19")
def test_a_value_that_only_the_dead_leader_had_was_shown_to_no_client() -> None:
    """x=2 reaches athens alone; c1 reads there, athens goes down, c2 reads at the next leader."""
    cluster = Cluster()
    cluster.elect("athens")
    alice = Client(cluster, "alice").register("athens")
    first = alice.set("athens", "x", 1)
    cluster.deliver()
    assert alice.answer_to(first) is not None
    cluster.cut("athens", "byzantium", "cyrene")
    alice.set("athens", "x", 2)
    number = alice.get("athens", "x")
    assert alice.answers_to(number) == []
    cluster.kill("athens")
    cluster.elect("byzantium")
    bob = Client(cluster, "bob").register("byzantium")
    read = bob.get("byzantium", "x")
    cluster.deliver()
    answer = bob.answer_to(read)
    assert answer is not None and answer.value == 1
    cluster.heal()
    cluster.start("athens")
    cluster.pass_time(2 * ELECTION_TIMEOUT_US)
    assert cluster.values("athens") == {"x": 1}
    assert cluster.broken() == []


@pytest.mark.rows("GEN-S5")
def test_a_leader_that_slept_between_quorum_and_reply_answers_because_its_successor_holds_the_entry() -> None:
    cluster = Cluster()
    cluster.elect("athens")
    alice = Client(cluster, "alice").register("athens")
    cluster.cut("athens", "cyrene")
    number = alice.set("athens", "title", "Microservices")
    cluster.deliver(lambda _, target, __: target == "byzantium")
    acknowledged = cluster.take(lambda source, target, _: (source, target) == ("byzantium", "athens"))
    cluster.cut("athens", "byzantium")
    cluster.elect("byzantium")
    for item in acknowledged:
        cluster.hand(*item)
    answer = alice.answer_to(number)
    assert answer is not None and answer.error is None
    assert cluster.values("byzantium") == {"title": "Microservices"}
    assert cluster.broken() == []


@pytest.mark.rows("GEN-S5")
def test_a_leader_that_has_learned_of_its_successor_answers_no_client_for_a_late_acknowledgement() -> None:
    cluster = Cluster()
    cluster.elect("athens")
    alice = Client(cluster, "alice").register("athens")
    cluster.cut("athens", "cyrene")
    number = alice.set("athens", "title", "Microservices")
    cluster.deliver(lambda _, target, __: target == "byzantium")
    acknowledged = cluster.take(lambda source, target, _: (source, target) == ("byzantium", "athens"))
    cluster.cut("athens", "byzantium")
    cluster.elect("byzantium")
    cluster.heal()
    cluster.heartbeat("byzantium")
    cluster.step(lambda source, target, _: (source, target) == ("byzantium", "athens"))
    for item in acknowledged:
        cluster.hand(*item)
    assert alice.answers_to(number) == []


@pytest.mark.rows("GEN-R6")
def test_a_refusal_of_the_same_generation_is_a_mismatch_of_logs_and_no_reason_to_step_down() -> None:
    cluster = Cluster()
    cluster.cut("cyrene")
    cluster.elect("athens")
    cluster.heal()
    cluster.hand("cyrene", "athens", ReplicationResponse("cyrene", 1, 99, 0, False, 0))
    assert cluster.leads("athens")
    assert sent(cluster, "athens", ReplicationRequest)[0].entries


@pytest.mark.rows("GEN-R7", "GEN-I2")
def test_entries_keep_the_generation_of_the_leader_that_made_them_wherever_they_are_copied() -> None:
    cluster = Cluster(pre_vote="off")
    for leader in ("athens", "byzantium", "athens"):
        cluster.cut("cyrene")
        cluster.elect(leader)
        cluster.heal()
    cluster.pass_time(2 * ELECTION_TIMEOUT_US)
    assert cluster.log("cyrene") == cluster.log("athens") == [1, 2, 3]
    assert cluster.generation("cyrene") == 3


# -- many servers and one store ---------------------------------------------------------------------------------------


@pytest.mark.rows("LDR-R17", "LDR-S9", "LDR-R14")
def test_of_a_thousand_servers_that_race_for_a_key_one_wins_and_each_has_sent_the_same_few_messages() -> None:
    cluster = Cluster(4, election="external-store")
    cluster.queue.clear()
    store: LeaderKeyStore = cluster.nodes["delphi"].store
    servers = [NodeId(f"server-{number:04}") for number in range(1_000)]
    for round_number, generation in ((1, 1), (2, 3)):
        for server in servers:
            store.handle_watch(server, WatchLeaderKey(round_number))
        for server in servers:
            store.handle_create(server, CreateLeaderKey(round_number, generation - 1))
        answers = [item for item in cluster.take(lambda *_: True) if isinstance(item[2], LeaderKeyCreated)]
        assert [target for _, target, answer in answers if answer.created] == [store.owner]
        store.handle_read(servers[7], ReadLeaderKey(round_number))
        assert cluster.take(lambda *_: True)[0][2].leader_id == servers[0]
        store.handle_delete(servers[0], DeleteLeaderKey(generation))
        told = [target for _, target, event in cluster.take(lambda *_: True) if isinstance(event, LeaderKeyDeleted)]
        assert told == servers


# -- heartbeats -------------------------------------------------------------------------------------------------------


@pytest.mark.rows("HB-R3", "GEN-R3")
def test_a_heartbeat_names_its_leader_the_generation_and_the_mark() -> None:
    cluster = Cluster()
    cluster.elect("athens")
    Client(cluster, "alice").register("athens")
    cluster.heartbeat("athens")
    heartbeat = sent(cluster, "athens", ReplicationRequest)[0]
    assert (heartbeat.leader_id, heartbeat.generation, heartbeat.high_water_mark) == ("athens", 1, 2)
    assert heartbeat.entries == []


@pytest.mark.rows("HB-S4", "HB-R8", "HB-I2")
def test_a_leader_that_sleeps_longer_than_the_timeout_is_replaced_and_follows_when_it_wakes() -> None:
    cluster = Cluster()
    cluster.elect("athens")
    asleep, cluster.ports["athens"].waiting = cluster.ports["athens"].waiting, []
    cluster.pass_time(4 * ELECTION_TIMEOUT_US)
    awake = [name for name in cluster.leaders() if name != "athens"]
    assert awake == ["byzantium"]
    cluster.ports["athens"].waiting = asleep + cluster.ports["athens"].waiting
    cluster.pass_time(2 * ELECTION_TIMEOUT_US)
    assert cluster.leaders() == ["byzantium"]
    assert cluster.nodes["athens"].election.leader_id == "byzantium"
    assert cluster.broken() == []


@pytest.mark.rows("HB-S9")
def test_with_the_link_to_one_follower_cut_one_way_it_elects_and_the_leader_learns_by_the_generation() -> None:
    cluster = Cluster(pre_vote="off")
    cluster.elect("athens")
    cluster.cuts.add(("athens", "byzantium"))
    cluster.pass_time(3 * ELECTION_TIMEOUT_US)
    assert "deposed-leader-stepped-down" in cluster.marks
    assert cluster.generation("athens") > 1
    assert cluster.broken() == []


@pytest.mark.rows("HB-R9", "HB-S7")
def test_heartbeats_do_not_wait_behind_requests_whose_answers_are_missing() -> None:
    """The pipeline to cyrene is full and its answers do not come; what the leader sends stays small and regular."""
    cluster = Cluster(batch_entries_max="1")
    cluster.elect("athens")
    alice = Client(cluster, "alice").register("athens")
    for value in range(50):
        alice.ask("athens", SetValue("title", "x" * 10_000 + str(value)))
    unanswered = sent(cluster, "athens", ReplicationRequest)
    assert len([message for message in unanswered if message.entries]) <= 2 * 5
    cluster.queue.clear()
    for _ in range(3):
        cluster.heartbeat("athens")
        heartbeats = [m for _, target, m in cluster.queue if target == "cyrene" and not getattr(m, "entries", [1])]
        assert len(heartbeats) == 1
        cluster.queue.clear()


@pytest.mark.rows("HB-R11", "HB-S6")
def test_a_follower_whose_own_disk_stalls_accuses_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answers wait for the disk for three seconds; what it hears is noted all the same."""
    cluster = Cluster()
    cluster.pass_time(2 * ELECTION_TIMEOUT_US)
    stalled: list[Any] = []
    ports: StaggeredPorts = cluster.ports["cyrene"]
    monkeypatch.setattr(ports, "send", lambda to, message: stalled.append((to, message)))
    cluster.pass_time(3_000_000)
    assert len(stalled) >= 3_000_000 // HEARTBEAT_US - 1
    assert {type(message) for _, message in stalled} == {ReplicationResponse}
    assert cluster.leaders() == ["athens"]
    assert cluster.nodes["cyrene"].election.leader_id == "athens"
