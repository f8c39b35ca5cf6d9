"""Stories about a leader's append batches: RB-* on a cluster of consistent-core, told step by step."""

from __future__ import annotations

import pytest

from faultline.story.log_cluster import Client, Cluster
from faultline.systems_under_test.patterns.data_replication.replicated_log import ReplicationRequest
from faultline.systems_under_test.reference.raft.append_batches import REQUEST_TOO_LARGE
from faultline.systems_under_test.reference.raft.client import DEFINITE_ERRORS
from faultline.systems_under_test.reference.shared.client_messages import RegisterClientRequest

LINGER_US = 5_000


def batching(**options: str) -> tuple[Cluster, Client]:
    """Athens leads, and Alice has a session."""
    cluster = Cluster(batch_linger_ms="5", **options)
    cluster.elect("athens")
    alice = Client(cluster, "alice")
    cluster.hand("alice", "athens", RegisterClientRequest(0))
    cluster.pass_time(LINGER_US)
    alice.client_id = alice.answers()[-1].client_id
    return cluster, alice


@pytest.mark.rows("RB-R13")
def test_commands_that_arrive_within_the_linger_share_one_flush_and_one_message() -> None:
    cluster, alice = batching()
    fsyncs = cluster.ports["athens"].storage.fsyncs
    numbers = [alice.set("athens", f"key{value}", value) for value in range(4)]
    assert cluster.ports["athens"].storage.fsyncs == fsyncs
    cluster.pass_time(LINGER_US)
    assert cluster.ports["athens"].storage.fsyncs == fsyncs + 1
    assert [alice.answer_to(number).error for number in numbers] == [None] * 4
    assert cluster.values("athens") == {f"key{value}": value for value in range(4)}
    assert "commands-batched" in cluster.marks
    assert cluster.broken() == []


def test_the_same_commands_without_linger_are_flushed_one_by_one() -> None:
    cluster = Cluster()
    cluster.elect("athens")
    alice = Client(cluster, "alice").register("athens")
    fsyncs = cluster.ports["athens"].storage.fsyncs
    for value in range(4):
        alice.set("athens", f"key{value}", value)
    assert cluster.ports["athens"].storage.fsyncs == fsyncs + 4


def test_a_command_that_fits_into_no_batch_is_refused_for_certain_and_stops_no_other_command() -> None:
    cluster, alice = batching(batch_size_bytes="200")
    large = alice.set("athens", "x", "y" * 300)
    small = alice.set("athens", "z", 1)
    cluster.pass_time(LINGER_US)
    assert alice.answer_to(large).error == REQUEST_TOO_LARGE
    assert DEFINITE_ERRORS.outcome(REQUEST_TOO_LARGE, "athens").kind == "fail"
    assert alice.answer_to(small).error is None
    assert cluster.values("athens") == {"z": 1}


def test_who_waits_for_a_batch_is_sent_away_when_the_server_stops_leading() -> None:
    cluster, alice = batching()
    number = alice.set("athens", "x", 1)
    cluster.cut("athens")
    cluster.elect("byzantium")
    cluster.heal()
    cluster.heartbeat("byzantium")
    cluster.deliver()
    assert not cluster.leads("athens")
    assert [redirect.correlation_id for redirect in alice.redirects()] == [number]
    cluster.pass_time(10 * LINGER_US)
    assert cluster.values("athens") == {}


def test_a_follower_that_was_away_gets_its_entries_in_messages_of_limited_size() -> None:
    cluster, alice = batching(batch_size_bytes="200")
    cluster.cut("cyrene")
    for value in range(6):
        alice.set("athens", "x", value)
        cluster.pass_time(LINGER_US)
    cluster.heal()
    sizes: list[int] = []
    hand = cluster.hand

    def measured(source: str, target: str, message: object) -> None:
        if isinstance(message, ReplicationRequest) and target == "cyrene":
            sizes.append(sum(len(entry.data) for entry in message.entries))
        hand(source, target, message)

    cluster.hand = measured
    cluster.pass_time(400_000)
    assert cluster.values("cyrene") == {"x": 5}
    assert 0 < max(sizes) <= 200
