"""`doctor --clean`: what a killed supervisor could not take along is found and removed, and nothing that is in use."""

from __future__ import annotations

import os
import select
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from namespace_fixtures import groups_named, on_namespaces, other_harness

from faultline.cli.main import perform
from faultline.harness.errors import UsageError
from faultline.harness.world.hosts.machines import leftovers
from faultline.harness.world.hosts.machines.leftovers import leftovers_here, leftovers_on
from faultline.harness.world.hosts.namespaces.host_set import NamespaceHosts
from faultline.harness.world.hosts.namespaces.supervisor import SETS
from faultline.harness.world.hosts.processes.host_agent import HostAgent

pytestmark = pytest.mark.real


def processes_that_name(text: str) -> list[int]:
    """The numbers of the processes that have `text` in their command lines."""
    found = []
    for command_line in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found += [int(command_line.parent.name)] * (text.encode() in command_line.read_bytes())
    return found


def mentions(name: str) -> list[str]:
    return [leftover.what for leftover in leftovers_here() if name in leftover.what]


@on_namespaces
def test_what_a_killed_supervisor_leaves_is_removed_and_a_set_in_use_is_not(
    hosts: NamespaceHosts, capsys: pytest.CaptureFixture[str]
) -> None:
    with other_harness() as other:
        other.kill_with_its_supervisor()
    folder = other.folder
    # The kernel ends the set's last processes on its own time; until then it counts as in use.
    while folder.name in set(leftovers._living_sets()):
        os.sched_yield()
    assert folder.exists() and mentions(folder.name)
    assert not mentions(hosts.supervisor.folder.name)
    assert perform(["doctor", "--clean"]) == 0
    assert f"removed the folder {folder}" in capsys.readouterr().out
    assert not folder.exists() and not mentions(folder.name)
    assert hosts.fleet["n1"].run("hostname").text == "n1"
    assert hosts.supervisor.folder.exists()


@on_namespaces
def test_the_groups_disks_and_folder_of_a_set_whose_maker_is_gone_are_left(hosts: NamespaceHosts) -> None:
    dead = Path(f"/tmp/{SETS}0-test")
    group = next(iter(sorted(Path("/sys/fs/cgroup").glob("freezer"))), Path("/sys/fs/cgroup")) / dead.name
    dead.mkdir()
    (dead / "image").write_bytes(bytes(1 << 20))
    shared = Path(f"/dev/shm/sem.{dead.name}-n1-athens")
    shared.touch()
    expected = [f"the shared memory {shared}", f"the folder {dead}"]
    disk = subprocess.run(["losetup", "-f", "--show", str(dead / "image")], capture_output=True, text=True, check=False)
    with suppress(OSError):
        group.mkdir()
        expected.insert(0, f"the control group {group}")
    if disk.returncode == 0:
        expected.insert(0, f"the loop device {disk.stdout.strip()} of {dead / 'image'}")
    found = [leftover for leftover in leftovers_here() if dead.name in leftover.what]
    for leftover in found:
        leftover.remove()
    assert [leftover.what for leftover in found] == expected
    assert not mentions(dead.name) and not dead.exists() and not group.exists()
    assert not mentions(hosts.supervisor.folder.name)


@on_namespaces
def test_a_frozen_disk_of_a_dead_set_is_thawed_and_a_process_that_hangs_in_it_ends(
    hosts: NamespaceHosts, capsys: pytest.CaptureFixture[str]
) -> None:
    """The probe that hangs has the set's folder in its command line, and the set is dead all the same."""
    if hosts.disks.refusal():
        return
    freeze = (
        "hosts.disks.attach('n1', hosts.hosts[0].folder)",
        "hosts.disks.strike('n1', 'stalled')",
        "said = hosts.disks.state('n1')",
    )
    with other_harness(*freeze) as other:
        assert other.said == "stalled"
        other.kill_with_its_supervisor()
    folder = other.folder
    hanging = processes_that_name(str(folder))
    assert hanging, "the probe hangs in its write"
    ends = [os.pidfd_open(pid) for pid in hanging]
    told = mentions(folder.name)
    assert any("loop device" in what for what in told) and f"the folder {folder}" in told
    assert perform(["doctor", "--clean"]) == 0
    assert f"removed the folder {folder}" in capsys.readouterr().out
    for end in ends:
        assert select.select([end], [], [], 20)[0], "what hung in the frozen disk has not ended"
        os.close(end)
    assert not mentions(folder.name) and not folder.exists()


@on_namespaces
def test_on_a_host_our_table_and_our_stopped_processes_are_leftovers_and_others_are_not(hosts: NamespaceHosts) -> None:
    connection = hosts.fleet["n1"]
    work = f"{connection.host.folder}/athens"
    connection.run(f"mkdir -p {work}")
    # Each shell stops itself, so that the test need not wait for a signal to arrive.
    start = "sh -c 'echo $$; kill -STOP $$' >{folder}/pid 2>/dev/null </dev/null &"
    ours, foreign = (
        connection.run(
            f"cd {folder} && {start.format(folder=folder)} while [ ! -s {folder}/pid ]; do :; done; cat {folder}/pid"
        ).text
        for folder in (work, "/var")
    )
    while connection.run(f"grep -c '^State:.T' /proc/{ours}/status", check=False).text != "1":
        os.sched_yield()
    has_nft = not hosts.links.refusal
    if has_nft:
        connection.run(
            "PATH=$PATH:/usr/sbin nft 'table ip faultline { }'; PATH=$PATH:/usr/sbin nft 'table ip other { }'"
        )
    found = leftovers_on(connection)
    assert [left.what for left in found] == [
        *(["n1: the firewall table faultline"] if has_nft else []),
        f"n1: the stopped process {ours}",
    ]
    for left in found:
        left.remove()
    assert leftovers_on(connection) == []
    connection.run(f"kill -KILL {foreign}")
    if has_nft:
        assert connection.run("PATH=$PATH:/usr/sbin nft list tables").text == "table ip other"


@on_namespaces
def test_groups_of_a_killed_agent_are_leftovers_and_those_of_one_that_lives_are_not(hosts: NamespaceHosts) -> None:
    connection = hosts.fleet["n1"]
    set_name = f"faultline-ssh-{os.getpid()}"
    agent = HostAgent(connection, f"{connection.host.folder}/athens", "athens", set_name, is_store=True)
    try:
        if "control group" not in agent.ask("examine")["means"]:
            return
        assert [left for left in leftovers_on(connection) if set_name in left.what] == []
        connection.run("kill -KILL $(grep -lz '[a]thens[.]agent' /proc/[0-9]*/cmdline | cut -d/ -f3 | head -n 1)")
        agent._program.channel.status_event.wait(10)
        left = [left for left in leftovers_on(connection) if set_name in left.what]
        assert left and groups_named(set_name)
        for each in left:
            each.remove()
        assert groups_named(set_name) == []
    finally:
        agent.close()


def test_hosts_that_are_made_for_a_run_have_nothing_to_clean() -> None:
    with pytest.raises(UsageError, match="made anew for each run"):
        perform(["doctor", "--clean", "--hosts", "namespaces:3"])
