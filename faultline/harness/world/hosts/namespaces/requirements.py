"""The requirements of hosts made of namespaces, and the next step where a machine does not meet one."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable

from faultline.harness.world.hosts.namespaces.lack import Lack
from faultline.harness.world.hosts.namespaces.rootless import lacks_without_root

__all__ = ["Lack", "find_program", "lacks"]

_PACKAGES = {"sshd": "openssh-server", "ip": "iproute2", "unshare": "util-linux", "nsenter": "util-linux"}
_SYSTEM_FOLDERS = "/usr/sbin:/sbin:/usr/local/sbin"


def find_program(name: str) -> str | None:
    """The path of a program, also one in a folder that only root has on its PATH."""
    return shutil.which(name) or shutil.which(name, path=_SYSTEM_FOLDERS)


def lacks(
    platform: str = sys.platform,
    user_id: Callable[[], int] = os.geteuid,
    find: Callable[[str], str | None] = find_program,
    without_root: Callable[[], list[Lack]] = lacks_without_root,
) -> list[Lack]:
    """Everything that stands in the way of hosts made of namespaces, as far as can be seen without making one."""
    if not platform.startswith("linux"):
        return [Lack("only Linux has namespaces", "Use --world local, or machines over SSH: --hosts ssh:FILE.")]
    found = []
    if user_id() != 0:
        # The faultline command goes on in a user namespace where it can; who comes here could not, or uses the library.
        found += without_root() or [Lack("only root may make namespaces with links", "Use the faultline command.")]
    for program, package in _PACKAGES.items():
        if find(program) is None:
            found.append(Lack(f"the program {program} is missing", f"Run: apt-get install {package}"))
    return found
