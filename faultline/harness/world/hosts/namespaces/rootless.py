"""Hosts of namespaces for a user who is not root: the command starts itself anew in a user namespace.

In a user namespace an ordinary user is root of whatever belongs to it: of network namespaces made there, their links,
bridges and firewall rules, of mounts in its own mount namespace, and of a range of user numbers that the machine's
root has set aside (user_namespaces(7), subuid(5)) – sshd needs several. So the whole command moves: the harness too
must stand in the network that its end of the link is in. What belongs to the machine stays refused, each by name: loop
devices and so disks that lose power, control groups, the machine's own clock.

`unshare --map-auto` and so `newuidmap`, from Debian's package `uidmap`, do the mapping. There is no process in between:
signals, exit codes and the terminal are the command's own.
"""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from faultline.harness.world.hosts.namespaces.lack import Lack

__all__ = ["enter_user_namespace", "in_user_namespace", "lacks_without_root"]

_ENTERED = "FAULTLINE_USER_NAMESPACE"
_UNSHARE = ("unshare", "--user", "--map-root-user", "--map-auto", "--net", "--mount")
_RANGES = (Path("/etc/subuid"), Path("/etc/subgid"))
_MOST = Path("/proc/sys/user/max_user_namespaces")
_ALLOWED = Path("/proc/sys/kernel/unprivileged_userns_clone")


def in_user_namespace(user_map: Path = Path("/proc/self/uid_map")) -> bool:
    """Is our root not the machine's? Then not every user number exists here."""
    with suppress(OSError):
        return user_map.read_text().split() != ["0", "0", "4294967295"]
    return False


def enter_user_namespace(
    command: Sequence[str] | None = None, environment: Callable[[], Mapping[str, str]] | None = None
) -> None:
    """Go on as root of a new user and network namespace, if that is needed and possible; otherwise return.

    `command` is what to start there: this very command line, unless given; `environment` gives what is added to its
    environment, and is called only then. Does not return when it goes on there.
    """
    if not sys.platform.startswith("linux") or os.geteuid() == 0 or lacks_without_root() or _ENTERED in os.environ:
        return
    again = [sys.executable, *sys.orig_argv[1:]] if command is None else list(command)
    sys.stdout.flush()
    sys.stderr.flush()
    # Nothing in a new network namespace works before its own loopback is up.
    script = 'PATH=$PATH:/usr/sbin:/sbin ip link set lo up && exec "$@"'
    os.execvpe(
        "unshare",
        [*_UNSHARE, "/bin/sh", "-c", script, "sh", *again],
        os.environ | {_ENTERED: "1"} | dict(environment() if environment else {}),
    )


def lacks_without_root(find: Callable[[str], str | None] | None = None) -> list[Lack]:
    """Return what keeps this user from making a user namespace with a range of user numbers."""
    from shutil import which

    found = []
    if (find or which)("newuidmap") is None:
        found.append(Lack("without root, the program newuidmap is needed", "Run: apt-get install uidmap"))
    name = _user_name()
    if not all(_has_range(file, name) for file in _RANGES):
        next_step = f"As root: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {name}"
        found.append(Lack(f"without root, {name} needs a range in /etc/subuid and /etc/subgid", next_step))
    if _number(_MOST, 1) == 0 or _number(_ALLOWED, 1) == 0:
        found.append(Lack("this kernel lets only root make user namespaces", "Run it as root, or use --world local."))
    return found


def _user_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _has_range(file: Path, name: str) -> bool:
    with suppress(OSError):
        owners = {line.partition(":")[0] for line in file.read_text().splitlines()}
        return bool(owners & {name, str(os.geteuid())})
    return False


def _number(file: Path, default: int) -> int:
    with suppress(OSError, ValueError):
        return int(file.read_text())
    return default
