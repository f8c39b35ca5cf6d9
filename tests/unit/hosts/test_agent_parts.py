"""Parts of the agent that can be looked at without a host: trees of control groups, the real clock, its archive."""

from __future__ import annotations

import io
import sys
import zipfile
from pathlib import Path

import pytest

from faultline.harness.world.hosts.agent.clock_patch import PatchError
from faultline.harness.world.hosts.agent.control_groups import ControlGroup, GroupError, Tree, find_trees
from faultline.harness.world.hosts.agent.main import Agent
from faultline.harness.world.hosts.agent.member import Member
from faultline.harness.world.hosts.agent.member_clock import MemberClock
from faultline.harness.world.hosts.agent.real_clock import RealClock
from faultline.harness.world.hosts.processes.host_agent import agent_archive

BOTH = """\
31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct
33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
34 31 0:31 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer
35 31 0:32 / {folder} rw - cgroup2 cgroup2 rw
"""
GROUPS = "4:memory:/jobs/one\n3:cpu,cpuacct:/\n2:freezer:/\n0::/user.slice/session\n"


def test_the_trees_of_both_versions_are_found_and_our_own_place_in_each(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpuset pids\n")
    assert find_trees(BOTH.format(folder=tmp_path), GROUPS) == {
        "cpu": Tree("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu", 1),
        "memory": Tree("/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/jobs/one", 1),
        "freezer": Tree(str(tmp_path), f"{tmp_path}/user.slice/session", 2),
    }


def test_version_2_is_taken_where_it_has_the_controller(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu io memory\n")
    trees = find_trees(BOTH.format(folder=tmp_path), GROUPS)
    assert {tree.version for tree in trees.values()} == {2} and len(trees) == 3
    assert find_trees("", GROUPS) == {}


def test_a_mount_that_shows_only_a_part_of_the_tree_is_understood(tmp_path: Path) -> None:
    inside = f"35 31 0:32 /docker/ab {tmp_path} rw - cgroup2 cgroup2 rw\n"
    assert find_trees(inside, "0::/docker/ab/inner\n")["freezer"].own == f"{tmp_path}/inner"
    assert find_trees(inside, "0::/elsewhere\n")["freezer"].own == str(tmp_path)


def test_where_no_group_can_be_made_the_reason_is_told(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("a file, not a folder")
    tree = Tree(str(tmp_path / "own"), str(tmp_path / "own"), 1)
    with pytest.raises(GroupError, match=r"no control group can be made in .*: Not a directory"):
        ControlGroup(tree, "faultline-test/athens").make("cpu")
    with pytest.raises(GroupError, match="cannot be read: No such file"):
        ControlGroup(Tree(str(tmp_path), str(tmp_path), 1), "faultline-test/athens").read("cpu.stat")


class Machine:
    """A host whose clocks are numbers."""

    def __init__(self) -> None:
        self.wall_ns, self.monotonic_ns = 10**18, 10**12

    def clock(self) -> RealClock:
        def set_wall(ns: int) -> None:
            self.wall_ns = ns

        return RealClock(lambda: self.wall_ns, set_wall, lambda: self.monotonic_ns)

    def pass_ns(self, ns: int) -> None:
        self.wall_ns += ns
        self.monotonic_ns += ns


def test_the_real_clock_is_stepped_and_put_right_by_the_monotonic_one() -> None:
    machine = Machine()
    clock = machine.clock()
    clock.step(5_000)
    machine.pass_ns(70)
    clock.step(-8_000)
    assert machine.wall_ns == 10**18 + 70 - 3_000 and clock.view().wall_off_ns == -3_000
    machine.pass_ns(30)
    clock.reset()
    assert machine.wall_ns == 10**18 + 100 and clock.view().wall_off_ns == 0


def test_a_real_clock_that_was_not_stepped_is_not_set() -> None:
    machine = Machine()
    clock = machine.clock()
    machine.wall_ns += 7
    clock.reset()
    assert machine.wall_ns == 10**18 + 7 and not clock.in_use


def test_what_a_real_clock_cannot_do_is_refused() -> None:
    clock = Machine().clock()
    with pytest.raises(PatchError, match="does not drift"):
        clock.drift(1)
    with pytest.raises(PatchError, match="cannot be stepped"):
        clock.step(1, 1)

    def refuse(_ns: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    with pytest.raises(PatchError, match="cannot be set: Operation not permitted"):
        RealClock(set_ns=refuse).step(1)


def test_the_agent_answers_what_it_does_not_know_with_an_error(tmp_path: Path) -> None:
    member = Member(str(tmp_path / "node.pid"), supervisor=True)
    agent = Agent(member, "faultline-test/unused", MemberClock(member))
    assert member.processes() == []
    assert agent.perform({"do": "explode"}) == {"error": "that is no question this agent knows"}
    assert agent.perform({"do": "drift", "rate_ppm": 10**9})["error"].startswith("clocks drift by -900000 to")
    assert agent.perform({"do": "step", "wall_ns": 10**9}) == {"answer": None}
    answer = agent.perform({"do": "clock"})["answer"]
    assert answer == {"wall_off_ns": 10**9, "monotonic_off_ns": 0, "rate_ppm": 0}
    assert agent.look_after() is not None
    agent.close()


def test_the_archive_needs_nothing_but_itself_and_the_standard_library() -> None:
    with zipfile.ZipFile(io.BytesIO(agent_archive())) as archive:
        names = set(archive.namelist())
        text = {name: archive.read(name).decode() for name in names}
    assert "__main__.py" in names and text["faultline/harness/world/hosts/__init__.py"] == ""
    for name, source in text.items():
        for line in source.splitlines():
            words = line.split()
            if line.startswith(("import ", "from ")):
                top, path = words[1].partition(".")[0], words[1].replace(".", "/")
                assert top in sys.stdlib_module_names or f"{path}.py" in names, f"{name}: {line}"
