"""Freezing and squeezing by every means that this kernel has, on processes of the test's own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from namespace_fixtures import groups_named

from faultline.harness.world.hosts.agent.control_groups import ControlGroup, GroupError, Tree, find_trees
from faultline.harness.world.hosts.agent.freezing import Freezer, GroupFreezer, SignalFreezer, state_of
from faultline.harness.world.hosts.agent.limits import CpuSqueeze, MemorySqueeze
from faultline.harness.world.hosts.processes.supervisor import descendants

pytestmark = pytest.mark.real

NAME = f"faultline-test-{os.getpid()}/athens"
WORK = "import os\nos.fork()\nprint(1, flush=True)\nwhile True: pass"


def tree_of(controller: str, version: int) -> Tree | None:
    """The tree of one version alone, None where there is none."""
    kind = " - cgroup2 " if version == 2 else " - cgroup "
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if kind in line]
    return find_trees("\n".join(mounts), Path("/proc/self/cgroup").read_text()).get(controller)


def made(make: Callable[[ControlGroup], object], controller: str, version: int) -> object | None:
    """Return the limit that `make` makes of a group; None where the kernel or our rights allow no group."""
    tree = tree_of(controller, version)
    if tree is None:
        return None
    try:
        return make(ControlGroup(tree, NAME))
    except GroupError:
        return None


@pytest.fixture
def workers() -> Iterator[Callable[[], list[int]]]:
    """Two processes, a parent and its child, that do nothing but work; they are asked for by their numbers."""
    with subprocess.Popen([sys.executable, "-S", "-c", WORK], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        parent.stdout.readline()
        try:
            yield lambda: [parent.pid, *descendants(parent.pid)]
        finally:
            for pid in [*descendants(parent.pid), parent.pid]:
                os.kill(pid, 9)


def work_of(pids: list[int]) -> list[int]:
    """The processor time each has used, in the kernel's ticks."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return [int(of_one[11]) + int(of_one[12]) for of_one in fields]


def wait_for_work(workers: Callable[[], list[int]]) -> None:
    before = work_of(workers())
    while any(now <= then for now, then in zip(work_of(workers()), before, strict=True)):
        pass


@pytest.mark.parametrize("version", [2, 1, 0])
def test_frozen_processes_do_no_work_until_they_are_thawed(workers: Callable[[], list[int]], version: int) -> None:
    freezer = made(GroupFreezer, "freezer", version) if version else SignalFreezer()
    if freezer is None:
        return
    assert isinstance(freezer, Freezer)
    try:
        assert not freezer.is_frozen(workers)
        freezer.freeze(workers)
        assert freezer.is_frozen(workers)
        freezer.freeze(workers)
        before = work_of(workers())
        with subprocess.Popen([sys.executable, "-S", "-c", "for _ in range(3_000_000): pass"]) as meanwhile:
            meanwhile.wait()
        assert work_of(workers()) == before
        freezer.thaw(workers)
        assert not freezer.is_frozen(workers)
        wait_for_work(workers)
    finally:
        freezer.close()
    assert groups_named(Path(NAME).parent.name) == []
    assert all(state_of(pid) in "RS" for pid in workers())


@pytest.mark.parametrize("version", [2, 1])
def test_a_process_that_is_not_in_the_frozen_group_is_noticed(workers: Callable[[], list[int]], version: int) -> None:
    freezer = made(GroupFreezer, "freezer", version)
    if freezer is None:
        return
    assert isinstance(freezer, GroupFreezer)
    try:
        freezer.freeze(lambda: workers()[:1])
        assert freezer.is_frozen(lambda: workers()[:1]) and not freezer.is_frozen(workers)
        assert not freezer.is_frozen(list)
    finally:
        freezer.close()


@pytest.mark.parametrize("version", [2, 1])
def test_processes_get_their_share_of_a_processor_and_no_more(workers: Callable[[], list[int]], version: int) -> None:
    squeeze = made(CpuSqueeze, "cpu", version)
    if squeeze is None:
        return
    assert isinstance(squeeze, CpuSqueeze)
    try:
        assert squeeze.limit() == 0
        squeeze.squeeze(workers, 0.05)
        assert squeeze.limit() == 0.05
        assert squeeze._group.members() == set(workers())
        assert squeeze._group.count("cpu.stat", "nr_throttled") > 0
        squeeze.lift()
        assert squeeze.limit() == 0
        wait_for_work(workers)
    finally:
        squeeze.close()
    assert groups_named(Path(NAME).parent.name) == []


@pytest.mark.parametrize("version", [2, 1])
def test_a_process_that_takes_more_memory_than_is_left_is_killed_and_counted(version: int) -> None:
    squeeze = made(MemorySqueeze, "memory", version)
    if squeeze is None:
        return
    assert isinstance(squeeze, MemorySqueeze)
    eater = "import sys\nsys.stdin.readline()\nfor i in range(64): globals()[f'x{i}'] = b'x' * 2**20"
    try:
        assert squeeze.limit() == 0
        with subprocess.Popen([sys.executable, "-S", "-c", eater], stdin=subprocess.PIPE) as process:
            squeeze.squeeze(lambda: [process.pid], 4 * 2**20)
            assert squeeze.limit() > 0 and squeeze.killed() == 0 and process.poll() is None
            process.communicate(b"\n")
        assert process.returncode == -9 and squeeze.killed() == 1
        squeeze.lift()
        assert squeeze.limit() == 0
        with subprocess.Popen([sys.executable, "-S", "-c", eater], stdin=subprocess.PIPE) as process:
            squeeze.adopt(lambda: [process.pid])
            process.communicate(b"\n")
        assert process.returncode == 0
    finally:
        squeeze.close()
    assert groups_named(Path(NAME).parent.name) == []
