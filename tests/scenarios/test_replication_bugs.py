"""Bugs of leases that no campaign meets within a reasonable number of seeds, each beside its twin.

To show, a voter must be asked within 50 ms, a leader must not yet have heard of the new generation and be read from,
and the candidate's log must be as long as the voter's although its link to the leader was down: under load it is not.
So each is planted into a cluster that is cranked by hand. LOG-M12 names five ways to get a lease wrong; the other three
are planted in the system (`wall-clock-lease`, `lease-too-long`, `lease-dated-at-arrival`).
"""

from __future__ import annotations

from typing import Any

import pytest

from faultline.harness.judge import judge
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.verdict import Verdict
from faultline.registry import resolve
from faultline.story.log_cluster import Client, Cluster
from faultline.systems_under_test.patterns.data_replication.raft_election import RaftElection
from faultline.systems_under_test.reference.consistent_core.system import ConsistentCore
from faultline.systems_under_test.reference.raft.key_value_server import KeyValueServer
from faultline.systems_under_test.reference.raft.parts import Elections, Parts
from faultline.systems_under_test.reference.raft.settings import RaftSettings


class VotesDespiteAKnownLeader(RaftElection):
    def _must_stick(self) -> bool:
        return False


class ForgetsTheLeaseAtARestart(RaftElection):
    def start(self) -> None:
        super().start()
        self._sticky_until_us = 0


def lease_cluster(election: type[RaftElection]) -> Cluster:
    class Planted(ConsistentCore):
        def node(self, ports: Any, members: Any, options: Any, planted_bugs: Any) -> KeyValueServer:
            parts = Parts(elections=Elections(raft=election))
            return KeyValueServer(ports, members, RaftSettings.read(options), parts)

    kind = type("PlantedCluster", (Cluster,), {"system_type": Planted})
    return kind(read_mode="leader-lease", pre_vote="off")


def elected_inside_the_lease(cluster: Cluster, *, restart_the_voter: bool) -> tuple[bool, list[str]]:
    """cyrene has lost its link to athens and asks byzantium, which has just given athens a lease; Bob asks athens."""
    cluster.elect("athens")
    bob = Client(cluster, "bob").register("athens")
    cluster.cut("athens", "cyrene")
    cluster.heartbeat("athens")
    cluster.deliver()
    cluster.cut("athens")
    if restart_the_voter:
        cluster.restart("byzantium")
    cluster.ports["cyrene"].now_us += cluster.election_timeout_us
    cluster.time_out("cyrene")
    cluster.deliver()
    answered = bool(bob.answers_to(bob.get("athens", "title")))
    return answered and cluster.leads("cyrene"), cluster.broken()


@pytest.mark.rows("LOG-M12", "LOG-R23", "LOG-I7")
def test_a_server_that_votes_although_it_knows_a_leader_makes_a_second_one_inside_the_lease() -> None:
    planted = elected_inside_the_lease(lease_cluster(VotesDespiteAKnownLeader), restart_the_voter=False)
    assert planted == (True, ["LOG-I7"])
    assert elected_inside_the_lease(lease_cluster(RaftElection), restart_the_voter=False) == (False, [])


@pytest.mark.rows("LOG-M12", "LOG-R25", "LOG-S7", "LOG-I7")
def test_a_server_that_votes_at_once_after_a_restart_makes_a_second_leader_inside_the_lease() -> None:
    planted = elected_inside_the_lease(lease_cluster(ForgetsTheLeaseAtARestart), restart_the_voter=True)
    assert planted == (True, ["LOG-I7"])
    assert elected_inside_the_lease(lease_cluster(RaftElection), restart_the_voter=True) == (False, [])


@pytest.mark.rows("LOG-I6", "HWM-I4")
@pytest.mark.parametrize(("planted_bugs", "found"), [(("dirty-read",), True), ((), False)])
def test_values_from_above_the_mark_are_not_linearizable_and_are_found(
    planted_bugs: tuple[str, ...], found: bool
) -> None:
    """Nothing inside a server says which entry a value came from; what clients saw does."""
    seen: set[str] = set()
    for seed in range(8):
        request = RunRequest(
            system="consistent-core", workload="register", faults=("leadership",), seed=seed, planted_bugs=planted_bugs
        )
        parts = resolve(request)
        judgement = judge(run_simulated(make_plan(request, parts), parts), parts, run_id=str(seed))
        seen |= {finding.checker for finding in judgement.findings if judgement.verdict is Verdict.VIOLATION}
    assert ("linearizability" in seen) is found
