"""Control groups of ours: folders in the kernel's own file system that hold processes and what they may have.

Two versions are about, often on one machine (cgroups(7)): in version 1 every controller (`freezer`, `cpu`, `memory`)
has a tree of its own, in version 2 one tree has them all, as far as they are enabled from the root down. A group of
ours is called `faultline-SET/MEMBER` in each tree, so that its owner is known. A process is in exactly
one group of each tree; children are born into the group of their parent.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

__all__ = ["ControlGroup", "GroupError", "Tree", "find_trees"]

CONTROLLERS = ("freezer", "cpu", "memory")
_ENABLED = "cgroup.subtree_control"
_REMOVE_TRIES = 100
_POLL_S = 0.02


class GroupError(Exception):
    """A control group cannot do what was asked, and why."""


class Tree(NamedTuple):
    """The folders of one controller's groups: the topmost and the one that this process is in; and their version."""

    top: str
    own: str
    version: int


def find_trees(mounts: str, groups: str) -> dict[str, Tree]:
    """Return the tree of each controller; version 2 where both have one.

    From two texts: `mounts` as `/proc/self/mountinfo`, `groups` as `/proc/self/cgroup`.
    """
    ours = {name: path for _, names, path in _membership(groups) for name in names.split(",")}
    found: dict[str, Tree] = {}
    for line in mounts.splitlines():
        fields, _, kind = line.partition(" - ")
        shown, folder = fields.split()[3:5]
        if kind.startswith("cgroup "):
            for controller in set(CONTROLLERS) & set(kind.split()[2].split(",")) - set(found):
                found[controller] = Tree(folder, _below(folder, shown, ours.get(controller, "/")), 1)
        if kind.startswith("cgroup2 "):
            tree = Tree(folder, _below(folder, shown, ours.get("", "/")), 2)
            # Every group of version 2 can be frozen; the kernel does not count that as a controller.
            for controller in ("freezer", *_words(f"{folder}/cgroup.controllers")):
                if controller in CONTROLLERS:
                    found[controller] = tree
    return found


def _membership(groups: str) -> list[tuple[str, str, str]]:
    found = []
    for line in groups.splitlines():
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        found.append((number, names, path))
    return found


def _below(folder: str, shown: str, path: str) -> str:
    """Return the folder of the group `path`, in a mount at `folder` that shows the tree from `shown` down."""
    inner = path[len(shown.rstrip("/")) :] if path.startswith(shown) else "/"
    return (folder + inner).rstrip("/")


class ControlGroup:
    """The group `name` in `tree` (`faultline-SET/MEMBER`), made when it is first needed.

    It is made below the group that we are in, whose limits so go on to hold. Only where version 2 does not allow that,
    because a group with processes of its own cannot hand on controllers, it is made at the top.
    """

    def __init__(self, tree: Tree, name: str) -> None:
        self.tree = tree
        self._name = name
        self.folder = os.path.join(tree.own, name)

    def make(self, controller: str) -> None:
        """Make the group, with `controller` in it. Raises GroupError."""
        try:
            try:
                self._make(self.tree.own, controller)
            except OSError:
                self._make(self.tree.top, controller)
        except OSError as error:
            raise GroupError(f"no control group can be made in {self.tree.top}: {error.strerror}") from error

    def _make(self, base: str, controller: str) -> None:
        self.folder = os.path.join(base, self._name)
        parent = os.path.dirname(self.folder)
        try:
            os.makedirs(parent, exist_ok=True)
            if self.tree.version == 2 and controller != "freezer":
                # A group can use a controller only when every group above it hands the controller on.
                for folder in (base, parent):
                    if controller not in _words(f"{folder}/{_ENABLED}"):
                        _write(f"{folder}/{_ENABLED}", f"+{controller}")
            os.makedirs(self.folder, exist_ok=True)
        except OSError:
            with suppress(OSError):
                os.rmdir(parent)
            raise

    def has(self, file: str) -> bool:
        """Return whether the group has this `file`."""
        return os.path.exists(f"{self.folder}/{file}")

    def read(self, file: str) -> str:
        """Return the content of one of the group's files. Raises GroupError."""
        try:
            with open(f"{self.folder}/{file}") as opened:
                return opened.read().strip()
        except OSError as error:
            raise GroupError(f"{self.folder}/{file} cannot be read: {error.strerror}") from error

    def write(self, file: str, value: str) -> None:
        """Write one of the group's files. Raises GroupError."""
        try:
            _write(f"{self.folder}/{file}", value)
        except OSError as error:
            raise GroupError(f"{self.folder}/{file} does not take {value}: {error.strerror}") from error

    def count(self, file: str, name: str) -> int:
        """Return the number after `name` in a file of lines `name number`; 0 when it is not there."""
        for line in self.read(file).splitlines():
            key, _, number = line.partition(" ")
            if key == name:
                return int(number)
        return 0

    def take(self, pids: Iterable[int]) -> bool:
        """Move these processes into the group and return whether there were any; those that have ended are left out."""
        strangers = sorted(set(pids) - self.members())
        for pid in strangers:
            with suppress(ProcessLookupError):
                _write(f"{self.folder}/cgroup.procs", str(pid))
        return bool(strangers)

    def members(self) -> set[int]:
        """Return the processes in the group."""
        return {int(pid) for pid in self.read("cgroup.procs").split()}

    def remove(self) -> bool:
        """Remove the group, and its parent when that is empty, and return whether it is gone.

        Processes that still run go to our own group.
        """
        # The kernel refuses to remove a group with processes, and a process that ends stays in it for a moment.
        for _ in range(_REMOVE_TRIES):
            with suppress(OSError):
                for pid in _words(f"{self.folder}/cgroup.procs"):
                    _write(f"{self.tree.own}/cgroup.procs", pid)
            with suppress(OSError):
                os.rmdir(self.folder)
            if not os.path.exists(self.folder):
                break
            time.sleep(_POLL_S)
        with suppress(OSError):
            os.rmdir(os.path.dirname(self.folder))
        return not os.path.exists(self.folder)


def _words(path: str) -> list[str]:
    try:
        with open(path) as file:
            return file.read().split()
    except OSError:
        return []


def _write(path: str, value: str) -> None:
    # Unbuffered: the kernel takes a value with one write and answers it there.
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)
