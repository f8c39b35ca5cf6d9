"""Simulated disks that are full, read-only or stalled, and fsyncs that fail."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from faultline.harness.judge import judge
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Verdict
from faultline.harness.world.simulated.failing_disk import FailingDisk
from faultline.harness.world.simulated.page_cache import PageCacheDisk
from faultline.harness.world.simulated.storage import Disk, SimulatedDisk
from faultline.registry import resolve

DISKS = pytest.mark.parametrize("kind", [SimulatedDisk, PageCacheDisk])


def with_file(kind: Callable[[], Disk]) -> FailingDisk:
    """A disk with a file whose bytes and name are durable."""
    disk = FailingDisk(kind(), 7)
    disk.append("log", b"durable ")
    synced(disk)
    return disk


def synced(disk: FailingDisk) -> None:
    disk.want_sync("log")
    disk.want_folder_sync()
    disk.begin_sync().finish()


@DISKS
def test_a_full_disk_takes_a_part_of_a_write_and_refuses_it(kind) -> None:
    rooms = set()
    for size in range(20):
        disk = with_file(kind)
        disk.append("log", b"-" * size)
        before = disk.read("log")
        disk.strike("full")
        with pytest.raises(OSError, match="No space left") as refusal:
            disk.append("log", b"refused")
        assert refusal.value.errno == errno.ENOSPC
        taken = disk.read("log").removeprefix(before)
        assert b"refused".startswith(taken) and taken != b"refused"
        rooms.add(len(taken))
    assert {0, 6} < rooms


@DISKS
def test_a_full_disk_still_changes_names_and_serves_writes_once_there_is_room(kind) -> None:
    disk = with_file(kind)
    disk.strike("full")
    with pytest.raises(OSError, match="No space left"):
        disk.write("other", b"content")
    disk.delete("other")
    disk.truncate("log", 3)
    disk.rename("log", "old")
    disk.state = "well"
    disk.append("old", b"+")
    assert (disk.files(), disk.read("old")) == (["old"], b"dur+")


@DISKS
def test_a_read_only_disk_refuses_every_change_and_makes_none(kind) -> None:
    disk = with_file(kind)
    disk.strike("read-only")
    changes: tuple[Callable[[], None], ...] = (
        lambda: disk.append("log", b"+"),
        lambda: disk.write("log", b"+"),
        lambda: disk.truncate("log", 1),
        lambda: disk.rename("log", "new"),
        lambda: disk.delete("log"),
    )
    for change in changes:
        with pytest.raises(OSError, match="Read-only") as refusal:
            change()
        assert refusal.value.errno == errno.EROFS
    assert (disk.files(), disk.read("log")) == (["log"], b"durable ")


@pytest.mark.parametrize(("kind", "left"), [(SimulatedDisk, b"durable written"), (PageCacheDisk, b"durable ")])
def test_behind_a_page_cache_no_later_fsync_makes_durable_what_one_failed_to(kind, left: bytes) -> None:
    disk = with_file(kind)
    disk.append("log", b"written")
    disk.fail_syncs()
    with pytest.raises(OSError, match="Input/output error") as refusal:
        disk.want_sync("log")
    assert refusal.value.errno == errno.EIO
    disk.allow_syncs()
    assert disk.read("log") == b"durable written"
    synced(disk)
    disk.crash(1, 1)
    assert disk.read("log") == left


def test_bytes_that_a_failed_fsync_never_wrote_are_zeros_before_later_ones() -> None:
    disk = with_file(PageCacheDisk)
    disk.append("log", b"lost")
    disk.fail_syncs()
    with pytest.raises(OSError, match="Input/output error"):
        disk.want_sync("log")
    disk.allow_syncs()
    disk.append("log", b"kept")
    synced(disk)
    disk.crash(1, 1)
    assert disk.read("log") == b"durable \0\0\0\0kept"


@DISKS
def test_names_whose_sync_failed_are_synced_by_the_next(kind) -> None:
    disk = with_file(kind)
    disk.rename("log", "new")
    disk.fail_syncs()
    with pytest.raises(OSError, match="Input/output error"):
        disk.want_folder_sync()
    disk.allow_syncs()
    assert disk.want_folder_sync()
    disk.begin_sync().finish()
    disk.crash(1, 1)
    assert disk.files() == ["new"]


def carried_out(seed: int, *faults: str, planted_bugs: tuple[str, ...] = (), **weather: str) -> RunRecord:
    request = RunRequest(
        system="consistent-core", faults=faults, seed=seed, planted_bugs=planted_bugs, weather=weather, duration_s=4.0
    )
    parts = resolve(request)
    record = run_simulated(make_plan(request, parts), parts)
    assert record.errors == []
    assert judge(record, parts, run_id="disk").verdict is Verdict.PASS
    return record


@pytest.mark.parametrize("disk", ["journaled", "page-cache"])
def test_a_correct_system_keeps_its_promise_when_disks_fail(disk: str) -> None:
    marks: set[str] = set()
    for seed in range(12):
        marks |= carried_out(seed, "disk", disk=disk).marks.keys() | carried_out(seed, "fsync", disk=disk).marks.keys()
    assert {"disks-filled", "disks-read-only", "disks-stalled", "fsyncs-failed"} <= marks
