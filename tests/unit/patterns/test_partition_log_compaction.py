"""Logs of partitions that are cut short: the same state from a snapshot as from the whole log, and a bounded disk."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, cast

import pytest

from faultline.harness.world.ports import Ports
from faultline.systems_under_test.patterns.data_partitioning.cluster_directory import Migration
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import Answer, PartitionContent, Written
from faultline.systems_under_test.patterns.data_partitioning.key_range_partitions import EVERYTHING, Partition
from faultline.systems_under_test.patterns.data_partitioning.partition_host import SERVING, PartitionHost
from faultline.systems_under_test.patterns.data_partitioning.range_table import (
    ConfirmPartition,
    CreateTable,
    HostPartition,
    MovePartition,
    RangeTable,
    SplitPartition,
)
from faultline.systems_under_test.patterns.data_replication.compacted_log import CompactedLog
from faultline.systems_under_test.reference.range_kv.store import ErasedKey, PartitionStore, StoredKey
from faultline.testing.fake_ports import FakePorts
from faultline.testing.memory_storage import MemoryStorage, keep_nothing

WHOLE, SHORT = 10_000, 7


def store_of(ports: FakePorts, every: int) -> PartitionStore:
    store = PartitionStore(cast("Ports", ports), snapshot_every_entries=every)
    store.recover()
    return store


def fill_ranges(store: PartitionStore, writes: int) -> None:
    """Two halves of a split, one of them moving away; many writes before and after."""
    choose = random.Random(5)
    store.record(HostPartition(Partition(1, EVERYTHING, 1, "athens")))
    for number in range(writes):
        if number == writes // 2:
            halves = enumerate(EVERYTHING.split("m"), start=1)
            left, right = (Partition(each, part, 2, "athens") for each, part in halves)
            store.record(SplitPartition(1, left, right))
            store.record(MovePartition(Partition(2, right.range, 3, "byzantium"), "athens"))
        key = choose.choice("abcdefg")
        store.record(ErasedKey(1, key) if number % 9 == 0 else StoredKey(1, key, number))


def ranges_in(store: PartitionStore) -> Any:
    held = {number: (partition.info, partition.entries()) for number, partition in store.held.items()}
    leaving = {number: (to, data.info, data.entries()) for number, (to, data) in store.leaving.items()}
    return held, leaving, store.last_generation


@pytest.mark.rows("LWM-I1")
def test_ranges_are_the_same_from_a_snapshot_as_from_the_whole_log() -> None:
    found = []
    for every in (WHOLE, SHORT):
        ports = FakePorts()
        store = store_of(ports, every)
        fill_ranges(store, 40)
        ports.storage.crash(keep_nothing)
        again = store_of(ports, every)
        assert ranges_in(again) == ranges_in(store)
        assert any(file.endswith(".snap") for file in ports.storage.files()) == (every == SHORT)
        found.append(ranges_in(again))
    assert found[0] == found[1]


def host_of(ports: FakePorts, every: int) -> PartitionHost:
    host = PartitionHost(cast("Ports", ports), every)
    host.recover()
    return host


def fill_partitions(host: PartitionHost, writes: int) -> None:
    """Partition 1 is served, 2 is on its way out, 3 has left, 4 has left and come back, 5 has just arrived."""
    for partition in (1, 2, 3, 4):
        host.host(partition, 1, fresh=True)
    for number in range(writes):
        host.write(Written(1, f"key-{number % 5}", number, f"client-{number % 3}", Answer(number)))
        host.write(Written(2, "key", number, "client", Answer(number)) if number < writes // 2 else _failed(number))
        if number == writes // 2:
            host.send_off(Migration(2, "athens", "ephesus", 2))
            for gone in (3, 4):
                host.send_off(Migration(gone, "athens", "ephesus", 2))
                host.drop(Migration(gone, "athens", "ephesus", 2))
            host.install(Migration(4, "ephesus", "athens", 3), PartitionContent({"key": "back"}, {}))
            host.host(4, 3, fresh=False)
            host.install(Migration(5, "ephesus", "athens", 2), PartitionContent({"key": "new"}, {}))


def _failed(number: int) -> Written:
    return Written(1, "key-0", None, "unlucky", Answer(number, "refused"))


def partitions_in(host: PartitionHost) -> Any:
    hosted = {
        number: (each.generation, each.state, each.content(), each.migration)
        for number, each in host.partitions.items()
    }
    return hosted, host.left


@pytest.mark.rows("LWM-I1")
def test_hosted_partitions_are_the_same_from_a_snapshot_as_from_the_whole_log() -> None:
    found = []
    for every in (WHOLE, SHORT):
        ports = FakePorts()
        host = host_of(ports, every)
        fill_partitions(host, 30)
        ports.storage.crash(keep_nothing)
        again = host_of(ports, every)
        assert partitions_in(again) == partitions_in(host)
        assert again.partitions[1].state == SERVING and set(again.left) == {3, 4}
        found.append(partitions_in(again))
    assert found[0] == found[1]


def test_a_table_in_a_snapshot_has_its_open_tasks_and_its_next_id() -> None:
    table = RangeTable()
    table.apply(CreateTable((Partition(1, EVERYTHING, 1, "athens"),)))
    table.apply(ConfirmPartition(1))
    split = table.split_of(1, 1, "m", "size")
    assert split is not None
    table.apply(split)
    again = RangeTable()
    again.restore(table.state())
    assert (again.partitions, again.tasks, again.next_id) == (table.partitions, table.tasks, table.next_id)
    assert again.is_busy(2) and again.next_id == 3


@pytest.mark.rows("LWM-I4")
@pytest.mark.parametrize(("make", "fill"), [(store_of, fill_ranges), (host_of, fill_partitions)])
def test_the_disk_of_a_host_stays_bounded_however_much_is_written(
    make: Callable[[FakePorts, int], Any], fill: Callable[[Any, int], None]
) -> None:
    def disk_after(writes: int, every: int) -> int:
        ports = FakePorts()
        fill(make(ports, every), writes)
        return sum(len(ports.storage.read(file)) for file in ports.storage.files())

    # A log file is closed at 64 KiB, so the disk holds at most two of them, and two snapshots.
    assert disk_after(8_000, 500) < 140_000 < disk_after(8_000, WHOLE * 10)


def test_a_log_asks_for_a_snapshot_once_and_cuts_itself_below_the_older_one_that_it_keeps() -> None:
    storage = MemoryStorage()
    asked: list[int] = []
    log = CompactedLog(storage, 3, lambda: asked.append(log.last_index), segment_size_bytes_max=40)
    assert log.recover() == (None, [])
    for number in range(12):
        log.append(b"entry-%d" % number)
        log.flush()
        if number in (4, 8):
            log.compact(b"state-%d" % number)
    assert asked == [3, 8, 12]
    again = CompactedLog(storage, 3, lambda: None, segment_size_bytes_max=40)
    assert again.recover() == (b"state-8", [b"entry-9", b"entry-10", b"entry-11"])
    first = min(int(file.split("_")[1].split(".")[0]) for file in storage.files() if file.endswith(".log"))
    assert 1 < first <= 6
