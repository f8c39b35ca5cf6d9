"""Stories of partitions that are assigned and moved: FXP-S* of the requirements, with nodes of `partitioned-kv`."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.story.partition_cluster import NAMES, PartitionCluster, assert_nothing_is_lost, read, with_names
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import partition_of
from faultline.systems_under_test.reference.partitioned_kv.messages import (
    HostPartition,
    HostPartitionAck,
    MigrationCompleteMessage,
    MovePartition,
    PartitionMovementComplete,
    PartitionRefused,
    PartitionRequest,
    PartitionResponse,
    RequestPartitionMigration,
)

# -- assigning --------------------------------------------------------------------------------------------------------


@pytest.mark.rows("FXP-R6", "FXP-R7", "FXP-R12", "FXP-R13", "FXP-R14", "FXP-R16", "FXP-S1")
def test_three_members_register_and_host_three_partitions_each() -> None:
    cluster = with_names()
    assert cluster.table().live == ("athens", "byzantium", "cyrene")
    assert [entry.owner for entry in cluster.table().entries] == ["athens", "byzantium", "cyrene"] * 3
    assert_nothing_is_lost(cluster)
    for name in NAMES:
        entry = cluster.table().entries[partition_of(name, 9)]
        assert cluster.nodes[entry.owner].host.partitions[partition_of(name, 9)].values == {name: f"{name} 1"}


@pytest.mark.rows("FXP-R11", "FXP-S2")
def test_partitions_are_assigned_once_enough_members_live_and_not_again_when_more_join() -> None:
    cluster = PartitionCluster(4, late_nodes="2", join_after_ms="4000")
    cluster.wait(2_500)
    assert cluster.table().entries == ()
    assert cluster.ask("read", "Alice").error == "no-partition-table"
    assert "too-few-members-to-assign" in cluster.marks
    cluster.wait(3_000)
    assert cluster.is_settled()
    version = [entry.generation for entry in cluster.table().entries]
    cluster.wait(2_000)
    assert [entry.generation for entry in cluster.table().entries] == version == [1] * 9


@pytest.mark.rows("FXP-R8")
def test_a_registration_counts_when_it_is_committed_and_a_second_one_changes_nothing() -> None:
    cluster = PartitionCluster()
    cluster.wait()
    version = cluster.table().version
    cluster.restart("cyrene")
    cluster.wait(600)
    assert cluster.table().version == version
    assert cluster.nodes["cyrene"].member._registered


@pytest.mark.rows("FXP-R15")
@pytest.mark.parametrize("kind", [HostPartition, HostPartitionAck])
@pytest.mark.parametrize("copies", [0, 2])
def test_an_assignment_survives_messages_that_are_lost_or_repeated(kind: type, copies: int) -> None:
    cluster = PartitionCluster()
    mangled: list[Any] = []

    def copies_of(message: Any) -> int:
        if isinstance(message, kind) and message not in mangled:
            mangled.append(message)
            return copies
        return 1

    cluster.copies_of = copies_of
    cluster.wait(2_500)
    assert len(mangled) == 6
    assert cluster.is_settled()
    assert cluster.broken() == []


@pytest.mark.rows("FXP-R14")
def test_what_a_dead_member_never_began_is_given_to_another() -> None:
    cluster = PartitionCluster(3)
    cluster.copies_of = lambda message: 0 if isinstance(message, HostPartition) and message.partition % 3 == 2 else 1
    cluster.wait(1_000)
    cluster.kill("cyrene")
    cluster.copies_of = lambda _: 1
    cluster.wait(4_000)
    assert "partition-reassigned" in cluster.marks
    assert {entry.owner for entry in cluster.table().entries} == {"athens", "byzantium"}
    assert cluster.is_settled()


@pytest.mark.rows("FXP-R30")
def test_what_a_dead_member_served_is_away_until_it_is_back() -> None:
    cluster = with_names()
    cluster.kill("cyrene")
    cluster.wait(3_000)
    key = next(name for name in NAMES if cluster.table().entries[partition_of(name, 9)].owner == "cyrene")
    assert cluster.ask("read", key).kind == "info"
    cluster.restart("cyrene")
    cluster.wait(1_000)
    assert_nothing_is_lost(cluster)


# -- membership -------------------------------------------------------------------------------------------------------


@pytest.mark.rows("FXP-R9", "FXP-R10", "FXP-S5")
def test_a_silent_member_fails_and_is_back_with_its_next_heartbeat() -> None:
    cluster = PartitionCluster(4)
    cluster.wait(1_000)
    cluster.cut("delphi", "athens", "byzantium", "cyrene")
    cluster.wait(5_000)
    assert cluster.table().live == ("athens", "byzantium", "cyrene")
    cluster.heal()
    cluster.wait(1_000)
    assert cluster.table().live == ("athens", "byzantium", "cyrene", "delphi")
    assert_members_stay_live_under_a_new_leader(cluster)


def assert_members_stay_live_under_a_new_leader(cluster: PartitionCluster) -> None:
    old = cluster.leader()
    cluster.kill(old)
    cluster.wait(900)
    assert old in cluster.table().live
    cluster.wait(2_500)
    assert old not in cluster.table().live
    assert len(cluster.table().live) == 3


@pytest.mark.rows("FXP-R14", "FXP-S5")
def test_nothing_is_repeated_to_a_member_that_is_taken_for_dead() -> None:
    cluster = PartitionCluster(4, minimum_cluster_size="4")
    cluster.copies_of = lambda message: 0 if isinstance(message, HostPartitionAck) and message.partition == 3 else 1
    cluster.wait(1_500)
    assert len(cluster.coordinator().retried) == 1
    cluster.cut("delphi", "athens", "byzantium", "cyrene")
    cluster.wait(1_400)
    assert "delphi" not in cluster.table().live
    assert all(task.addressed[0] != "delphi" for task in cluster.coordinator().retried._tasks.values())


# -- moving -----------------------------------------------------------------------------------------------------------


def joined_by_ephesus() -> PartitionCluster:
    cluster = PartitionCluster(4, late_nodes="1", join_after_ms="2500")
    cluster.wait(2_000)
    for name in NAMES:
        assert cluster.ask("write", name, f"{name} 1").kind == "ok"
    cluster.wait(1_500)
    return cluster


@pytest.mark.rows("FXP-R20", "FXP-R23", "FXP-R25", "FXP-S3")
def test_a_new_member_gets_partitions_when_the_administrator_asks_and_not_before() -> None:
    cluster = joined_by_ephesus()
    assert "delphi" in cluster.table().live
    assert cluster.table().owners().count("delphi") == 0
    assert cluster.reassign()
    cluster.wait(500)
    assert cluster.table().owners().count("delphi") == 2
    assert_nothing_is_lost(cluster)
    assert not cluster.reassign()


@pytest.mark.rows("FXP-R20", "FXP-S10")
def test_a_second_reassignment_is_refused_while_the_first_is_under_way() -> None:
    cluster = joined_by_ephesus()
    assert cluster.reassign()
    cluster.copies_of = lambda message: 0 if isinstance(message, MovePartition) else 1
    cluster.deliver()
    assert cluster.coordinator().directory.pending
    assert not cluster.reassign()
    cluster.copies_of = lambda _: 1
    cluster.wait(1_000)
    assert_nothing_is_lost(cluster)


@pytest.mark.rows("FXP-R18", "FXP-R19", "FXP-R24", "FXP-R26", "FXP-S3")
def test_a_client_with_the_old_table_is_refused_looks_again_and_succeeds() -> None:
    cluster = with_names(4)
    key, partition = "Alice", partition_of("Alice", 9)
    source = cluster.table().entries[partition].owner
    target = next(name for name in ("byzantium", "cyrene", "delphi") if name != source)
    cluster.copies_of = lambda message: 0 if isinstance(message, PartitionMovementComplete) else 1
    cluster.move(partition, target)
    assert read(cluster, key) == "Alice 1"
    writing = cluster.begin("write", key, "Alice 2")
    cluster.wait(60)
    assert writing == []
    assert "write-refused-while-migrating" in cluster.marks
    cluster.copies_of = lambda _: 1
    cluster.wait(600)
    assert [outcome.kind for outcome in writing] == ["ok"]
    assert writing[0].node == target
    assert read(cluster, key, "client-2") == "Alice 2"


@pytest.mark.rows("FXP-R19")
def test_a_node_that_does_not_host_the_partition_refuses_and_says_nothing_about_the_key() -> None:
    cluster = with_names()
    answers: list[Any] = []
    cluster.copies_of = lambda message: (
        answers.append(message) or 1 if isinstance(message, PartitionRefused | PartitionResponse) else 1
    )
    partition = partition_of("Alice", 9)
    owner = cluster.table().entries[partition].owner
    command = cluster.client()._command
    for node, generation in ((owner, 2), (owner, 0), *((name, 1) for name in cluster.members if name != owner)):
        cluster.hand("client-9", node, PartitionRequest(1, partition, generation, command))
    assert answers == [PartitionRefused(1)] * 4


STEPS = (
    RequestPartitionMigration,
    MovePartition,
    PartitionMovementComplete,
    MigrationCompleteMessage,
    HostPartition,
    HostPartitionAck,
)


@pytest.mark.rows("FXP-R15", "FXP-R27", "FXP-S8")
@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize("copies", [0, 2])
def test_a_move_ends_well_when_any_of_its_messages_is_lost_or_repeated(kind: type, copies: int) -> None:
    cluster = with_names(5)
    partition = partition_of("Bob", 9)
    cluster.copies_of = first_of(kind, copies)
    cluster.move(partition, "ephesus" if cluster.table().entries[partition].owner != "ephesus" else "delphi")
    cluster.wait(1_000)
    assert_nothing_is_lost(cluster)


def first_of(kind: type, copies: int) -> Any:
    seen: list[Any] = []

    def copies_of(message: Any) -> int:
        if isinstance(message, kind) and not seen:
            seen.append(message)
            return copies
        return 1

    return copies_of


@pytest.mark.rows("FXP-R27", "FXP-S8")
def test_a_move_that_is_delayed_until_the_new_owner_has_written_reverts_nothing() -> None:
    cluster = with_names(5)
    partition = partition_of("Bob", 9)
    late: list[Any] = []
    cluster.copies_of = lambda message: late.append(message) or 1 if isinstance(message, MovePartition) else 1
    cluster.move(partition, "ephesus")
    cluster.wait(500)
    assert cluster.ask("write", "Bob", "Bob 2").node == "ephesus"
    cluster.hand("byzantium", "ephesus", late[0])
    assert "late-move-ignored" in cluster.marks
    assert read(cluster, "Bob", "client-3") == "Bob 2"
    assert cluster.is_settled()


@pytest.mark.rows("FXP-R29", "FXP-S8")
@pytest.mark.parametrize(("kind", "dies"), [(MovePartition, "source"), (PartitionMovementComplete, "target")])
def test_a_move_goes_on_after_the_crash_of_source_or_target(kind: type, dies: str) -> None:
    cluster = with_names(5)
    partition = partition_of("Bob", 9)
    cluster.copies_of = first_of(kind, 0)
    migration = cluster.move(partition, "ephesus")
    cluster.restart(getattr(migration, dies))
    cluster.wait(2_500)
    assert cluster.table().entries[partition].owner == "ephesus"
    assert_nothing_is_lost(cluster)


@pytest.mark.rows("FXP-R29", "FXP-S8")
def test_a_move_to_a_member_that_dies_is_cancelled_and_the_source_takes_writes_again() -> None:
    cluster = with_names(5)
    partition = partition_of("Bob", 9)
    source = cluster.table().entries[partition].owner
    cluster.kill("ephesus")
    cluster.move(partition, "ephesus")
    assert cluster.nodes[source].host.partitions[partition].state == "migrating"
    cluster.wait(2_500)
    assert "migration-cancelled" in cluster.marks
    assert cluster.table().entries[partition].owner == source
    assert cluster.table().entries[partition].generation == 3
    assert cluster.ask("write", "Bob", "Bob 2").node == source


@pytest.mark.rows("FXP-R29")
def test_a_move_that_is_cancelled_after_the_data_has_left_is_completed_instead() -> None:
    cluster = with_names(5)
    partition = partition_of("Bob", 9)
    cluster.copies_of = lambda message: 0 if isinstance(message, MigrationCompleteMessage) else 1
    cluster.move(partition, "ephesus")
    cluster.kill("ephesus")
    cluster.wait(1_500)
    cluster.copies_of = lambda _: 1
    cluster.wait(1_000)
    assert "migration-cancelled" in cluster.marks
    assert cluster.table().entries[partition].owner == "ephesus"
    cluster.start("ephesus")
    cluster.wait(1_500)
    assert_nothing_is_lost(cluster)
