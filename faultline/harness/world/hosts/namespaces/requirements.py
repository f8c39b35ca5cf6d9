"""The requirements of hosts made of namespaces, and the next step where a machine does not meet one."""

from __future__ import annotations

import os
import pwd
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

__all__ = ["Requirement", "find_program", "missing_requirements", "missing_without_root"]

_PACKAGES = {"sshd": "openssh-server", "ip": "iproute2", "unshare": "util-linux", "nsenter": "util-linux"}
_SYSTEM_FOLDERS = "/usr/sbin:/sbin:/usr/local/sbin"
_RANGES = (Path("/etc/subuid"), Path("/etc/subgid"))
_MOST = Path("/proc/sys/user/max_user_namespaces")
_ALLOWED = Path("/proc/sys/kernel/unprivileged_userns_clone")


class Requirement(msgspec.Struct, frozen=True):
    """One thing that hosts made of namespaces need and this machine lacks, and the next step."""

    what: str
    next_step: str


def find_program(name: str) -> str | None:
    """Return the path of a program, also one in a folder that only root has on its PATH."""
    return shutil.which(name) or shutil.which(name, path=_SYSTEM_FOLDERS)


def missing_without_root(find: Callable[[str], str | None] = shutil.which) -> list[Requirement]:
    """Return what keeps this user from making a user namespace with a range of user numbers."""
    found = []
    if find("newuidmap") is None:
        found.append(Requirement("without root, the program newuidmap is needed", "Run: apt-get install uidmap"))
    name = _user_name()
    if not all(_has_range(file, name) for file in _RANGES):
        next_step = f"As root: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {name}"
        found.append(Requirement(f"without root, {name} needs a range in /etc/subuid and /etc/subgid", next_step))
    if _number(_MOST, 1) == 0 or _number(_ALLOWED, 1) == 0:
        found.append(
            Requirement("this kernel lets only root make user namespaces", "Run it as root, or use --world local.")
        )
    return found


def missing_requirements(
    platform: str = sys.platform,
    user_id: Callable[[], int] = os.geteuid,
    find: Callable[[str], str | None] = find_program,
    without_root: Callable[[], list[Requirement]] = missing_without_root,
) -> list[Requirement]:
    """Return the requirements that are not met, as far as can be seen without making a namespace."""
    if not platform.startswith("linux"):
        return [Requirement("only Linux has namespaces", "Use --world local, or machines over SSH: --hosts ssh:FILE.")]
    found = []
    if user_id() != 0:
        # The faultline command enters a user namespace where it can, so here it could not, or a library calls.
        found += without_root() or [
            Requirement("only root may make namespaces with links", "Use the faultline command.")
        ]
    for program, package in _PACKAGES.items():
        if find(program) is None:
            found.append(Requirement(f"the program {program} is missing", f"Run: apt-get install {package}"))
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
