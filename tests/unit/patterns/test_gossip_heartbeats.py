"""Heartbeats by gossip: HB-R14, R15, S12, I1, I2, I4, M7, and the restart generation, GEN-R9, GEN-S6."""

from __future__ import annotations

from math import log2

import pytest
from gossip_driver import GossipingCluster

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.cluster_management.gossip_heartbeats import (
    FANOUT,
    GossipedHeartbeat,
    GossipedHeartbeats,
    GossipHeartBeats,
)


class AllToAll(GossipHeartBeats):
    """HB-M7: news is told to all servers."""

    def _chosen_peers(self) -> list[NodeId]:
        return list(self._peers)


class CountBeforeGeneration(GossipHeartBeats):
    """The count is compared and the generation is not: a restarted server is not heard until it has counted up."""

    def _is_newer(self, heartbeat: GossipedHeartbeat, known: GossipedHeartbeat) -> bool:
        return heartbeat.count > known.count


def messages_per_server(cluster: GossipingCluster) -> set[int]:
    cluster.interval(3)
    return {len(messages) for messages in cluster.sent.values()}


@pytest.mark.rows("HB-R14", "HB-I4", "HB-S12")
@pytest.mark.parametrize("size", [10, 100])
def test_each_server_sends_the_same_few_messages_however_many_servers_there_are(size: int) -> None:
    cluster = GossipingCluster(size)
    assert messages_per_server(cluster) == {FANOUT}
    assert all(len(message.heartbeats) <= 64 for sent in cluster.sent.values() for message in sent)


@pytest.mark.rows("HB-M7")
def test_the_bug_of_heartbeats_from_all_to_all_breaks_the_bound() -> None:
    assert messages_per_server(GossipingCluster(10, AllToAll)) == {9}
    assert messages_per_server(GossipingCluster(40, AllToAll)) == {39}


@pytest.mark.slow
@pytest.mark.rows("HB-S12", "HB-I1", "HB-R15")
@pytest.mark.parametrize("size", [10, 30, 100])
def test_a_crash_is_known_to_all_within_some_logarithm_of_their_number(size: int) -> None:
    """The time until phi is high is that of a few intervals; then log n intervals until the last row is old."""
    cluster = GossipingCluster(size)
    cluster.interval(25)
    dead = cluster.names[size // 2]
    cluster.kill(dead)
    intervals = 0
    while not cluster.all_know_that_is_down(dead):
        cluster.interval()
        intervals += 1
        assert intervals <= 12 + 4 * log2(size)
    assert {server for _, server in cluster.downs} == {dead}


@pytest.mark.slow
@pytest.mark.rows("HB-S12", "HB-I2", "HB-R15")
def test_losses_of_one_message_in_twenty_make_no_server_suspect_another() -> None:
    cluster = GossipingCluster(40, loss=0.05)
    cluster.interval(150)
    assert cluster.downs == []


@pytest.mark.rows("GEN-S6", "GEN-R9", "HB-R7")
def test_what_is_said_of_an_earlier_life_of_a_restarted_server_is_discarded() -> None:
    cluster = GossipingCluster(5)
    cluster.interval(40)
    old = cluster.servers[cluster.names[0]].known(cluster.names[1])
    assert old is not None and old.count > 30
    cluster.kill(cluster.names[1])
    cluster.interval(15)
    assert cluster.all_know_that_is_down(cluster.names[1])
    cluster.start(cluster.names[1], 2)
    cluster.interval(5)
    observer = cluster.servers[cluster.names[0]]
    assert (observer.known(cluster.names[1]) or old).generation == 2
    assert cluster.monitors[cluster.names[0]].down() == ()
    observer.handle_gossip(GossipedHeartbeats(cluster.names[2], {cluster.names[1]: old}))
    assert (observer.known(cluster.names[1]) or old).generation == 2


def test_a_server_that_ignores_generations_goes_on_thinking_that_the_restarted_one_is_down() -> None:
    cluster = GossipingCluster(5, CountBeforeGeneration)
    cluster.interval(40)
    cluster.kill(cluster.names[1])
    cluster.interval(15)
    cluster.start(cluster.names[1], 2)
    cluster.interval(5)
    assert cluster.names[1] in cluster.monitors[cluster.names[0]].down()


def test_repeated_and_late_gossip_is_no_sign_of_life() -> None:
    cluster = GossipingCluster(3)
    cluster.interval(40)
    speaker, dead, listener = cluster.names
    news = cluster.servers[listener].known(dead)
    assert news is not None
    cluster.kill(dead)
    for _ in range(30):
        cluster.interval()
        cluster.servers[listener].handle_gossip(GossipedHeartbeats(speaker, {dead: news}))
    assert cluster.all_know_that_is_down(dead)
