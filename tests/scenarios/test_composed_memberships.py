"""Composed scenarios with memberships that need no core: X-S6 and X-S7.

No system joins these: a coordinator that emerged gives out fixed partitions, and nodes that gossip keep a catalogue
in a consistent core. The stories wire them up with a few lines each.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

import pytest
from emergent_driver import TIMEOUT_MS, EmergentCluster

from faultline.story.log_cluster import Client, Cluster, StaggeredPorts
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import assign_round_robin
from faultline.systems_under_test.reference.gossip.system import Gossip

PARTITIONS = 12
NOTICED_MS = TIMEOUT_MS + 100
MERGED_MS = 1_000


# -- an emergent coordinator and fixed partitions ---------------------------------------------------------------------


def tables(cluster: EmergentCluster, minimum: int) -> dict[tuple[str, int], list[str]]:
    """Return the owners that each coordinator gives out, by its name and the version of its membership."""
    given = {}
    for name in cluster.nodes:
        membership = cluster.membership(name)
        if membership.coordinator.address == name and membership.may_serve(minimum):
            owners = assign_round_robin(PARTITIONS, sorted(cluster.live(name)), 1)
            given[name, membership.version] = owners
    return given


def owners_of(given: dict[tuple[str, int], list[str]]) -> list[set[str]]:
    """Return, for each partition, the nodes that believe that they own it."""
    return [{owners[partition] for owners in given.values()} for partition in range(PARTITIONS)]


def cut_and_healed(minimum: int) -> tuple[EmergentCluster, list[int]]:
    """Five members, two cut off for three seconds and healed; at each 50 ms how many partitions have two owners."""
    cluster = EmergentCluster(5, minimum=str(minimum))
    cluster.wait(800)
    assert cluster.agreed()
    cluster.split("byzantium", "cyrene")
    contested = []
    for elapsed_ms in range(0, 3_000 + MERGED_MS, 50):
        if elapsed_ms == 3_000:
            cluster.heal()
        cluster.wait(50)
        contested.append(sum(len(owners) > 1 for owners in owners_of(tables(cluster, minimum))))
    return cluster, contested


@pytest.mark.rows("X-S6")
def test_two_emergent_coordinators_contest_partitions_until_they_merge_and_then_there_is_one_table() -> None:
    cluster, contested = cut_and_healed(minimum=1)
    # From when the cut is noticed until the heal is: no sooner, no later.
    assert contested[0] == 0 and contested[NOTICED_MS // 50 + 1] > 0
    assert all(contested[NOTICED_MS // 50 + 1 : 3_000 // 50])
    assert contested[-1] == 0
    given = tables(cluster, 1)
    assert len(given) == 1 and cluster.agreed()
    assert all(len(owners) == 1 for owners in owners_of(given))
    assert {owner for owners in given.values() for owner in owners} == set(cluster.members)


@pytest.mark.rows("X-S6")
def test_with_a_minimum_of_a_majority_no_partition_ever_has_two_owners() -> None:
    cluster, contested = cut_and_healed(minimum=0)
    assert set(contested) == {0}
    assert len(tables(cluster, 0)) == 1


def test_the_table_after_the_merge_is_newer_than_both_of_before() -> None:
    cluster = EmergentCluster(5, minimum="1")
    cluster.wait(800)
    cluster.split("byzantium", "cyrene")
    cluster.wait(NOTICED_MS)
    versions = [version for _, version in tables(cluster, 1)]
    assert len(versions) == 2
    cluster.heal()
    cluster.wait(MERGED_MS)
    ((_, merged),) = tables(cluster, 1)
    assert merged > max(versions)


# -- gossip and a catalogue -------------------------------------------------------------------------------------------


class ChancePorts(StaggeredPorts):
    """Chance that depends on who asks, what for, and when."""

    def uniform_us(self, stream: str, low_us: int, high_us: int) -> int:
        return low_us + crc32(f"{self.node_id} {stream} {self.now_us}".encode()) % (high_us - low_us)


class GossipAgents(Cluster):
    """Nodes that gossip and judge each other by it."""

    system_type = Gossip
    ports_type = ChancePorts

    def sees(self, observer: str, node: str) -> bool:
        return node in self.nodes[observer].up()


class Catalogue:
    """The core, and one session for all agents' reports: who is up, as far as an agent last said."""

    def __init__(self) -> None:
        self.core = Cluster(3)
        self.core.elect("athens")
        self.client = Client(self.core, "agents").register("athens")
        self.told: Any = None

    def leader(self) -> str:
        return self.core.leaders()[-1]

    def report(self, node: str, value: Any) -> None:
        number = self.client.set(self.leader(), f"catalogue/{node}", value)
        self.core.deliver()
        answer = self.client.answer_to(number)
        assert answer is not None and answer.error is None
        self.told = value

    def read(self, node: str) -> Any:
        """Read from the current leader, and return its answer after a majority has confirmed that it leads."""
        number = self.client.get(self.leader(), f"catalogue/{node}")
        self.core.heartbeat(self.leader())
        self.core.deliver()
        answer = self.client.answer_to(number)
        assert answer is not None
        return answer.value

    def change_leader(self) -> None:
        """The leader dies, another is elected, and the dead one comes back as a follower."""
        dead = self.leader()
        self.core.kill(dead)
        self.core.elect(next(name for name in self.core.members if name != dead))
        self.core.restart(dead)
        self.core.deliver()


@pytest.mark.rows("X-S7")
def test_the_catalogue_is_linearizable_although_the_agents_disagree_about_a_node_that_flaps() -> None:
    agents = GossipAgents(3, detector="fixed", down_after_ms="500")
    agents.pass_time(2_000_000)
    catalogue = Catalogue()
    observers, flapping = ("athens", "byzantium"), "cyrene"
    disagreements = reads = 0
    for flap in range(4):
        # cyrene is heard by one agent, and by the other not even through a third; which one, changes.
        deaf = observers[flap % 2]
        agents.cut(deaf, flapping, observers[1 - flap % 2])
        for _ in range(6):
            agents.pass_time(200_000)
            views = {observer: agents.sees(observer, flapping) for observer in observers}
            disagreements += len(set(views.values())) > 1
            for observer, is_up in views.items():
                catalogue.report(flapping, {"by": observer, "up": is_up})
                reads += 1
                assert catalogue.read(flapping) == catalogue.told
        catalogue.change_leader()
        assert catalogue.read(flapping) == catalogue.told
        agents.heal()
        agents.pass_time(1_000_000)
    assert disagreements > 4 and reads == 48
    assert all(agents.sees(observer, flapping) for observer in observers)
    assert catalogue.core.broken() == agents.broken() == []
