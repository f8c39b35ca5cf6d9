"""The clock of a member: one setting for all its processes, also for those that come later.

The setting is the machine's as the member sees it: a process that starts anew goes on with it. Putting the clock
right ends all drift and puts the wall clock right at once. A monotonic clock never goes back: one that is behind jumps
forward, one that is ahead goes at half its speed until it is right.

What stays true, because it does not come from the vDSO: how long the kernel lets a process sleep, times in file
systems, and system calls made without the C library. So a wait *until* a time, which the program computes from what it
sees and the kernel counts by what is true, ends too late by as much as its clock is ahead, and too early when it is
behind. (Java and the C library wait like this for the monotonic clock, Go does not.)
"""

from __future__ import annotations

import os
import time

from faultline.hosts.agent.clock_code import Setting, Skew
from faultline.hosts.agent.clock_patch import ClockPatch, ClockView, PatchError, patched
from faultline.hosts.agent.member import Member

__all__ = ["MemberClock"]

RATE_PPM_MAX = 500_000
_WALL_NS_MIN = 86_400 * 1_000_000_000
_ROUNDS = 50
_HALF_SPEED_PPM = -500_000


class MemberClock:
    """The clock of `member`. Untouched, and nothing is done, until it is first set. Methods raise PatchError."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._setting = Setting()
        self._patches: dict[tuple[int, float], ClockPatch] = {}
        self._is_catching_up = False
        """Is the monotonic clock ahead, and slowed down until it is right?"""
        self.in_use = False

    def step(self, wall_ns: int, monotonic_ns: int = 0) -> None:
        """Step the wall clock; the monotonic clock too, forward only."""
        wall, monotonic = self._setting.wall.stepped(wall_ns), self._setting.monotonic.stepped(monotonic_ns)
        now_ns = time.clock_gettime_ns(time.CLOCK_REALTIME)
        if now_ns + wall.at(now_ns) < _WALL_NS_MIN:
            raise PatchError("no clock goes back behind 1970")
        if monotonic_ns < 0:
            raise PatchError("a monotonic clock does not go back")
        self._follow(Setting(wall, monotonic))

    def drift(self, rate_ppm: int) -> None:
        """Let both kinds of clock run fast by `rate_ppm`, slow when negative."""
        if abs(rate_ppm) > RATE_PPM_MAX:
            raise PatchError(f"clocks drift by at most {RATE_PPM_MAX} parts per million")
        wall, monotonic = self._setting
        self._is_catching_up = False
        self._follow(
            Setting(
                wall.drifting(rate_ppm, time.clock_gettime_ns(time.CLOCK_REALTIME)),
                monotonic.drifting(rate_ppm, time.clock_gettime_ns(time.CLOCK_MONOTONIC)),
            )
        )

    def reset(self) -> None:
        """Put the wall clock right, and the monotonic one without going back. Nothing to do when none was ever set."""
        if self.in_use:
            now_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            monotonic = self._setting.monotonic
            self._is_catching_up = monotonic.at(now_ns) > 0
            self._follow(
                Setting(Skew(), monotonic.drifting(_HALF_SPEED_PPM, now_ns) if self._is_catching_up else Skew())
            )

    def adopt(self) -> None:
        """Bring the setting to every process that does not have it, until none is left."""
        if not self.in_use:
            return
        if self._is_catching_up and self._expected().monotonic_off_ns <= 0:
            self._is_catching_up = False
            self._setting = self._setting._replace(monotonic=Skew())
        for _ in range(_ROUNDS):
            if not self._adopt_once():
                return
        raise PatchError("new processes appear without end")

    def view(self) -> ClockView:
        """What the process sees that is farthest from the setting; the setting itself while the member does not run."""
        self.adopt()
        expected = self._expected()
        seen = [patch.view() for patch in self._patches.values()]
        if not seen:
            return expected
        return max(seen, key=lambda view: abs(view.wall_off_ns - expected.wall_off_ns))

    def _expected(self) -> ClockView:
        wall_ns = self._setting.wall.at(time.clock_gettime_ns(time.CLOCK_REALTIME))
        monotonic_ns = self._setting.monotonic.at(time.clock_gettime_ns(time.CLOCK_MONOTONIC))
        return ClockView(wall_ns, monotonic_ns, self._setting)

    def _follow(self, setting: Setting) -> None:
        self.in_use = True
        self._setting = setting
        self.adopt()

    def _adopt_once(self) -> bool:
        """One look at all processes; did any have to be changed?"""
        changed, running = False, self._running()
        self._patches = {key: patch for key, patch in self._patches.items() if key in running}
        for key in running:
            try:
                changed |= self._reach(key)
            except (PatchError, OSError):
                # One that ends meanwhile needs no clock.
                if key in self._running():
                    raise
        return changed

    def _reach(self, key: tuple[int, float]) -> bool:
        patch = self._patches.get(key)
        if patch is None or not patch.is_in_force():
            self._patches[key] = patched(key[0], self._setting)
            return True
        if patch.setting() != self._setting:
            patch.set(self._setting)
            return True
        return False

    def _running(self) -> list[tuple[int, float]]:
        """The processes now, each with the time of its start: another one may have its number later."""
        found = []
        for pid in self._member.processes():
            started = _started(pid)
            if started is not None:
                found.append((pid, started))
        return found


def _started(pid: int) -> float | None:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return float(stat.read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return None
