"""Stories of coordinators that die while partitions are assigned or moved, and of owners that do."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.story.partition_cluster import NAMES, PartitionCluster, assert_nothing_is_lost, with_names
from faultline.systems_under_test.patterns.data_partitioning.cluster_directory import MembersFailed
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import partition_of
from faultline.systems_under_test.reference.partitioned_kv.messages import (
    HostPartition,
    HostPartitionAck,
    RequestPartitionMigration,
)

# -- the coordinator dies ---------------------------------------------------------------------------------------------


@pytest.mark.rows("FXP-R28", "FXP-S7")
@pytest.mark.parametrize("acks", [0, 4])
def test_a_new_leader_goes_on_with_an_assignment(acks: int) -> None:
    cluster = PartitionCluster(5, minimum_cluster_size="5")
    left = [acks]

    def copies_of(message: Any) -> int:
        if isinstance(message, HostPartitionAck):
            left[0] -= 1
            return int(left[0] >= 0)
        return int(acks > 0 or not isinstance(message, HostPartition))

    cluster.copies_of = copies_of
    cluster.wait(1_200)
    assert cluster.table().entries
    assert not cluster.is_settled()
    assert_the_next_leader_finishes(cluster)


def assert_the_next_leader_finishes(cluster: PartitionCluster) -> None:
    cluster.kill(old := cluster.leader())
    cluster.copies_of = lambda _: 1
    cluster.start(old)
    cluster.wait(3_000)
    assert cluster.is_settled()
    assert cluster.broken() == []


@pytest.mark.rows("FXP-R23", "FXP-R28", "FXP-S7")
def test_a_new_leader_goes_on_with_moves_that_no_server_was_told_of() -> None:
    cluster = with_names(5)
    partition = partition_of("Bob", 9)
    cluster.copies_of = lambda message: int(not isinstance(message, RequestPartitionMigration))
    cluster.move(partition, "ephesus")
    assert_the_next_leader_finishes(cluster)
    assert cluster.table().entries[partition].owner == "ephesus"
    assert_nothing_is_lost(cluster)


@pytest.mark.rows("FXP-S9", "FXP-R18")
def test_without_the_core_clients_go_on_with_the_table_they_have() -> None:
    cluster = with_names(5)
    for name in ("athens", "byzantium", "cyrene"):
        cluster.cut(name, *(other for other in cluster.members if other != name))
    served = [name for name in NAMES if cluster.ask("write", name, f"{name} 2").kind == "ok"]
    assert served == list(NAMES)
    assert cluster.ask("read", "Alice", client="client-4").value == "Alice 2"


@pytest.mark.rows("FXP-R12")
def test_by_rendezvous_every_partition_has_an_owner_too_and_serves() -> None:
    cluster = with_names(4, assignment="rendezvous", minimum_cluster_size="4")
    assert_nothing_is_lost(cluster)


@pytest.mark.rows("FXP-R20", "FXP-R22")
def test_partitions_of_a_failed_member_are_neither_moved_nor_given_away() -> None:
    cluster = with_names(4, minimum_cluster_size="4")
    cluster.kill("delphi")
    cluster.wait(2_500)
    held = [number for number, owner in enumerate(cluster.table().owners()) if owner == "delphi"]
    cluster.reassign()
    cluster.wait(500)
    assert held
    assert [number for number, owner in enumerate(cluster.table().owners()) if owner == "delphi"] == held
    cluster.start("delphi")
    cluster.wait(1_000)
    assert_nothing_is_lost(cluster)


@pytest.mark.rows("FXP-I5")
def test_a_coordinator_without_a_live_member_plans_no_loads() -> None:
    cluster = with_names(3)
    cluster.coordinator()._commit(MembersFailed(cluster.members))
    cluster.deliver()
    assert cluster.coordinator().directory.live() == []
    assert not cluster.reassign()
    assert cluster.broken() == []
