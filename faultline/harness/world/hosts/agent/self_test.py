"""Trials of every fault on processes of ours: each function returns why this host cannot do it, or nothing."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from faultline.harness.world.hosts.agent.clock_code import Setting, Skew
from faultline.harness.world.hosts.agent.clock_patch import PatchError, patched
from faultline.harness.world.hosts.agent.control_groups import GroupError
from faultline.harness.world.hosts.agent.freezing import Freezer
from faultline.harness.world.hosts.agent.limits import CpuSqueeze, MemorySqueeze
from faultline.harness.world.hosts.agent.preload import Preload, has_read

__all__ = [
    "clock_refusal",
    "cpu_refusal",
    "freeze_refusal",
    "memory_refusal",
    "preload_refusal",
    "real_clock_refusal",
]

_PROGRAM = "import os, sys, time\nprint(os.getpid(), flush=True)\nfor _ in sys.stdin: print(time.time_ns(), flush=True)"
# No child of ours: many kernels let a program look into its own descendants only, and a store is none of them.
_AS_AN_ORPHAN = ("/bin/sh", "-c", 'exec 3<&0; "$@" <&3 3<&- &', "sh")
_STEP_NS = 3_600_000_000_000
_SHARE = 0.1
_HEADROOM_BYTES = 1024 * 1024
_CAP_SYS_TIME = 25
_MACHINES = ("x86_64", "AMD64")


def clock_refusal(machine: str = "") -> str:
    """Return the reason why clocks of processes cannot be changed here; empty when a process was seen to follow."""
    machine = machine or platform.machine()
    if machine not in _MACHINES:
        return f"the clock code is for x86-64, this is {machine}"
    try:
        with _witness({}) as witness:
            patch = patched(_told(witness), Setting(Skew(-_STEP_NS)))
            return _unmoved(_ask(witness) - time.time_ns(), patch.view().wall_off_ns)
    except (PatchError, OSError, ValueError) as error:
        return str(error) or type(error).__name__


def preload_refusal(name: str) -> str:
    """Return the reason why libfaketime does not work here; empty when a process that loaded it was seen to follow.

    `name` is for the files shared with that process; nothing else on this kernel may have it.
    """
    with tempfile.TemporaryDirectory(prefix="faultline-clock-") as folder:
        try:
            preload = Preload(name, f"{folder}/clock")
        except (PatchError, OSError) as error:
            return str(error)
        try:
            with _witness(preload.environment()) as witness:
                pid = _told(witness)
                preload.write(Skew(-_STEP_NS))
                said_ns = _ask(witness) - time.time_ns()
                is_read = has_read(pid, preload.line)
                return _unmoved(said_ns, preload.off_ns()) or ("" if is_read else "what it has read cannot be seen")
        except (PatchError, OSError, ValueError) as error:
            return str(error) or type(error).__name__
        finally:
            preload.close()


def real_clock_refusal() -> str:
    """Return the reason why this process may not set the host's clock, by its capabilities; empty when it may."""
    with suppress(OSError, ValueError), open("/proc/self/status") as status:
        for line in status:
            if line.startswith("CapEff:") and not int(line.split()[1], 16) >> _CAP_SYS_TIME & 1:
                return "only root may set the clock (capability CAP_SYS_TIME)"
    return ""


def freeze_refusal(freezer: Freezer) -> str:
    """Return the reason why processes cannot be frozen here by this means; empty when one was."""
    sleeper = subprocess.Popen(["sleep", "600"])
    try:
        freezer.freeze(lambda: [sleeper.pid])
        frozen = freezer.is_frozen(lambda: [sleeper.pid])
        freezer.thaw(lambda: [sleeper.pid])
        return "" if frozen else "a process of ours was to be frozen and was not"
    except (GroupError, OSError) as error:
        return str(error)
    finally:
        sleeper.kill()
        sleeper.wait()


def cpu_refusal(make: Callable[[], CpuSqueeze]) -> str:
    """Return the reason why processor time cannot be limited here; empty when a process of ours was throttled."""
    try:
        make().squeeze(list, _SHARE)
        make().lift()
    except (GroupError, OSError) as error:
        return str(error)
    return ""


def memory_refusal(make: Callable[[], MemorySqueeze]) -> str:
    """Return the reason why memory cannot be limited here; empty when a process of ours was killed for want of it."""
    try:
        make().squeeze(list, _HEADROOM_BYTES)
        make().lift()
    except (GroupError, OSError) as error:
        return str(error)
    return ""


@contextmanager
def _witness(environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process that tells its number first, and then its time whenever it is asked."""
    command = [*_AS_AN_ORPHAN, sys.executable, "-S", "-E", "-c", _PROGRAM]
    witness = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | environment)
    try:
        yield witness
    finally:
        # It ends when its standard input does.
        witness.communicate()


def _unmoved(said_ns: int, seen_ns: int) -> str:
    """Return what is wrong with a witness whose clock was put back, by its word and by what we see; or nothing."""
    if max(abs(said_ns + _STEP_NS), abs(seen_ns + _STEP_NS)) > _STEP_NS // 2:
        return f"a process whose clock was put back an hour is {said_ns // 1_000_000_000} s off"
    return ""


def _ask(witness: subprocess.Popen[bytes]) -> int:
    assert witness.stdin is not None
    witness.stdin.write(b"\n")
    witness.stdin.flush()
    return _told(witness)


def _told(witness: subprocess.Popen[bytes]) -> int:
    assert witness.stdout is not None
    return int(witness.stdout.readline())
