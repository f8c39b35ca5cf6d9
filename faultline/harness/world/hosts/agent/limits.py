"""Limits on a member: less of the processor, or no more memory than it has.

Both are limits of a control group. That they bite is proved by a process of ours that joins the group for a moment and
asks for more: it is throttled, or killed for want of memory. (It offers itself to be killed first.)

A processor limit is a share of one processor, for all processes of the member together, by the kernel's quota per
period of a tenth of a second. A memory limit is what the group uses at that moment plus some bytes: memory that a
process had before it came into a group is not counted there, so this is the one meaning that is the same for all. A
member that needs more loses files from its cache first, and is killed by the kernel when that does not suffice.
"""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from faultline.harness.world.hosts.agent.control_groups import ControlGroup, GroupError

__all__ = ["CpuSqueeze", "MemorySqueeze"]

_PERIOD_US = 100_000
_THROTTLED_WITHIN_S = 3.0
_KILLED_WITHIN_S = 15.0
"""On a busy machine it takes a while until a process has asked for more than it may have."""
_POLL_S = 0.005
_SLACK = 1.5
_PAGE_BYTES = resource.getpagesize()
_MIB = 1024 * 1024
Processes = Callable[[], Iterable[int]]


class CpuSqueeze:
    """The share of one processor that a member gets. Raises GroupError where the kernel has no such limit."""

    def __init__(self, group: ControlGroup) -> None:
        group.make("cpu")
        self._group = group
        self._is_second = group.tree.version == 2
        if not group.has("cpu.max" if self._is_second else "cpu.cfs_quota_us"):
            group.remove()
            raise GroupError("the kernel's control groups limit no processor time")

    def squeeze(self, processes: Processes, share: float) -> None:
        """Let the member have `share` of a processor, and prove it."""
        self.adopt(processes)
        quota_us = int(_PERIOD_US * share)
        if self._is_second:
            self._group.write("cpu.max", f"{quota_us} {_PERIOD_US}")
        else:
            self._group.write("cpu.cfs_period_us", str(_PERIOD_US))
            self._group.write("cpu.cfs_quota_us", str(quota_us))
        self._prove(share)

    def adopt(self, processes: Processes) -> None:
        """Take in processes that have come since."""
        while self._group.take(processes()):
            pass

    def lift(self) -> None:
        """Let the member have all it can get."""
        if self._is_second:
            self._group.write("cpu.max", f"max {_PERIOD_US}")
        else:
            self._group.write("cpu.cfs_quota_us", "-1")

    def limit(self) -> float:
        """Return the share in force, as the kernel has it; 0 for no limit."""
        if self._is_second:
            quota, period = self._group.read("cpu.max").split()
            return 0.0 if quota == "max" else int(quota) / int(period)
        quota_us = int(self._group.read("cpu.cfs_quota_us"))
        return max(quota_us, 0) / int(self._group.read("cpu.cfs_period_us"))

    def close(self) -> None:
        """Lift the limit and remove the group."""
        with suppress(GroupError):
            self.lift()
        self._group.remove()

    def _prove(self, share: float) -> None:
        """Prove that a process in the group that wants a whole processor is throttled, or gets less anyway."""
        before, started_s = self._group.count("cpu.stat", "nr_throttled"), time.monotonic()
        with _Helper(self._group, _burn) as helper:
            while self._group.count("cpu.stat", "nr_throttled") == before:
                elapsed_s = time.monotonic() - started_s
                if elapsed_s > _THROTTLED_WITHIN_S:
                    # A machine that is this busy gives no process enough to be throttled.
                    if helper.used_s() > share * elapsed_s * _SLACK:
                        raise GroupError(f"a process got {helper.used_s() / elapsed_s:.2f} of a processor all the same")
                    return
                time.sleep(_POLL_S)


class MemorySqueeze:
    """A limit on the memory that a member may take. Raises GroupError where the kernel has no such limit."""

    def __init__(self, group: ControlGroup) -> None:
        group.make("memory")
        self._group = group
        self._killed_before = 0
        if group.tree.version == 2:
            self._used, self._limit, self._with_swap = "memory.current", "memory.max", "memory.swap.max"
            self._events, self._none = "memory.events", "max"
        else:
            self._used, self._limit, self._with_swap = (
                "memory.usage_in_bytes",
                "memory.limit_in_bytes",
                "memory.memsw.limit_in_bytes",
            )
            self._events, self._none = "memory.oom_control", "-1"
        if not group.has(self._limit):
            group.remove()
            raise GroupError("the kernel's control groups limit no memory")
        self._free = group.read(self._limit)

    def squeeze(self, processes: Processes, headroom_bytes: int) -> None:
        """Let the member have `headroom_bytes` more than its group uses now, and prove it."""
        self.adopt(processes)
        limit = (int(self._group.read(self._used)) + headroom_bytes) // _PAGE_BYTES * _PAGE_BYTES
        self._group.write(self._limit, str(limit))
        # Without this the kernel would make room by swapping. Not every machine counts swap.
        with suppress(GroupError):
            self._group.write(self._with_swap, "0" if self._group.tree.version == 2 else str(limit))
        self._prove(headroom_bytes)
        self._killed_before = self._kills()

    def adopt(self, processes: Processes) -> None:
        """Take in processes that have come since."""
        while self._group.take(processes()):
            pass

    def lift(self) -> None:
        """Let the member have all it can get."""
        with suppress(GroupError):
            self._group.write(self._with_swap, self._none)
        self._group.write(self._limit, self._none)

    def limit(self) -> int:
        """Return the limit in force in bytes, as the kernel has it; 0 for none."""
        value = self._group.read(self._limit)
        return 0 if value == self._free else int(value)

    def killed(self) -> int:
        """Return the number of processes that the kernel has killed for want of memory since the limit was set."""
        return self._kills() - self._killed_before

    def close(self) -> None:
        """Lift the limit and remove the group."""
        with suppress(GroupError):
            self.lift()
        self._group.remove()

    def _kills(self) -> int:
        return self._group.count(self._events, "oom_kill")

    def _prove(self, headroom_bytes: int) -> None:
        """Prove that a process in the group that takes more than is left is killed."""
        with _Helper(self._group, lambda: _eat(headroom_bytes + 16 * _MIB)) as helper:
            status = helper.ended(_KILLED_WITHIN_S)
        if status is None or not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
            raise GroupError("a process took more memory than the limit allows and was not killed")


class _Helper:
    """A process of ours in `group` that does `work`; it ends with the context."""

    def __init__(self, group: ControlGroup, work: Callable[[], None]) -> None:
        self._status: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            with suppress(BaseException):
                # The kernel picks a victim in the group; it must be this process and not one of the member's.
                with suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
                    score.write("1000")
                group.take([os.getpid()])
                work()
            os._exit(1)

    def __enter__(self) -> _Helper:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)

    def ended(self, timeout_s: float) -> int | None:
        """Return the exit code of the process, or None when it does not end in time."""
        deadline_s = time.monotonic() + timeout_s
        while self._status is None and time.monotonic() < deadline_s:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            if found:
                self._status = status
            else:
                time.sleep(_POLL_S)
        return self._status

    def used_s(self) -> float:
        """Return the processor time that it has used."""
        with open(f"/proc/{self.pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _burn() -> None:
    while True:
        pass


def _eat(count: int) -> None:
    # Touched page by page: memory that is only asked for is not yet taken.
    taken = bytearray(count)
    for place in range(0, count, _PAGE_BYTES):
        taken[place] = 1
