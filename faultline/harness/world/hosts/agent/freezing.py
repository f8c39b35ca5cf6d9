"""Freezing all processes of a member at once, by the best means the host has.

A frozen process does not run, and unlike one stopped by SIGSTOP it cannot tell afterwards: no parent is told, no
SIGCONT is seen. The means, best first: `cgroup.freeze` of version 2, the `freezer` controller of version 1, and SIGSTOP
for each process where there are no control groups. The kernel says when all are frozen, and that is what is believed.
"""

from __future__ import annotations

import os
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import suppress

from faultline.harness.world.hosts.agent.control_groups import ControlGroup, GroupError

__all__ = ["Freezer", "GroupFreezer", "SignalFreezer", "state_of"]

_DEADLINE_S = 5.0
_POLL_S = 0.002
Processes = Callable[[], Iterable[int]]


class Freezer(ABC):
    """A means of freezing; `means` is its name for people."""

    means = ""

    @abstractmethod
    def freeze(self, processes: Processes) -> None:
        """Let none of the processes run any more. Raises GroupError when they do not stand still in time."""

    @abstractmethod
    def thaw(self, processes: Processes) -> None:
        """Let them go on."""

    @abstractmethod
    def is_frozen(self, processes: Processes) -> bool:
        """Return whether the kernel says that every one of the processes is frozen."""

    def close(self) -> None:  # noqa: B027  # a hook: signals leave nothing behind
        """Leave nothing behind."""


class GroupFreezer(Freezer):
    """By a control group, of either version."""

    def __init__(self, group: ControlGroup) -> None:
        group.make("freezer")
        self._group = group
        self.means = f"control group, version {group.tree.version}"
        if group.tree.version == 2:
            self._file, self._on, self._off = "cgroup.freeze", "1", "0"
        else:
            self._file, self._on, self._off = "freezer.state", "FROZEN", "THAWED"
        if not group.has(self._file):
            group.remove()
            raise GroupError(f"the kernel's control groups have no {self._file}")
        # The group may be that of an agent which was lost while it was frozen.
        group.write(self._file, self._off)

    def freeze(self, processes: Processes) -> None:
        """Take the processes in until none is outside, then freeze the group."""
        deadline_s = time.monotonic() + _DEADLINE_S
        while self._group.take(processes()):
            _refuse_after(deadline_s, "new processes appear without end")
        self._turn(self._on, frozen=True)

    def thaw(self, processes: Processes) -> None:
        """Thaw the group; it stays, for the next time."""
        self._turn(self._off, frozen=False)

    def is_frozen(self, processes: Processes) -> bool:
        """Return whether the group is frozen and every process is in it."""
        found = set(processes())
        return bool(found) and self._says_frozen() and found <= self._group.members()

    def close(self) -> None:
        """Thaw and remove the group."""
        with suppress(GroupError):
            self.thaw(list)
        self._group.remove()

    def _turn(self, value: str, *, frozen: bool) -> None:
        deadline_s = time.monotonic() + _DEADLINE_S
        self._group.write(self._file, value)
        while self._says_frozen() != frozen:
            _refuse_after(deadline_s, f"the kernel does not {'freeze' if frozen else 'thaw'} them")
            if self._group.tree.version == 1:
                # Version 1 may lose a race against a fork, and says FREEZING until it is asked again.
                self._group.write(self._file, value)

    def _says_frozen(self) -> bool:
        if self._group.tree.version == 2:
            return self._group.count("cgroup.events", "frozen") == 1
        return self._group.read(self._file) == self._on


class SignalFreezer(Freezer):
    """By SIGSTOP for each process: where no control group is to be had."""

    means = "SIGSTOP"

    def freeze(self, processes: Processes) -> None:
        """Stop processes until none is left that runs."""
        self._until(processes, signal.SIGSTOP, stopped=True)

    def thaw(self, processes: Processes) -> None:
        """Let every process go on."""
        self._until(processes, signal.SIGCONT, stopped=False)

    def is_frozen(self, processes: Processes) -> bool:
        """Return whether every process is stopped."""
        found = list(processes())
        return bool(found) and all(state_of(pid) == "T" for pid in found)

    def _until(self, processes: Processes, number: signal.Signals, *, stopped: bool) -> None:
        deadline_s = time.monotonic() + _DEADLINE_S
        while wrong := [pid for pid in processes() if (state_of(pid) == "T") != stopped]:
            for pid in wrong:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            _refuse_after(deadline_s, f"{number.name} has no effect")


def state_of(pid: int) -> str:
    """Return the state letter that the kernel gives a process; X when it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            # The name in parentheses may hold blanks; the state is the first field after it.
            return stat.read().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def _refuse_after(deadline_s: float, why: str) -> None:
    if time.monotonic() > deadline_s:
        raise GroupError(why)
    time.sleep(_POLL_S)
