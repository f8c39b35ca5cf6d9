"""Bugs of elections, heartbeats and generations that need one certain order of events to show, each beside its twin.

Campaigns do not meet them: a vote must be late by a whole election, a zombie must go on sending without hearing that it
is one, a key must go between two messages. What campaigns do catch is planted in the system itself
(`consistent_core.election_planted_bugs`).
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from faultline.harness.world.ports import NodeId
from faultline.story.log_cluster import ELECTION_TIMEOUT_US, HEARTBEAT_US, Client, Cluster, StaggeredPorts
from faultline.systems_under_test.patterns.data_replication.external_store_election import ExternalStoreElection, _Step
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import (
    GenerationAdopted,
    ServerRole,
)
from faultline.systems_under_test.patterns.data_replication.leader_key_store import (
    LeaderKeyCreated,
    LeaderKeyRead,
    WatchLeaderKey,
)
from faultline.systems_under_test.patterns.data_replication.quorum import QuorumTracker
from faultline.systems_under_test.patterns.data_replication.raft_election import (
    PreVoteRequest,
    RaftElection,
    VoteRequest,
    VoteResponse,
)
from faultline.systems_under_test.patterns.data_replication.replicated_log import (
    ReplicatedLog,
    ReplicationRequest,
    ReplicationResponse,
)
from faultline.systems_under_test.reference.consistent_core.leader_key_node import LeaderKeyNode
from faultline.systems_under_test.reference.consistent_core.system import ConsistentCore
from faultline.systems_under_test.reference.raft.key_value_server import KeyValueServer
from faultline.systems_under_test.reference.raft.parts import Elections, Parts
from faultline.systems_under_test.reference.raft.settings import RaftSettings


def cluster_of(
    size: int,
    parts: Parts | None = None,
    changed: dict[str, Any] | None = None,
    node_type: type[KeyValueServer] = KeyValueServer,
    **options: str,
) -> Cluster:
    """A cluster whose nodes are built from `parts`, with `changed` settings that no check has seen."""

    class Planted(ConsistentCore):
        def node(self, ports: Any, members: Any, given: Any, planted_bugs: Any) -> KeyValueServer | LeaderKeyNode:
            settings = msgspec.structs.replace(RaftSettings.read(given), **(changed or {}))
            if settings.election == "external-store" and ports.node_id == members[-1]:
                return LeaderKeyNode(ports, settings.leader_key_ttl_us)
            return node_type(ports, members, settings, parts or Parts())

    return type("PlantedCluster", (Cluster,), {"system_type": Planted})(size, **options)


def with_raft(kind: type[RaftElection]) -> Parts:
    return Parts(elections=Elections(raft=kind))


# -- votes ------------------------------------------------------------------------------------------------------------


class VoteByIndex(RaftElection):
    """LDR-M2."""

    def _is_up_to_date(self, request: VoteRequest | PreVoteRequest) -> bool:
        return request.last_log_entry_index >= self._log.last_index


@pytest.mark.rows("LDR-M2", "LDR-R7", "LDR-S4")
@pytest.mark.parametrize(("kind", "broken"), [(RaftElection, []), (VoteByIndex, ["LDR-I3"])])
def test_a_long_log_of_an_old_generation_wins_only_where_the_index_alone_counts(
    kind: type[RaftElection], broken: list[str]
) -> None:
    """athens, cut off, has collected five entries of generation 1; cyrene holds a committed one of generation 2."""
    cluster = cluster_of(3, with_raft(kind), pre_vote="off")
    cluster.elect("athens")
    alice = Client(cluster, "alice").register("athens")
    cluster.cut("athens")
    for value in range(5):
        alice.set("athens", "title", value)
    cluster.elect("byzantium")
    alice.set("byzantium", "title", "committed")
    cluster.deliver()
    cluster.kill("byzantium")
    cluster.heal()
    cluster.heartbeat("athens")
    cluster.deliver()
    cluster.time_out("athens")
    cluster.deliver(lambda _, __, message: isinstance(message, VoteRequest | VoteResponse))
    assert cluster.leads("athens") == bool(broken)
    assert cluster.broken() == broken


class RepeatedVotes(QuorumTracker):
    def record(self, member: str) -> bool:
        self._recorded.append(member)
        return True


class CountAnyVote(RaftElection):
    """LDR-M5."""

    def _new_tracker(self) -> QuorumTracker:
        return RepeatedVotes(self._members)

    def _counts(self, response: VoteResponse) -> bool:
        return self.role is ServerRole.LOOKING_FOR_LEADER


@pytest.mark.rows("LDR-M5", "LDR-S10", "LDR-R9")
@pytest.mark.parametrize(("kind", "elected"), [(RaftElection, False), (CountAnyVote, True)])
@pytest.mark.parametrize("votes", [[("byzantium", 1), ("cyrene", 1)], [("delphi", 2), ("delphi", 2)]])
def test_late_and_repeated_votes_elect_only_where_they_are_counted(
    kind: type[RaftElection], elected: bool, votes: list[tuple[str, int]]
) -> None:
    cluster = cluster_of(5, with_raft(kind), pre_vote="off")
    for _ in range(2):
        cluster.time_out("athens")
        cluster.drop(lambda *_: True)
    for voter, generation in votes:
        cluster.hand(voter, "athens", VoteResponse(voter, generation, True))
    assert cluster.leads("athens") == elected


class SameTimeoutForAll(RaftElection):
    """LDR-M8."""

    def _draw_timeout_us(self) -> int:
        return self._timeout_us


@pytest.mark.rows("LDR-M8", "LDR-R11", "LDR-S3", "LDR-I6")
@pytest.mark.parametrize(("kind", "leaders"), [(RaftElection, 1), (SameTimeoutForAll, 0)])
def test_two_servers_split_the_vote_for_ever_where_all_wait_equally_long(
    kind: type[RaftElection], leaders: int
) -> None:
    cluster = cluster_of(3, with_raft(kind), pre_vote="off")
    cluster.kill("cyrene")
    for _ in range(20):
        ring_those_due_first(cluster)
        cluster.deliver()
        if cluster.leaders():
            break
    assert len(cluster.leaders()) == leaders


def ring_those_due_first(cluster: Cluster) -> None:
    """All timers that are due in the same instant ring before any message arrives."""
    timers = {name: cluster.ports[name].next_timer() for name in cluster.nodes}
    due_us = min(timer.due_us for timer in timers.values() if timer is not None)
    for name, timer in timers.items():
        if timer is not None and timer.due_us == due_us:
            cluster.ports[name].ring(timer)


# -- the key in the store ---------------------------------------------------------------------------------------------


class RelyingOnWatches(ExternalStoreElection):
    """The election as printed: only the notification makes a follower try again. A lost one strands it."""

    def _leader_is_silent(self) -> None:
        self._restart_timer()


class WatchAfterCreating(RelyingOnWatches):
    """LDR-M10."""

    def _first_step(self) -> _Step:
        return _Step.CREATING

    def _lost(self, leader: NodeId) -> None:
        super()._lost(leader)
        self._ports.network.send(self._store, WatchLeaderKey(self._attempt))


@pytest.mark.rows("LDR-M10", "LDR-S9", "LDR-R14")
@pytest.mark.parametrize(("kind", "tries_again"), [(RelyingOnWatches, True), (WatchAfterCreating, False)])
def test_a_key_that_goes_before_the_watch_begins_is_missed_for_ever(
    kind: type[ExternalStoreElection], tries_again: bool
) -> None:
    cluster = cluster_of(4, Parts(elections=Elections(external_store=kind)), election="external-store")
    cluster.pass_time(ELECTION_TIMEOUT_US)
    cluster.kill("cyrene")
    cluster.restart("byzantium")
    answers = (LeaderKeyCreated, LeaderKeyRead)
    while not any(isinstance(message, LeaderKeyRead) for _, target, message in cluster.queue if target == "byzantium"):
        cluster.step(lambda source, target, _: "byzantium" in (source, target) and "delphi" in (source, target))
    cluster.kill("athens")
    cluster.deliver(lambda _, target, message: target == "byzantium" and isinstance(message, answers))
    late = cluster.take(lambda _, __, message: isinstance(message, WatchLeaderKey))
    expire_key(cluster)
    for item in late:
        cluster.hand(*item)
    deleted = cluster.generation("delphi")
    cluster.pass_time(4 * ELECTION_TIMEOUT_US)
    assert (cluster.generation("delphi") > deleted) == tries_again


def expire_key(cluster: Cluster) -> None:
    store = cluster.ports["delphi"]
    while cluster.nodes["delphi"].store.owner is not None:
        timer = store.next_timer()
        assert timer is not None
        store.ring(timer)


# -- heartbeats -------------------------------------------------------------------------------------------------------


class QueueingPorts:
    """The ports of a node whose every message waits for the disk."""

    def __init__(self, ports: StaggeredPorts) -> None:
        self._ports = ports
        self.network = self

    def send_ahead(self, to: NodeId, message: Any) -> None:
        self._ports.send(to, message)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ports, name)


class HeartbeatsBehindWrites(ReplicatedLog):
    """HB-M3."""

    def __init__(self, ports: Any, *rest: Any) -> None:
        super().__init__(QueueingPorts(ports), *rest)


@pytest.mark.rows("HB-M3", "HB-S5", "HB-R10")
@pytest.mark.parametrize(("kind", "leaders"), [(ReplicatedLog, ["athens"]), (HeartbeatsBehindWrites, ["byzantium"])])
def test_a_disk_that_stalls_for_three_seconds_costs_the_leadership_only_where_heartbeats_wait_for_it(
    kind: type[ReplicatedLog], leaders: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = cluster_of(3, Parts(replicated_log=kind))
    cluster.pass_time(2 * ELECTION_TIMEOUT_US)
    waiting: list[tuple[str, Any]] = []
    ports = cluster.ports["athens"]
    monkeypatch.setattr(ports, "send", lambda to, message: waiting.append((to, message)))
    Client(cluster, "alice").set("athens", "title", 1)
    cluster.pass_time(3_000_000)
    assert waiting
    assert [name for name in cluster.leaders() if cluster.generation(name) == highest(cluster)] == leaders


def highest(cluster: Cluster) -> int:
    return max(cluster.generation(name) for name in cluster.members)


@pytest.mark.rows("HB-M4", "HB-R1")
@pytest.mark.parametrize(("timeout_us", "most", "least"), [(250_000, 1, 1), (20_000, 10_000, 20)])
def test_a_timeout_below_the_interval_means_elections_without_end(timeout_us: int, most: int, least: int) -> None:
    """The check of the options refuses it (HB-R1); here it is gone round."""
    cluster = cluster_of(3, Parts(), {"election_timeout_us": timeout_us}, pre_vote="off")
    cluster.pass_time(8 * ELECTION_TIMEOUT_US)
    generations = {event.generation for _, event in cluster.events_of(GenerationAdopted)}
    assert least <= len(generations) <= most


# -- generations ------------------------------------------------------------------------------------------------------


class OldMessagesCount(KeyValueServer):
    """GEN-M5."""

    def _is_from_the_past(self, request: ReplicationRequest) -> bool:
        past = super()._is_from_the_past(request)
        if past:
            self.election._detector.heartbeat_received()
        return past


@pytest.mark.rows("GEN-M5", "GEN-R5")
@pytest.mark.parametrize(("kind", "stands"), [(KeyValueServer, True), (OldMessagesCount, False)])
def test_a_zombie_keeps_a_dead_leader_in_office_only_where_its_messages_count(
    kind: type[KeyValueServer], stands: bool
) -> None:
    cluster = cluster_of(3, node_type=kind, pre_vote="off")
    cluster.elect("athens")
    cluster.elect("cyrene")
    cluster.kill("cyrene")
    cluster.kill("athens")
    for _ in range(20):
        cluster.hand("athens", "byzantium", ReplicationRequest("athens", 1, 1, 0, 0, 0, 0, []))
        cluster.pass_time(HEARTBEAT_US)
    assert (cluster.nodes["byzantium"].election.role is ServerRole.LOOKING_FOR_LEADER) == stands


class RefusalsIgnored(KeyValueServer):
    """GEN-M6."""

    def _handle_replication_response(self, source: NodeId, response: ReplicationResponse) -> None:
        if response.generation <= self._clock.generation:
            super()._handle_replication_response(source, response)


@pytest.mark.rows("GEN-M6", "GEN-R6", "GEN-S1")
@pytest.mark.parametrize(
    ("kind", "leaders"), [(KeyValueServer, ["byzantium"]), (RefusalsIgnored, ["athens", "byzantium"])]
)
def test_a_leader_that_is_told_of_a_higher_generation_steps_down_unless_it_does_not_listen(
    kind: type[KeyValueServer], leaders: list[str]
) -> None:
    cluster = cluster_of(3, node_type=kind)
    cluster.elect("athens")
    cluster.cut("athens")
    cluster.elect("byzantium")
    cluster.heal()
    cluster.heartbeat("athens")
    cluster.deliver(lambda source, target, _: "athens" in (source, target) and "byzantium" in (source, target))
    assert cluster.leaders() == leaders


class AnyGenerationCounts(KeyValueServer):
    """GEN-M7."""

    def _is_of_this_generation(self, response: ReplicationResponse) -> bool:
        return True


@pytest.mark.rows("GEN-M7", "GEN-S4", "GEN-R3")
@pytest.mark.parametrize(("kind", "commits"), [(KeyValueServer, False), (AnyGenerationCounts, True)])
def test_a_success_of_generation_1_commits_an_entry_of_generation_3_only_where_it_is_not_compared(
    kind: type[KeyValueServer], commits: bool
) -> None:
    cluster = cluster_of(3, node_type=kind)
    for name in ("athens", "byzantium", "athens"):
        cluster.elect(name)
    cluster.cut("athens")
    mark = cluster.mark("athens")
    Client(cluster, "alice").set("athens", "title", 1)
    cluster.hand("cyrene", "athens", ReplicationResponse("cyrene", 1, 99, 0, True, mark + 1))
    assert (cluster.mark("athens") > mark) == commits
