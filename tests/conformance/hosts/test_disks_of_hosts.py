"""Disks of hosts' own: they lose what was not synced when power goes, take no writes when struck, and leave nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from disk_fixtures import images_in_use, with_disks
from namespace_fixtures import on_namespaces, opened, other_harness

from faultline.harness.errors import HarnessError
from faultline.harness.world.hosts.namespaces.disk import HostDisk
from faultline.harness.world.hosts.namespaces.host_set import NamespaceHosts
from faultline.harness.world.hosts.storage.disks import NoDisks

pytestmark = [pytest.mark.real, pytest.mark.slow]


def data_of(hosts: NamespaceHosts, name: str) -> str:
    folder = next(host.folder for host in hosts.hosts if host.name == name)
    return f"{folder}/athens/data"


@pytest.fixture(autouse=True)
def disks(hosts: NamespaceHosts | HarnessError) -> Iterator[None]:
    """A disk for each of the first two hosts."""
    if isinstance(hosts, HarnessError) or hosts.disks.refusal():
        yield
        return
    for host in hosts.hosts[:2]:
        hosts.fleet[host.name].run(f"mkdir -p {host.folder}/athens")
        hosts.disks.attach(host.name, f"{host.folder}/athens")
    yield
    for host in hosts.hosts[:2]:
        hosts.disks.detach(host.name)
    assert images_in_use(hosts.supervisor.folder) == []


@on_namespaces
@with_disks
def test_what_was_synced_survives_the_loss_of_power_and_what_was_not_does_not(hosts: NamespaceHosts) -> None:
    for name in ("n1", "n2"):
        data = data_of(hosts, name)
        assert hosts.fleet[name].run(f"ls -A {data}").text == ""
        hosts.fleet[name].run(f"cd {data}; echo kept >synced; sync synced; echo lost >unsynced; echo more >>synced")
        hosts.fleet[name].run("setsid sleep 1000 >/dev/null 2>&1 </dev/null & true")
    hosts.disks.power_off(["n1", "n2"])
    assert [hosts.disks.has_power(name) for name in ("n1", "n2", "n3")] == [False, False, True]
    assert images_in_use(hosts.supervisor.folder) == []
    for name in ("n1", "n2"):
        hosts.disks.power_on(name)
        assert hosts.disks.has_power(name)
        data = data_of(hosts, name)
        assert hosts.fleet[name].run(f"ls -A {data}; cat {data}/synced").text.split() == ["synced", "kept"]
        assert hosts.fleet[name].run("grep -l '^sleep' /proc/[0-9]*/comm", check=False).text == ""


@on_namespaces
@with_disks
def test_a_kill_loses_nothing_and_power_can_fail_again(hosts: NamespaceHosts) -> None:
    data = data_of(hosts, "n1")
    hosts.fleet["n1"].run(f"sh -c 'echo written >{data}/unsynced; kill -KILL $$'", check=False)
    assert hosts.fleet["n1"].run(f"cat {data}/unsynced").text == "written"
    for _ in range(2):
        hosts.disks.power_off(["n1"])
        hosts.disks.power_on("n1")
        assert hosts.fleet["n1"].run(f"ls -A {data}").text == ""
        hosts.fleet["n1"].run(f"echo again >{data}/unsynced")


@on_namespaces
@with_disks
def test_what_a_flush_wrote_down_survives(hosts: NamespaceHosts) -> None:
    data = data_of(hosts, "n1")
    hosts.fleet["n1"].run(f"echo flushed >{data}/unsynced")
    hosts.disks.flush("n1")
    hosts.disks.power_off(["n1"])
    hosts.disks.power_on("n1")
    assert hosts.fleet["n1"].run(f"cat {data}/unsynced").text == "flushed"


@on_namespaces
@with_disks
def test_a_cut_that_does_not_cut_is_told(hosts: NamespaceHosts, monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr("fcntl.ioctl", lambda *_: 0)
    with pytest.raises(HarnessError, match="still takes writes after its power was cut"):
        hosts.disks.power_off(["n1"])
    assert hosts.disks.has_power("n1")


@on_namespaces
@with_disks
def test_a_disk_that_kept_or_lost_the_wrong_thing_is_told(
    hosts: NamespaceHosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts.disks.power_off(["n1"])
    monkeypatch.setattr("faultline.harness.world.hosts.namespaces.disk._UNSYNCED", "canary.synced")
    with pytest.raises(HarnessError, match="kept what was not synced"):
        hosts.disks.power_on("n1")
    monkeypatch.undo()
    hosts.disks.power_off(["n1"])
    monkeypatch.setattr("faultline.harness.world.hosts.namespaces.disk._SYNCED", "canary.unsynced")
    with pytest.raises(HarnessError, match="lost what was synced"):
        hosts.disks.power_on("n1")


@on_namespaces
@with_disks
def test_a_full_disk_says_that_there_is_no_room_and_serves_again(hosts: NamespaceHosts) -> None:
    write = f"dd if=/dev/zero of={data_of(hosts, 'n1')}/file bs=1M count=1"
    hosts.disks.strike("n1", "full")
    refused = hosts.fleet["n1"].run(write, check=False)
    assert refused.exit_code and b"No space left on device" in refused.stderr
    assert (hosts.disks.state("n1"), hosts.disks.state("n2")) == ("full", "well")
    hosts.disks.mend("n1")
    assert hosts.disks.state("n1") == "well" and hosts.fleet["n1"].run(write).exit_code == 0


@on_namespaces
@with_disks
def test_a_disk_turns_read_only_under_an_open_file_and_is_mended_with_what_was_synced(hosts: NamespaceHosts) -> None:
    data = data_of(hosts, "n1")
    hosts.fleet["n1"].run(f"echo kept >{data}/file; sync {data}/file")
    writer = hosts.fleet["n1"].open(f"exec >>{data}/file; echo open >&2; read go; /bin/echo more")
    assert writer.recv_stderr(5) == b"open\n"
    hosts.disks.strike("n1", "read-only")
    assert hosts.disks.state("n1") == "read-only"
    writer.sendall(b"go\n")
    assert b"Read-only file system" in writer.makefile_stderr("rb").read()
    assert writer.recv_exit_status() != 0, "only then has it let go of all its files"
    writer.close()
    hosts.disks.mend("n1")
    assert hosts.disks.state("n1") == "well"
    assert hosts.fleet["n1"].run(f"echo new >>{data}/file; cat {data}/file").text == "kept\nnew"


@on_namespaces
@with_disks
def test_who_writes_to_a_stalled_disk_hangs_until_it_is_mended(hosts: NamespaceHosts) -> None:
    data = data_of(hosts, "n1")
    hosts.disks.strike("n1", "stalled")
    writer = hosts.fleet["n1"].open(f"echo $$; echo waited >{data}/file; echo done")
    pid = writer.recv(64).decode().strip()
    state = f"until grep -q '^State:.D' /proc/{pid}/status; do sleep 0.01; done"
    hosts.fleet["n1"].run(state)
    assert hosts.disks.state("n1") == "stalled" and not writer.recv_ready()
    hosts.disks.mend("n1")
    assert writer.makefile("rb").read() == b"done\n"
    writer.close()
    assert hosts.disks.state("n1") == "well" and hosts.fleet["n1"].run(f"cat {data}/file").text == "waited"


@pytest.mark.parametrize("state", ["well", "stalled"])
def test_no_disk_outlives_a_harness_that_is_killed(state: str) -> None:
    probe = opened(1)
    if isinstance(probe, HarnessError):
        assert probe.next_step
        return
    refusal = probe.disks.refusal()
    probe.close()
    if refusal:
        return
    with other_harness(
        "folder = hosts.hosts[0].folder + '/athens'",
        "hosts.fleet['n1'].run(f'mkdir -p {folder}')",
        "hosts.disks.attach('n1', folder)",
        f"state = {state!r}",
        "if state != 'well': hosts.disks.strike('n1', state)",
        "hosts.fleet['n1'].run(f'setsid sh -c \"echo x >{folder}/data/x; sleep 1000\" >/dev/null 2>&1 </dev/null &')",
        "assert hosts.disks.state('n1') == state",
    ) as other:
        other.kill()
    assert not other.folder.exists()
    wait_until_free(other.folder)


def wait_until_free(folder: Path) -> None:
    """The kernel clears a loop device away a moment after the last mount; no path leads to it any more."""
    disk = HostDisk(folder / "n1" / "disk.img", "", lambda: Path("/proc/self"))
    disk.wait_until_released()
    assert images_in_use(folder) == []


def test_hosts_without_disks_of_their_own_refuse_by_name() -> None:
    none = NoDisks("only hosts of namespaces have them")
    for action in (
        lambda: none.attach("n1", "/x"),
        lambda: none.power_off(["n1"]),
        lambda: none.strike("n1", "full"),
        lambda: none.flush("n1"),
    ):
        with pytest.raises(HarnessError, match="no disks of their own: only hosts of namespaces") as refused:
            action()
        assert "Leave power-off and disk faults out" in refused.value.next_step
    assert none.has_power("n1") and none.state("n1") == "well"
