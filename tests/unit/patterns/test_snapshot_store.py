"""Snapshots on disk: what a crash leaves, what damage is refused, and what a snapshot is worth without its file."""

from __future__ import annotations

from contextlib import suppress

import pytest

from faultline.systems_under_test.patterns.data_replication.snapshot_store import (
    CorruptSnapshot,
    ForeignSnapshot,
    FutureSnapshotVersion,
    Snapshot,
    SnapshotStore,
    UnusableSnapshot,
    decode_snapshot,
    encode_snapshot,
)
from faultline.testing.memory_storage import Crash, Failure, MemoryStorage, keep_all, keep_names_only, keep_nothing

OLD = Snapshot(10, 1, b"the old state")
NEW = Snapshot(20, 2, b"the new state")


def store(storage: MemoryStorage, retained: int = 2) -> SnapshotStore:
    snapshots = SnapshotStore(storage, retained=retained)
    snapshots.recover()
    return snapshots


def with_snapshots(*snapshots: Snapshot) -> MemoryStorage:
    storage = MemoryStorage()
    kept = store(storage)
    for snapshot in snapshots:
        kept.publish(snapshot)
    storage.crash(keep_nothing)
    return storage


def test_without_a_file_there_is_no_snapshot() -> None:
    assert store(MemoryStorage()).newest is None


@pytest.mark.rows("LWM-R6", "LWM-R8")
def test_a_published_snapshot_is_there_after_a_crash() -> None:
    recovered = store(with_snapshots(OLD, NEW))
    assert recovered.newest == NEW
    assert recovered.indexes == (10, 20)


@pytest.mark.rows("LWM-R6", "LWM-S1")
@pytest.mark.parametrize("keep", [keep_nothing, keep_all, keep_names_only()])
@pytest.mark.parametrize("steps", range(5))
def test_a_crash_at_any_step_of_publishing_leaves_the_old_snapshot_or_the_new_one_whole(keep, steps: int) -> None:
    storage = with_snapshots(OLD)
    snapshots = store(storage)
    storage.effects_max = steps
    with suppress(Crash):
        snapshots.publish(NEW)
    storage.crash(keep)
    assert store(storage).newest in ([OLD, NEW] if steps >= 3 else [OLD])


@pytest.mark.rows("LWM-R6")
def test_the_mark_moves_only_when_as_many_snapshots_are_on_disk_as_are_retained() -> None:
    snapshots = store(MemoryStorage())
    marks = []
    for index in (10, 20, 30):
        snapshots.publish(Snapshot(index, 1, b""))
        marks.append(snapshots.low_water_mark)
    assert marks == [0, 10, 20]


def test_only_as_many_snapshots_are_kept_as_asked_for() -> None:
    storage = MemoryStorage()
    snapshots = store(storage, retained=1)
    for index in (10, 20, 30):
        snapshots.publish(Snapshot(index, 1, b""))
    assert storage.files() == ["snapshot_30.snap"]
    assert snapshots.low_water_mark == 30


@pytest.mark.parametrize("size", range(len(encode_snapshot(NEW))))
def test_a_snapshot_that_was_cut_short_is_corrupt_at_every_length(size: int) -> None:
    with pytest.raises(CorruptSnapshot):
        decode_snapshot(encode_snapshot(NEW)[:size], "snapshot_20.snap")


@pytest.mark.parametrize("position", range(8, len(encode_snapshot(NEW))))
def test_every_changed_bit_behind_the_header_is_noticed(position: int) -> None:
    data = bytearray(encode_snapshot(NEW))
    data[position] ^= 1 << position % 8
    with pytest.raises(CorruptSnapshot):
        decode_snapshot(bytes(data), "snapshot_20.snap")


@pytest.mark.rows("LWM-R8")
def test_a_damaged_newest_snapshot_is_replaced_by_the_older_one_and_the_log() -> None:
    storage = with_snapshots(OLD, NEW)
    storage.damage("snapshot_20.snap", 40)
    recovered = store(storage)
    assert recovered.newest == OLD
    recovered.require_reach(25)
    assert storage.files() == ["snapshot_10.snap", "snapshot_20.snap"]


@pytest.mark.rows("LWM-R8")
def test_a_damaged_snapshot_that_the_log_does_not_cover_is_not_forgotten() -> None:
    storage = with_snapshots(OLD, NEW)
    storage.damage("snapshot_20.snap", 40)
    with pytest.raises(CorruptSnapshot, match="up to entry 19 only.*join anew"):
        store(storage).require_reach(19)


def test_a_snapshot_under_another_ones_name_is_corrupt() -> None:
    storage = with_snapshots(OLD)
    storage.put("snapshot_30.snap", storage.read("snapshot_10.snap"))
    with pytest.raises(CorruptSnapshot, match="holds the snapshot of entry 10"):
        store(storage).require_reach(29)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"PK\x03\x04 some archive", ForeignSnapshot),
        (b"FLTLOG\x00\x01 a log, renamed", ForeignSnapshot),
        (b"FLTSNP\x00\x02 what comes next year", FutureSnapshotVersion),
        (b"FLTSNP\xff\xff", FutureSnapshotVersion),
    ],
)
def test_foreign_and_future_files_are_named_and_left_alone(content: bytes, error: type[Exception]) -> None:
    storage = with_snapshots(OLD)
    storage.put("snapshot_20.snap", content)
    with pytest.raises(error, match="Nothing was changed"):
        store(storage)
    assert storage.read("snapshot_20.snap") == content


@pytest.mark.parametrize("file", ["snapshot_.snap", "snapshot_x.snap", "snapshot_07.snap", "snapshot.new", "notes"])
def test_files_of_other_names_are_no_snapshots(file: str) -> None:
    storage = with_snapshots(OLD)
    storage.put(file, b"something else")
    assert store(storage).indexes == (10,)
    assert storage.read(file) == b"something else"


@pytest.mark.parametrize("operation", ["write", "fsync", "rename"])
def test_a_disk_that_refuses_leaves_the_mark_and_the_old_snapshot(operation: str) -> None:
    storage = with_snapshots(OLD)
    snapshots = store(storage)
    storage.failing = operation
    with pytest.raises(Failure):
        snapshots.publish(NEW)
    assert (snapshots.newest, snapshots.low_water_mark) == (OLD, 0)
    storage.crash(keep_all)
    assert store(storage).newest == OLD


def test_a_snapshot_that_does_not_read_back_is_not_published() -> None:
    class Forgetful(MemoryStorage):
        def write(self, file: str, data: bytes) -> None:
            super().write(file, data[:-1])

    storage = Forgetful()
    with pytest.raises(CorruptSnapshot):
        store(storage).publish(NEW)
    assert storage.files() == ["snapshot.new"]


def test_snapshots_below_a_log_that_was_restarted_are_removed() -> None:
    storage = with_snapshots(OLD, NEW)
    snapshots = store(storage)
    snapshots.drop_before(20)
    assert (snapshots.indexes, snapshots.low_water_mark) == ((20,), 20)
    assert storage.files() == ["snapshot_20.snap"]


def test_at_least_one_snapshot_is_retained() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        SnapshotStore(MemoryStorage(), retained=0)


def test_a_snapshot_of_zero_entries_is_never_looked_for() -> None:
    storage = MemoryStorage()
    storage.put("snapshot_0.snap", b"")
    assert store(storage).newest is None


def test_the_format_is_the_one_in_the_repository() -> None:
    """Version 1, byte for byte: a change of the format must change the version."""
    golden = "464c54534e500001 0000000000000014 0000000000000002 0000000000000001 ef29e363 61"
    assert encode_snapshot(Snapshot(20, 2, b"a")) == bytes.fromhex(golden)


@pytest.mark.parametrize("content", [b"FLTSNP\x00\x02", b"nonsense, and more of it"])
def test_all_reasons_not_to_use_a_snapshot_are_of_one_kind(content: bytes) -> None:
    with pytest.raises(UnusableSnapshot):
        decode_snapshot(content, "snapshot_1.snap")
