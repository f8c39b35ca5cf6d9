"""Stories of a data grid: owners fail and are cut off, partitions move, and halves of a split meet again."""

from __future__ import annotations

import pytest
from grid_driver import GridCluster

from faultline.systems_under_test.reference.data_grid.messages import (
    CopiesCollected,
    CopyStored,
    DroppedWritesCompared,
    InstallCopy,
    PublishTable,
    ReplicateToBackup,
)
from faultline.systems_under_test.reference.data_grid.table import AWAY
from faultline.systems_under_test.reference.shared.key_commands import GetValue, Increment, SetValue

A, B, C, D, E = "athens", "byzantium", "cyrene", "delphi", "ephesus"
PROMOTED_MS = 1_000
MERGED_MS = 2_000


def value(cluster: GridCluster, node: str, key: str, number: int) -> object:
    answer = cluster.send(node, number, GetValue(key), client="reader")
    assert answer is not None
    return answer.value


@pytest.mark.rows("EL-R32", "EL-I11")
def test_the_oldest_member_hands_out_all_partitions_to_all_members() -> None:
    cluster = GridCluster()
    assert len({str(cluster.table(node)) for node in cluster.nodes}) == 1
    table = cluster.table(A)
    assert {entry.owner for entry in table.entries} == set(cluster.nodes)
    assert all(len(entry.holders) == 3 for entry in table.entries)
    assert cluster.broken() == []


@pytest.mark.rows("EL-R32")
def test_no_table_is_made_before_the_last_live_member_has_answered() -> None:
    cluster = GridCluster()
    version = cluster.table(B).version
    cluster.kill(E)
    cluster.loses = lambda source, _, message: source == D and isinstance(message, CopiesCollected)
    cluster.wait(600)
    assert cluster.table(B).version == version
    cluster.loses = lambda *_: False
    cluster.wait(PROMOTED_MS)
    assert cluster.table(B).version > version
    assert E not in cluster.table(B).members


@pytest.mark.rows("EL-R33", "EL-I10")
def test_a_write_is_answered_when_the_last_backup_has_it_and_no_reader_sees_it_before() -> None:
    cluster = GridCluster()
    key = cluster.key_owned_by(C)
    last = cluster.entry(C, key).holders[-1].address
    cluster.send(C, 1, SetValue(key, "old"))
    cluster.begin(C, 2, SetValue(key, "new"))
    cluster.deliver(lambda _, target, message: target != last and isinstance(message, ReplicateToBackup))
    cluster.deliver(lambda _, __, message: isinstance(message, CopyStored))
    assert cluster.answers(since=1) is None
    cluster.begin(C, 1, GetValue(key), "reader")
    cluster.deliver(lambda _, target, __: target == "reader")
    assert (shown := cluster.answers("reader")) is not None
    assert shown.value == "old"
    cluster.deliver()
    assert cluster.answers(since=1) is not None
    assert value(cluster, C, key, 2) == "new"
    assert cluster.broken() == []


@pytest.mark.rows("EL-R34", "EL-R35")
def test_a_backup_takes_over_with_the_values_and_the_answers_of_an_owner_that_died() -> None:
    cluster = GridCluster()
    key = cluster.key_owned_by(E)
    assert (first := cluster.send(E, 1, Increment(key, 1))) is not None
    cluster.kill(E)
    cluster.wait(PROMOTED_MS)
    owner = cluster.entry(A, key).owner
    assert owner != E
    assert cluster.send(owner, 1, Increment(key, 1)) == first
    assert value(cluster, owner, key, 1) == 1
    assert cluster.broken() == []


@pytest.mark.rows("EL-R35")
def test_a_member_that_comes_back_is_given_copies_and_then_partitions_with_their_answers() -> None:
    cluster = GridCluster(3, backups="1")
    keys = [f"key-{number}" for number in range(30)]
    for number, key in enumerate(keys, start=1):
        assert cluster.send(cluster.entry(A, key).owner, number, Increment(key, 1), client=key)
    cluster.kill(C)
    cluster.wait(PROMOTED_MS)
    cluster.start(C)
    cluster.wait(4_000)
    moved = [key for key in keys if cluster.entry(A, key).owner == C]
    assert moved
    for key in moved:
        again = cluster.send(C, keys.index(key) + 1, Increment(key, 1), client=key)
        assert again is not None
        assert again.value == 1
    assert cluster.broken() == []


@pytest.mark.rows("EL-R36", "EL-I9", "EL-I12")
def test_an_owner_that_is_cut_off_answers_no_more_once_its_lease_is_over_and_its_successor_not_before() -> None:
    cluster = GridCluster(failure_timeout_ms="150", lease_ms="1000")
    key = cluster.key_owned_by(E)
    cluster.send(E, 1, SetValue(key, "old"))
    cluster.split(E)
    cluster.wait(300)
    successor = cluster.entry(A, key).owner
    assert successor != E
    assert value(cluster, E, key, 1) == "old"
    assert cluster.send(successor, 2, SetValue(key, "new")) is None
    cluster.wait(900)
    assert cluster.send(E, 2, GetValue(key), client="reader") is None
    cluster.wait(500)
    assert value(cluster, successor, key, 3) == "new"
    assert cluster.broken() == []


@pytest.mark.rows("EL-R22", "EL-R23")
def test_the_smaller_part_makes_no_table_though_its_detector_says_that_all_others_failed() -> None:
    cluster = GridCluster()
    version = cluster.table(D).version
    cluster.split(D, E)
    cluster.wait(PROMOTED_MS)
    assert cluster.table(D).version == version
    assert cluster.table(E).version == version
    assert cluster.table(A).version > version
    cluster.heal()
    cluster.wait(MERGED_MS)
    assert len({cluster.table(node).version for node in cluster.nodes}) == 1
    assert cluster.broken() == []


@pytest.mark.rows("EL-R34")
def test_a_partition_whose_only_copies_are_cut_off_waits_for_them() -> None:
    cluster = GridCluster(backups="1")
    entries = cluster.table(A).entries
    one, other = (holder.address for holder in entries[0].holders)
    key = next(key for number in range(1_000) if cluster.entry(A, key := f"key-{number}") is entries[0])
    cluster.send(one, 1, SetValue(key, "kept"))
    cluster.split(one, other)
    cluster.wait(PROMOTED_MS)
    majority = next(node for node in cluster.nodes if node not in (one, other))
    assert cluster.entry(majority, key).owner == AWAY
    cluster.heal()
    cluster.wait(MERGED_MS)
    assert value(cluster, cluster.entry(majority, key).owner, key, 1) == "kept"
    assert cluster.broken() == []


def test_a_table_survives_the_restart_of_all_nodes_and_the_data_do_not() -> None:
    cluster = GridCluster()
    key = cluster.key_owned_by(A)
    cluster.send(A, 1, SetValue(key, "gone"))
    version = cluster.table(A).version
    for node in (A, B, C, D, E):
        cluster.kill(node)
    for node in (A, B, C, D, E):
        cluster.start(node)
    assert cluster.table(E).version == version
    cluster.wait(2_000)
    assert value(cluster, cluster.entry(A, key).owner, key, 1) is None
    assert cluster.table(A).version > version


def test_a_backup_that_lost_the_content_gets_it_again() -> None:
    cluster = GridCluster()
    key = cluster.key_owned_by(E)
    first, second = (holder.address for holder in cluster.entry(E, key).holders[1:])
    cluster.kill(first)
    backup = second
    cluster.loses = lambda _, target, message: target == backup and isinstance(message, InstallCopy)
    cluster.wait(PROMOTED_MS)
    assert cluster.send(E, 1, SetValue(key, "x")) is None
    cluster.loses = lambda *_: False
    cluster.wait(500)
    assert cluster.answers() is not None


def test_a_member_that_missed_the_table_is_told_again() -> None:
    cluster = GridCluster()
    cluster.kill(E)
    cluster.loses = lambda _, target, message: target == B and isinstance(message, PublishTable)
    cluster.wait(800)
    assert cluster.table(B) != cluster.table(A)
    cluster.loses = lambda *_: False
    cluster.wait(300)
    assert cluster.table(B) == cluster.table(A)


@pytest.mark.rows("EL-S21", "EL-R21", "EL-I13")
def test_without_a_minimum_size_the_merge_reports_lost_and_conflicting_writes() -> None:
    cluster = GridCluster(minimum_size="none")
    lost, conflicting, untouched = _three_keys_of_the_smaller_part(cluster)
    for number, key in enumerate((lost, conflicting, untouched), start=1):
        cluster.send(cluster.entry(A, key).owner, number, SetValue(key, "before"))
    cluster.split(D, E)
    cluster.wait(MERGED_MS)
    for number, key in enumerate((lost, conflicting), start=4):
        assert cluster.send(cluster.entry(D, key).owner, number, SetValue(key, "minority")) is not None
    assert cluster.send(cluster.entry(A, conflicting).owner, 9, SetValue(conflicting, "majority"), "other") is not None
    cluster.heal()
    cluster.wait(MERGED_MS)
    reports = [event for _, event in cluster.events if isinstance(event, DroppedWritesCompared)]
    assert {key for report in reports for key in report.lost} == {lost}
    assert {key for report in reports for key in report.conflicting} == {conflicting}
    assert value(cluster, cluster.entry(D, lost).owner, lost, 1) == "before"
    assert value(cluster, cluster.entry(D, conflicting).owner, conflicting, 2) == "majority"
    assert cluster.broken() == []


def _three_keys_of_the_smaller_part(cluster: GridCluster) -> list[str]:
    keys = [f"key-{number}" for number in range(1_000)]
    found: dict[int, str] = {}
    for key in keys:
        if cluster.entry(A, key).owner in (D, E):
            found.setdefault(cluster.entry(A, key).generation * 1_000 + keys.index(key), key)
    return list(found.values())[:3]
