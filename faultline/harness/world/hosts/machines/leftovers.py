"""Leftovers of aborted runs, found and removed: only things that Faultline made, and never one that is in use.

A run cleans up after itself however it ends, since the supervisor of its hosts does that (`namespaces/supervisor.sh`).
Left is something only when the supervisor itself was killed, or the machine lost power: the set's folder, loop devices
of disks in it, control groups and shared memory named after it, and for a moment its link. A set is in use while the
harness that made it runs, whose number is in its name, or its supervisor, which has its folder in its command line.
Others that have it there, as the probe of a frozen disk that hangs in a write, are left over themselves: they end when
the disk is thawed.

On machines over SSH a broken connection leaves the table of our firewall rules, and nodes that were stopped when it
broke; an agent that was killed there leaves its control groups, and what libfaketime shares.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from faultline.harness.world.hosts.namespaces.supervisor import SETS

if TYPE_CHECKING:
    from faultline.harness.world.hosts.machines.connection import Connection

__all__ = ["Leftover", "leftovers_here", "leftovers_on"]

_SETS_FOLDER = Path("/tmp")
_LINK = re.compile(r"faultline(\d+)m?")
_TABLES = ("faultline", "faultline_loss", "faultline_resets")
_GROUPS = Path("/sys/fs/cgroup")
_SUPERVISOR = b"/supervisor.sh"
_FROZEN_NOTE = "frozen"
"""Stands beside the image of a disk that is frozen."""
# The agent of a group that is in use has its name in its command line.
_GROUPS_WITHOUT_OWNER = (
    "find /sys/fs/cgroup -type d \\( -name 'faultline-ssh-*' -o -name 'faultline-doctor-*' \\) | while read -r g; do "
    'grep -qls -- "${g##*/}/" /proc/[0-9]*/cmdline || echo "$g"; done 2>/dev/null; true'
)
"""A command that prints the control groups of runs over SSH whose agent is gone."""
_SHARED_WITHOUT_OWNER = (
    "for f in /dev/shm/*faultline-ssh-*; do s=faultline-ssh-${f#*faultline-ssh-}; s=$(echo $s | cut -d- -f1-3); "
    '[ -e "$f" ] && { grep -qls -- "$s/" /proc/[0-9]*/cmdline || echo "$f"; }; done 2>/dev/null; true'
)
"""A command that prints what libfaketime shared in runs over SSH whose agent is gone."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """One thing that is left: `what` it is, for people, and how it is removed. `remove` may raise OSError."""

    what: str
    remove: Callable[[], object]


def leftovers_here() -> list[Leftover]:
    """Return the leftovers on this machine, in the order in which they can be removed."""
    living = frozenset(_living_sets())
    # What hangs in a write to a frozen disk keeps its control group busy.
    return [*_disks(living), *_groups(living), *_links(living), *_shared(living), *_folders(living)]


def leftovers_on(connection: Connection) -> list[Leftover]:
    """Return the leftovers on a host: a table of rules, processes that stand still, control groups."""
    nft = "PATH=$PATH:/usr/sbin:/sbin nft"
    # Here, since what is left on this machine can be found without the library for SSH.
    from faultline.harness.world.hosts.network.netem import NETEM_HANDLE

    host, found = connection.host.name, []
    for table in _TABLES:
        if connection.run(f"{nft} list table ip {table}", check=False, root=True).exit_code == 0:
            command = f"{nft} delete table ip {table}"
            found.append(Leftover(f"{host}: the firewall table {table}", _command(connection, command)))
    shaped = connection.run("PATH=$PATH:/usr/sbin:/sbin tc qdisc show 2>/dev/null", check=False).text
    for device in re.findall(rf"^qdisc htb {NETEM_HANDLE} dev (\S+) root", shaped, flags=re.MULTILINE):
        command = f"PATH=$PATH:/usr/sbin:/sbin tc qdisc del dev {shlex.quote(device)} root"
        found.append(Leftover(f"{host}: the delays and losses on {device}", _command(connection, command)))
    stopped = connection.run(_stopped_below(connection.host.folder), check=False, root=True).text.split()
    found += [
        Leftover(f"{host}: the stopped process {pid}", _command(connection, f"kill -KILL {pid}")) for pid in stopped
    ]
    groups = connection.run(_GROUPS_WITHOUT_OWNER, check=False, root=True).text.split()
    found += [Leftover(f"{host}: the control group {name}", _command(connection, _removal(name))) for name in groups]
    shared = connection.run(_SHARED_WITHOUT_OWNER, check=False, root=True).text.split()
    found += [Leftover(f"{host}: the shared memory {file}", _command(connection, f"rm -f {file}")) for file in shared]
    return found


def _removal(group: str) -> str:
    """Return a command that thaws a control group, moves what still runs there to the group above, and removes it."""
    return (
        f"find {shlex.quote(group)} -depth -type d | while read -r g; do "
        'echo 0 >"$g/cgroup.freeze"; echo THAWED >"$g/freezer.state"; '
        f'while read -r p; do echo "$p" >{shlex.quote(str(Path(group).parent))}/cgroup.procs; done <"$g/cgroup.procs"; '
        f'rmdir "$g"; done 2>/dev/null; test ! -e {shlex.quote(group)}'
    )


def _command(connection: Connection, command: str) -> Callable[[], None]:
    def remove() -> None:
        connection.run(command, root=True)

    return remove


def _stopped_below(folder: str) -> str:
    """Return a command that prints the processes that are stopped and work in a node's folder."""
    return (
        f"for p in /proc/[0-9]*; do case $(readlink $p/cwd) in {shlex.quote(folder)}/*) "
        "grep -q '^State:.T (stopped)' $p/status && basename $p;; esac; done 2>/dev/null; true"
    )


def _living_sets() -> Iterator[str]:
    """Return the names of the sets that are in use."""
    for command_line in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = command_line.read_bytes().split(b"\0")
            if any(word.endswith(_SUPERVISOR) for word in words):
                for word in words:
                    yield from (match[0].decode() for match in re.finditer(rb"faultline-hosts-[\w-]+", word))
    for folder in _SETS_FOLDER.glob(f"{SETS}*"):
        maker = folder.name.removeprefix(SETS).partition("-")[0]
        if Path(f"/proc/{maker}").exists():
            yield folder.name


def _folders(living: frozenset[str]) -> Iterator[Leftover]:
    for folder in sorted(_SETS_FOLDER.glob(f"{SETS}*")):
        if folder.name not in living and folder.is_dir():
            yield Leftover(f"the folder {folder}", partial(shutil.rmtree, folder))


def _groups(living: frozenset[str]) -> Iterator[Leftover]:
    ours = [group for group in _groups_below(_GROUPS) if group.name.startswith(SETS)]
    for group in sorted(ours, key=lambda path: (-len(path.parts), path)):
        if not _named(group.parts, living):
            yield Leftover(f"the control group {group}", partial(_remove_group, group))


def _shared(living: frozenset[str]) -> Iterator[Leftover]:
    for file in sorted(Path("/dev/shm").glob(f"*{SETS}*")):
        if not any(name in file.name for name in living):
            yield Leftover(f"the shared memory {file}", file.unlink)


def _named(parts: tuple[str, ...], living: frozenset[str]) -> bool:
    return any(part in living for part in parts)


def _remove_group(group: Path) -> None:
    for folder in sorted([*_groups_below(group), group], key=lambda path: -len(path.parts)):
        folder.rmdir()


def _groups_below(group: Path) -> list[Path]:
    """Return all groups within `group`. Others come and go meanwhile, which a walk does not mind."""
    return [Path(folder, name) for folder, names, _ in os.walk(group) for name in names]


def _disks(living: frozenset[str]) -> Iterator[Leftover]:
    for backing in sorted(Path("/sys/block").glob("loop*/loop/backing_file")):
        with suppress(OSError):
            image = Path(backing.read_text().strip())
            if any(part.startswith(SETS) for part in image.parts) and not _named(image.parts, living):
                device = f"/dev/{backing.parent.parent.name}"
                yield Leftover(f"the loop device {device} of {image}", partial(_free, device, backing, image))


def _free(device: str, backing: Path, image: Path) -> None:
    """Let the loop device go. Who hangs in a write to its frozen file system, and so keeps it busy, goes on before."""
    if image.with_name(_FROZEN_NOTE).exists():
        with tempfile.TemporaryDirectory(prefix="faultline-thaw-") as place:
            # Where it was mounted is gone; mounted anew it is the same file system, frozen as it was.
            _program("mount", device, place)()
            try:
                _program("fsfreeze", "-u", place)()
            finally:
                _program("umount", place)()
    try:
        _program("losetup", "-d", device)()
    except OSError:
        # It clears itself when its last user has gone.
        if backing.exists():
            raise


def _links(living: frozenset[str]) -> Iterator[Leftover]:
    used = {number for name in living for number in _numbers(_SETS_FOLDER / name)}
    for link in sorted(Path("/sys/class/net").glob("faultline*")):
        match = _LINK.fullmatch(link.name)
        if match and match[1] not in used:
            yield Leftover(f"the link {link.name}", partial(_remove_link, link))


def _remove_link(link: Path) -> None:
    """Remove a link, unless the kernel is faster: it goes by itself some time after the hosts at its other end."""
    try:
        _program("ip", "link", "del", link.name)()
    except OSError:
        if link.exists():
            raise


def _numbers(folder: Path) -> Iterator[str]:
    """Return the number of the set in `folder`, out of the address that its first host listens on."""
    with suppress(OSError):
        match = re.search(r"ListenAddress 198\.18\.(\d+)\.", (folder / "n1" / "sshd_config").read_text())
        if match:
            yield match[1]


def _program(*command: str) -> Callable[[], None]:
    def remove() -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise OSError(done.stderr.strip() or f"{command[0]} ended with {done.returncode}")

    return remove
