"""Stories about elections through an external store: a key, its owner, its end, and a leader that slept past it."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.harness.errors import UsageError
from faultline.story.log_cluster import ELECTION_TIMEOUT_US, Client, Cluster
from faultline.systems_under_test.patterns.data_replication.generation_agreement import (
    GenerationPromised,
    NewGeneration,
)
from faultline.systems_under_test.patterns.data_replication.leader_key_store import (
    CreateLeaderKey,
    DeleteLeaderKey,
    LeaderKeyCreated,
    LeaderKeyDeleted,
    LeaderKeyRead,
    LeaderKeyRefreshed,
    LeaderKeyWatched,
    ReadLeaderKey,
    RefreshLeaderKey,
    WatchLeaderKey,
)
from faultline.systems_under_test.patterns.data_replication.replicated_log import ReplicationRequest
from faultline.systems_under_test.reference.consistent_core.system import ConsistentCore
from faultline.systems_under_test.reference.shared.client_messages import RegisterClientRequest

TTL_US = 500_000
STORE = "delphi"
MESSAGES = (
    WatchLeaderKey,
    LeaderKeyWatched,
    CreateLeaderKey,
    LeaderKeyCreated,
    ReadLeaderKey,
    LeaderKeyRead,
    RefreshLeaderKey,
    LeaderKeyRefreshed,
    DeleteLeaderKey,
    LeaderKeyDeleted,
    NewGeneration,
    GenerationPromised,
)


def begun(**options: str) -> Cluster:
    """Three replicas and the store; nothing has been delivered."""
    return Cluster(4, election="external-store", **options)


def settled(**options: str) -> Cluster:
    cluster = begun(**options)
    cluster.pass_time(ELECTION_TIMEOUT_US)
    return cluster


def owner(cluster: Cluster) -> str | None:
    return cluster.nodes[STORE].store.owner


def sent(cluster: Cluster, source: str, kind: type) -> list[Any]:
    return [message for sender, _, message in cluster.queue if sender == source and isinstance(message, kind)]


@pytest.mark.rows("LDR-R14", "LDR-S1", "LDR-R2")
def test_each_server_watches_first_then_tries_to_create_and_the_losers_read_who_won() -> None:
    cluster = begun()
    asked: dict[str, list[type]] = {name: [] for name in cluster.members}
    while requests := [item for item in cluster.queue if STORE in item[:2]]:
        source, target, message = requests[0]
        cluster.queue.remove(requests[0])
        asked[source].append(type(message))
        cluster.hand(source, target, message)
    assert asked["athens"][:2] == [WatchLeaderKey, CreateLeaderKey]
    assert asked["byzantium"] == asked["cyrene"] == [WatchLeaderKey, CreateLeaderKey, ReadLeaderKey]
    assert cluster.nodes["cyrene"].election.leader_id == "athens"


@pytest.mark.rows("LDR-R14", "LDR-R16", "LDR-S2")
def test_a_killed_leader_loses_its_key_and_the_next_one_has_a_higher_generation() -> None:
    cluster = settled()
    assert cluster.leaders() == ["athens"]
    assert owner(cluster) == "athens"
    cluster.kill("athens")
    cluster.pass_time(TTL_US + ELECTION_TIMEOUT_US)
    (leader,) = cluster.leaders()
    assert leader == owner(cluster) != "athens"
    assert cluster.generation(leader) > 1
    cluster.start("athens")
    cluster.pass_time(2 * ELECTION_TIMEOUT_US)
    assert cluster.leaders() == [leader]
    assert cluster.nodes["athens"].election.leader_id == leader
    assert cluster.broken() == []


@pytest.mark.rows("LDR-R14")
def test_a_leader_refreshes_its_key_well_within_its_time_to_live() -> None:
    cluster = settled()
    cluster.pass_time(4 * TTL_US)
    assert cluster.leaders() == ["athens"]
    assert "leader-key-expired" not in cluster.marks


@pytest.mark.rows("LDR-S8", "LDR-R15")
def test_a_leader_that_sleeps_past_its_key_is_fenced_off_by_the_generation_of_the_next() -> None:
    """All nodes refuse what athens sends when it wakes, and no client gets an answer."""
    cluster = settled()
    alice = Client(cluster, "alice").register("athens")
    number = alice.set("athens", "title", "while asleep")
    from_the_past = cluster.take(lambda source, _, __: source == "athens")
    asleep = cluster.ports["athens"].waiting
    cluster.ports["athens"].waiting = []
    cluster.pass_time(2 * TTL_US)
    awake = [name for name in cluster.leaders() if name != "athens"]
    assert awake == [owner(cluster)]
    cluster.drop(lambda _, target, __: target == "athens")
    cluster.ports["athens"].waiting = asleep
    for source, target, message in from_the_past:
        cluster.hand(source, target, message)
    assert any(isinstance(message, ReplicationRequest) for _, _, message in from_the_past)
    assert "old-generation-request-refused" in cluster.marks
    cluster.pass_time(ELECTION_TIMEOUT_US)
    assert cluster.leaders() == awake
    assert alice.answers_to(number) == []
    assert cluster.broken() == []


@pytest.mark.rows("LDR-S9", "LDR-R15")
def test_a_key_that_goes_between_the_failed_creation_and_the_read_is_tried_for_again() -> None:
    cluster = settled()
    cluster.restart("byzantium")
    cluster.deliver(lambda source, _, message: not isinstance(message, ReadLeaderKey) and source == "byzantium")
    cluster.deliver(lambda _, target, message: target == "byzantium" and not isinstance(message, ReadLeaderKey))
    cluster.deliver(lambda source, _, message: source == "byzantium" and isinstance(message, CreateLeaderKey))
    cluster.deliver(lambda _, target, message: target == "byzantium" and isinstance(message, LeaderKeyCreated))
    assert sent(cluster, "byzantium", ReadLeaderKey)
    cluster.hand("athens", STORE, DeleteLeaderKey(1))
    assert owner(cluster) is None
    cluster.drop(lambda _, __, message: isinstance(message, LeaderKeyDeleted))
    cluster.deliver(lambda *link: "byzantium" in link[:2] and STORE in link[:2])
    assert "leader-key-gone-when-read" in cluster.marks
    assert owner(cluster) == "byzantium"


@pytest.mark.rows("LDR-S9")
def test_a_deletion_without_a_notice_is_discovered_by_the_silence() -> None:
    """The watch is lost: the store has restarted and forgotten who watches."""
    cluster = settled()
    cluster.restart(STORE)
    cluster.kill("athens")
    cluster.pass_time(2 * TTL_US + 2 * ELECTION_TIMEOUT_US)
    assert len(cluster.leaders()) == 1
    assert cluster.broken() == []


@pytest.mark.rows("LDR-S9", "LDR-R14")
def test_of_all_that_race_for_a_deleted_key_one_wins() -> None:
    cluster = Cluster(5, election="external-store")
    cluster.pass_time(ELECTION_TIMEOUT_US)
    (old,) = cluster.leaders()
    cluster.kill(old)
    cluster.pass_time(TTL_US + ELECTION_TIMEOUT_US)
    assert len(cluster.leaders()) == 1
    assert [event.generation for _, event in cluster.events if type(event).__name__ == "BecameLeader"] == [1, 3]


@pytest.mark.rows("LDR-I3", "LDR-R7")
def test_a_winner_that_lacks_a_committed_entry_gives_the_key_back() -> None:
    cluster = settled()
    cluster.cut("cyrene")
    Client(cluster, "alice").register("athens").set("athens", "title", "Microservices")
    cluster.deliver()
    cluster.kill("athens")
    cluster.heal()
    cluster.cut("byzantium", STORE)
    cluster.pass_time(TTL_US + 2 * ELECTION_TIMEOUT_US)
    assert cluster.leaders() == []
    assert "promise-of-a-longer-log-not-counted" in cluster.marks
    assert "leader-key-given-back" in cluster.marks
    cluster.heal()
    cluster.pass_time(2 * TTL_US + 4 * ELECTION_TIMEOUT_US)
    assert cluster.leaders() == ["byzantium"]
    assert cluster.values("cyrene") == {"title": "Microservices"}
    assert cluster.broken() == []


def test_a_leader_that_cannot_reach_the_store_steps_down_after_the_time_to_live() -> None:
    cluster = settled()
    cluster.cut("athens", STORE)
    cluster.pass_time(TTL_US + ELECTION_TIMEOUT_US)
    assert "leader-key-not-refreshed" in cluster.marks
    assert cluster.leaders() != ["athens"]
    assert cluster.broken() == []


def test_without_the_store_no_server_leads_and_with_it_a_server_does_again() -> None:
    cluster = settled()
    cluster.kill(STORE)
    cluster.pass_time(2 * TTL_US)
    assert cluster.leaders() == []
    cluster.start(STORE)
    cluster.pass_time(2 * TTL_US)
    assert len(cluster.leaders()) == 1
    assert cluster.broken() == []


def test_the_store_remembers_key_and_generation_over_a_restart() -> None:
    cluster = settled()
    cluster.restart(STORE)
    assert (owner(cluster), cluster.generation(STORE)) == ("athens", 1)
    cluster.hand("athens", STORE, DeleteLeaderKey(1))
    cluster.restart(STORE)
    assert (owner(cluster), cluster.generation(STORE)) == (None, 2)
    cluster.drop(lambda *_: True)
    cluster.hand("cyrene", STORE, CreateLeaderKey(1, 7))
    assert cluster.take(lambda *_: True) == [(STORE, "cyrene", LeaderKeyCreated(1, True, 8))]


def test_a_repeated_creation_is_answered_as_the_first_until_the_owner_uses_the_key() -> None:
    cluster = Cluster(4, election="external-store")
    cluster.drop(lambda *_: True)
    for generation, created in ((0, True), (0, True), (1, False)):
        cluster.hand("cyrene", STORE, CreateLeaderKey(5, generation))
        assert cluster.take(lambda *_: True) == [(STORE, "cyrene", LeaderKeyCreated(5, created, 1))]


def test_a_restarted_owner_gives_its_old_key_back() -> None:
    cluster = settled()
    cluster.restart("athens")
    cluster.pass_time(ELECTION_TIMEOUT_US)
    assert "own-leader-key-of-before-given-back" in cluster.marks
    assert [cluster.generation(name) for name in cluster.leaders()] != [1]
    assert cluster.broken() == []


@pytest.mark.parametrize("late", [DeleteLeaderKey(1), RefreshLeaderKey(1, 0)])
def test_what_a_former_owner_sends_late_changes_nothing(late: Any) -> None:
    cluster = settled()
    cluster.hand("athens", STORE, DeleteLeaderKey(1))
    cluster.hand("cyrene", STORE, CreateLeaderKey(1, 0))
    cluster.hand("athens", STORE, late)
    assert (owner(cluster), cluster.generation(STORE)) == ("cyrene", 3)


def test_a_store_that_slept_does_not_expire_the_key_before_it_has_read_its_mail() -> None:
    """HB-R12 at the store: the check comes late, the refreshes are waiting behind it."""
    cluster = settled()
    store = cluster.ports[STORE]
    timer = store.next_timer()
    assert timer is not None
    store.now_us = timer.due_us + 10 * TTL_US
    store.ring(timer)
    assert owner(cluster) == "athens"


@pytest.mark.parametrize("kind", MESSAGES)
def test_each_kind_of_message_may_be_lost_repeated_and_late(kind: type) -> None:
    """For eight rounds every message of this kind is lost, or comes twice, or after all others; then all is well."""
    for damage in ("lost", "twice", "late"):
        cluster = begun()
        for _ in range(8):
            taken = cluster.take(lambda _, __, message: isinstance(message, kind))
            cluster.deliver(lambda _, __, message: not isinstance(message, kind))
            for item in taken if damage != "lost" else []:
                cluster.hand(*item)
                if damage == "twice":
                    cluster.hand(*item)
            ring_all(cluster)
        cluster.pass_time(2 * TTL_US + 2 * ELECTION_TIMEOUT_US)
        assert len(cluster.leaders()) == 1
        assert cluster.broken() == []


def ring_all(cluster: Cluster) -> None:
    for name in cluster.members:
        timer = cluster.ports[name].next_timer()
        if timer is not None:
            cluster.ports[name].ring(timer)


def test_clients_that_ask_the_store_are_sent_to_the_owner_of_the_key() -> None:
    cluster = settled()
    client = Client(cluster, "alice")
    cluster.hand("alice", STORE, RegisterClientRequest(7))
    assert [(answer.correlation_id, answer.leader_id) for answer in client.redirects()] == [(7, "athens")]


@pytest.mark.rows("LDR-R3")
def test_a_follower_names_the_leader_to_clients_and_no_server_while_there_is_none() -> None:
    cluster = begun()
    client = Client(cluster, "alice")
    cluster.hand("alice", "cyrene", RegisterClientRequest(1))
    cluster.pass_time(ELECTION_TIMEOUT_US)
    cluster.hand("alice", "cyrene", RegisterClientRequest(2))
    assert [answer.leader_id for answer in client.redirects()] == [None, "athens"]


def test_two_nodes_are_not_enough_for_replicas_and_a_store() -> None:
    core: Any = ConsistentCore()
    with pytest.raises(UsageError, match="one would be the store"):
        core.node(None, ("athens", "byzantium"), {"election": "external-store"}, frozenset())


def test_a_key_that_would_not_survive_one_lost_refresh_is_refused() -> None:
    core: Any = ConsistentCore()
    options = {"election": "external-store", "leader_key_ttl_ms": "90"}
    with pytest.raises(UsageError, match="refresh"):
        core.node(None, ("athens", "byzantium", "cyrene", "delphi"), options, frozenset())
