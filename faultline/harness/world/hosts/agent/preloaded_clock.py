"""The clock of a member whose programs have libfaketime loaded: the means where the vDSO cannot be patched.

Unlike `MemberClock` it moves wall clocks only, and programs read their setting from a file themselves. So it is looked
at twice: a program of ours with the same environment says what time it is, and of the member's own processes each must
have the library, and one at least must have read the line in force when the member has answered a question since. The
others have not asked for the time yet; and when none of them has run since (they are stopped or
frozen), none can have.

While there is a drift, libfaketime also shortens or lengthens waits and the times of work done by as much.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from faultline.harness.world.hosts.agent.clock_code import Setting, Skew
from faultline.harness.world.hosts.agent.clock_patch import ClockView, PatchError
from faultline.harness.world.hosts.agent.member import Member
from faultline.harness.world.hosts.agent.member_clock import refuse_rate, refuse_wall
from faultline.harness.world.hosts.agent.preload import Preload, files_of, has_read

__all__ = ["PreloadedClock"]

_PATIENCE_S = 3.0
_PAUSE_S = 0.005
_CALM_S = 0.1
_OUR_FILTER = "fsync_filter.py"
"""The supervisor of fsync lives below the supervisor too, and is no part of the store."""
_BY_MONOTONIC = "waits until times of the monotonic clock, which libfaketime takes for the wall clock's"
_UNFIT = {
    "libjemalloc": "jemalloc asks for the time while libfaketime starts and needs memory, so the program hangs",
    "libjvm.so": f"a JVM {_BY_MONOTONIC}",
    "python3": f"CPython {_BY_MONOTONIC}",
}
"""Programs, by the name of a file mapped there, that libfaketime 0.9.10 harms: the last two sleep too long or never."""


class PreloadedClock:
    """The clock of `member`, whose programs are started in the environment of `preload`. Methods raise PatchError."""

    def __init__(self, member: Member, preload: Preload) -> None:
        self._member = member
        self._preload = preload
        self._skew = Skew()
        self._switches: dict[int, int] = {}
        self.in_use = False

    def launcher(self) -> list[str]:
        """Return the words before a command that let it and all it starts follow this clock."""
        return ["env", *(f"{name}={value}" for name, value in self._preload.environment().items())]

    def step(self, wall_ns: int, monotonic_ns: int = 0) -> None:
        """Step the wall clock."""
        if monotonic_ns:
            raise PatchError("libfaketime does not step the monotonic clock apart")
        skew = self._skew.stepped(wall_ns)
        refuse_wall(skew)
        self._follow(skew)

    def drift(self, rate_ppm: int) -> None:
        """Let the wall clock run fast by `rate_ppm`, slow when negative, from where it is."""
        refuse_rate(rate_ppm)
        self._follow(self._skew.drifting(rate_ppm, time.time_ns()))

    def reset(self) -> None:
        """Put the wall clock right. Nothing to do when it was never set."""
        if self.in_use:
            self._follow(Skew())

    def adopt(self) -> None:
        """Every process that starts reads the file by itself."""

    def refuse_unfit(self) -> None:
        """Refuse programs that are known to be harmed, and those that the library is not in.

        One program starts the other, so look when they have begun and nothing changes any more.
        """
        seen, programs = None, self._programs()
        deadline_s = time.monotonic() + _PATIENCE_S
        while (not programs or programs != seen) and time.monotonic() < deadline_s:
            time.sleep(_CALM_S)
            seen, programs = programs, self._programs()
        for pid in self._processes():
            with suppress(OSError):
                _refuse_unfit(pid)
        self._wait_for(self._unloaded)

    def rewrite(self) -> None:
        """Write the line in force anew, so that its readers are seen from now on."""
        self._preload.write(self._skew)
        self._switches = {pid: _switches(pid) for pid in self._processes()}

    def view(self, *, has_answered: bool) -> ClockView:
        """Return the time that a program of ours sees, once the member has read the line in force.

        It must have when it `has_answered` a question since that was written.
        """
        self._wait_for(self._unread if has_answered else self._unloaded)
        return ClockView(self._preload.off_ns(), 0, Setting(self._skew))

    def close(self) -> None:
        """Take the files away."""
        self._preload.close()

    def _follow(self, skew: Skew) -> None:
        self.in_use = True
        self._skew = skew
        self.rewrite()

    def _wait_for(self, missing: Callable[[], str]) -> None:
        """Wait until nothing is `missing`, as a new program loads its libraries late. Raises PatchError."""
        deadline_s = time.monotonic() + _PATIENCE_S
        while why := missing():
            if time.monotonic() > deadline_s:
                raise PatchError(why)
            time.sleep(_PAUSE_S)

    def _unloaded(self) -> str:
        """Return a sentence about a process that has not loaded the library; empty when all have."""
        for pid in self._processes():
            # One that has ended meanwhile needs no clock.
            with suppress(OSError):
                if not any("libfaketime" in file for file in files_of(pid)):
                    return f"libfaketime is not loaded into process {pid} ({_name(pid)})"
        return ""

    def _unread(self) -> str:
        """Return the reason to doubt that the member follows the line in force; empty when there is none."""
        are_read, have_run = [], False
        for pid in self._processes():
            with suppress(OSError):
                are_read.append(has_read(pid, self._preload.line))
                have_run |= _switches(pid) != self._switches.get(pid)
        if any(are_read) or not have_run:
            return self._unloaded()
        return f"within {_PATIENCE_S:g} s no process asked libfaketime for the time: it comes from elsewhere, as in Go"

    def _programs(self) -> set[tuple[int, str]]:
        return {(pid, _command(pid)) for pid in self._processes()}

    def _processes(self) -> list[int]:
        return [pid for pid in self._member.processes() if _OUR_FILTER not in _command(pid)]


def _refuse_unfit(pid: int) -> None:
    names = [Path(file).name for file in files_of(pid)]
    for beginning, why in _UNFIT.items():
        if any(name.startswith(beginning) for name in names):
            raise PatchError(f"{why} (process {pid})")


def _switches(pid: int) -> int:
    """Return how often threads of a process stopped running; the count rests only while none of them runs."""
    count = 0
    with suppress(OSError):
        for status in Path(f"/proc/{pid}/task").glob("*/status"):
            with suppress(OSError):
                lines = status.read_text().splitlines()
                count += sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)
    return count


def _name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""
