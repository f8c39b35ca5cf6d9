"""Can a process's clock be changed on this host at all? Tried out on a process of ours, which is asked for the time."""

from __future__ import annotations

import platform
import subprocess
import sys
import time

from faultline.hosts.agent.clock_code import Setting, Skew
from faultline.hosts.agent.clock_patch import PatchError, patched

__all__ = ["clock_refusal"]

_PROGRAM = "import sys, time\nfor _ in sys.stdin: print(time.time_ns(), flush=True)"
_STEP_NS = 3_600_000_000_000
_MACHINES = ("x86_64", "AMD64")


def clock_refusal(machine: str = "") -> str:
    """Why clocks of processes cannot be changed here; empty when a process was seen to follow."""
    machine = machine or platform.machine()
    if machine not in _MACHINES:
        return f"the clock code is for x86-64, this is {machine}"
    witness = subprocess.Popen(
        [sys.executable, "-S", "-E", "-c", _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        _ask(witness)
        patch = patched(witness.pid, Setting(Skew(-_STEP_NS)))
        said_ns, seen_ns = _ask(witness) - time.time_ns(), patch.view().wall_off_ns
        if max(abs(said_ns + _STEP_NS), abs(seen_ns + _STEP_NS)) > _STEP_NS // 2:
            return f"a process whose clock was put back an hour is {said_ns // 1_000_000_000} s off"
        return ""
    except (PatchError, OSError, ValueError) as error:
        return str(error) or type(error).__name__
    finally:
        witness.kill()
        witness.communicate()


def _ask(witness: subprocess.Popen[bytes]) -> int:
    assert witness.stdin is not None and witness.stdout is not None
    witness.stdin.write(b"\n")
    witness.stdin.flush()
    return int(witness.stdout.readline())
