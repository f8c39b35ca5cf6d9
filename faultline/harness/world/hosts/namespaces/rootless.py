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
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from faultline.harness.world.hosts.namespaces.requirements import missing_without_root

__all__ = ["enter_user_namespace", "in_user_namespace"]

_ENTERED = "FAULTLINE_USER_NAMESPACE"
_UNSHARE = ("unshare", "--user", "--map-root-user", "--map-auto", "--net", "--mount")


def in_user_namespace(user_map: Path = Path("/proc/self/uid_map")) -> bool:
    """Return whether our root is not the machine's, so that not every user number exists here."""
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
    if not sys.platform.startswith("linux") or os.geteuid() == 0 or missing_without_root() or _ENTERED in os.environ:
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
