"""Simulated disks that damage data: what a process meets, what is put back, and how nodes and their clients bear it."""

from __future__ import annotations

from collections import Counter
from typing import cast

import pytest

from faultline.harness.judge import judge
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.system import NodeSystem
from faultline.harness.verdict import Verdict
from faultline.harness.world.ports import NodeId
from faultline.harness.world.simulated.failing_disk import FailingDisk
from faultline.harness.world.simulated.latent_damage import UNIT_BYTES, Damage
from faultline.harness.world.simulated.page_cache import PageCacheDisk
from faultline.harness.world.simulated.storage import SimulatedDisk
from faultline.harness.world.simulated.world import SimulatedWorld
from faultline.harness.world.weather import salt
from faultline.registry import resolve

DISKS = pytest.mark.parametrize("kind", [SimulatedDisk, PageCacheDisk])
CONTENT = bytes(range(1, 251))


def holding(kind, **files: bytes) -> FailingDisk:
    disk = FailingDisk(kind(), 7)
    for name, content in files.items():
        disk.append(name, content)
        disk.want_sync(name)
    disk.want_folder_sync()
    disk.begin_sync().finish()
    return disk


def damaged(kind, damage: Damage, seed: int, **files: bytes) -> FailingDisk:
    disk = holding(kind, **files)
    disk.damage_data(damage, seed, 1)
    disk.begin_process()
    return disk


@DISKS
def test_a_corrupt_disk_changes_one_byte_anywhere(kind) -> None:
    places = Counter[int]()
    for seed in range(400):
        seen = damaged(kind, "corrupt", seed, log=CONTENT).read("log")
        changed = [place for place, (one, other) in enumerate(zip(seen, CONTENT, strict=True)) if one != other]
        assert len(changed) == 1 and seen[changed[0]] != 0
        places.update(changed)
    assert len(places) > 150 and {place // UNIT_BYTES for place in places} == {0, 1, 2, 3}


@DISKS
def test_a_lost_write_reads_as_a_unit_of_zeros(kind) -> None:
    for seed in range(40):
        seen = damaged(kind, "lost", seed, log=CONTENT).read("log")
        lost = [number for number, byte in enumerate(seen) if byte == 0]
        assert lost == list(range(lost[0], min(lost[0] + UNIT_BYTES, len(CONTENT)))) and lost[0] % UNIT_BYTES == 0
        assert all(seen[place] == CONTENT[place] for place in range(len(CONTENT)) if place not in lost)


@DISKS
def test_a_misdirected_write_stands_in_the_place_of_other_data(kind) -> None:
    elsewhere = 0
    for seed in range(60):
        disk = damaged(kind, "misdirected", seed, a=b"a" * UNIT_BYTES, b=b"b" * UNIT_BYTES)
        seen = {disk.read("a")[:1], disk.read("b")[:1]}
        assert b"\0" in seen
        elsewhere += disk.read("a")[:1] == b"b" or disk.read("b")[:1] == b"a"
    assert 10 < elsewhere < 50


@DISKS
def test_the_process_that_runs_goes_on_with_what_it_has_in_memory(kind) -> None:
    disk = holding(kind, log=CONTENT)
    disk.damage_data("corrupt", 3, 1)
    assert (disk.read("log"), disk.struck) == (CONTENT, True)
    disk.begin_process()
    assert disk.read("log") != CONTENT


@DISKS
def test_a_mended_disk_holds_what_was_written(kind) -> None:
    disk = damaged(kind, "lost", 3, log=CONTENT)
    disk.append("log", b"more")
    disk.damage.mend()
    assert (disk.read("log"), bool(disk.damage)) == (CONTENT + b"more", False)


@DISKS
def test_what_is_written_over_damage_is_well(kind) -> None:
    for change in ("write", "truncate", "delete", "replace"):
        disk = damaged(kind, "lost", 3, log=CONTENT, other=b"")
        if change == "write":
            disk.write("log", CONTENT)
        elif change == "truncate":
            disk.truncate("log", 0)
            disk.append("log", CONTENT)
        elif change == "delete":
            disk.delete("log")
            disk.append("log", CONTENT)
        else:
            disk.write("other", CONTENT)
            disk.rename("other", "log")
        assert disk.read("log") == CONTENT, change


@DISKS
def test_damage_follows_its_file_to_another_name(kind) -> None:
    disk = damaged(kind, "corrupt", 3, log=CONTENT)
    seen = disk.read("log")
    disk.rename("log", "old")
    assert disk.read("old") == seen != CONTENT


@DISKS
def test_damage_of_an_empty_disk_waits_for_the_process_that_finds_something_stored(kind) -> None:
    disk = FailingDisk(kind(), 7)
    disk.damage_data("corrupt", 3, 1)
    disk.begin_process()
    disk.append("log", CONTENT)
    assert disk.damage and disk.read("log") == CONTENT
    disk.begin_process()
    assert sum(one != other for one, other in zip(disk.read("log"), CONTENT, strict=True)) == 1
    disk.damage.mend()
    assert not disk.damage and disk.read("log") == CONTENT


@DISKS
def test_what_a_lying_fsync_answered_is_lost_with_the_power_and_durable_once_it_is_mended(kind) -> None:
    left = Counter[bytes]()
    for mended in (False, True):
        for now_us in range(40):
            disk = holding(kind, log=b"durable ")
            disk.lie_about_syncs()
            disk.append("log", b"answered")
            disk.want_sync("log")
            disk.begin_sync().finish()
            if mended:
                disk.sync_in_truth()
                assert not disk.syncs_lie
            disk.crash(salt(now_us, "disk"), now_us)
            content = disk.read("log")
            assert content.startswith(b"durable ") and (content == b"durable answered" or not mended)
            left[content] += 1
    assert left[b"durable "] > 5


def test_a_killed_process_behind_a_page_cache_loses_nothing_by_a_lying_fsync() -> None:
    disk = holding(PageCacheDisk, log=b"durable ")
    disk.lie_about_syncs()
    for data in (b"answered ", b"too"):
        disk.append("log", data)
        disk.want_sync("log")
        disk.begin_sync().finish()
    disk.crash(5, 5, process_only=True)
    assert disk.read("log") == b"durable answered too"


def world_of(**request) -> SimulatedWorld:
    asked = RunRequest(system="consistent-core", duration_s=1.0, faults=(), **request)
    parts = resolve(asked)
    world = SimulatedWorld(make_plan(asked, parts), cast("NodeSystem", parts.system), [])
    world.boot()
    world.scheduler.run(1_000_000)
    return world


def test_a_node_that_ends_of_changed_data_is_no_finding_and_runs_again_when_they_are_put_back() -> None:
    world = world_of()
    port, athens = world.fault_port, NodeId("athens")
    corrupt, kill = port.actuator("disk-corrupt"), port.actuator("kill")
    corrupt.strike([athens], True)
    assert corrupt.probe([athens]) == {athens: True} and athens in port.nodes_up()
    kill.strike([athens], True)
    kill.mend([athens])
    assert (athens in port.nodes_up(), world.trace.breaches()) == (False, [])
    corrupt.mend([athens])
    assert corrupt.probe([athens]) == {athens: False} and athens in port.nodes_up()


def test_a_node_that_another_fault_keeps_down_is_not_started_when_its_data_are_put_back() -> None:
    port, athens = world_of().fault_port, NodeId("athens")
    port.actuator("disk-corrupt").strike([athens], True)
    port.actuator("kill").strike([athens], True)
    port.actuator("disk-corrupt").mend([athens])
    assert athens not in port.nodes_up()


@pytest.mark.parametrize("disk", ["journaled", "page-cache"])
def test_a_correct_system_keeps_its_promise_when_stored_data_change(disk: str) -> None:
    marks = Counter[str]()
    for seed in range(12):
        request = RunRequest(
            system="consistent-core", workload="append", faults=("corruption",), seed=seed, weather={"disk": disk}
        )
        parts = resolve(request)
        record = run_simulated(make_plan(request, parts), parts)
        assert record.errors == []
        assert judge(record, parts, run_id="damage").verdict is Verdict.PASS
        marks.update(record.marks.keys())
    assert marks["data-corrupted"] > 5
