"""The clock of a member: one setting for all its processes, also for those that come later.

The setting is the machine's as the member sees it: a process that starts anew goes on with it – from the moment on at
which we see it, some milliseconds after its start, later on a busy machine. Putting the clock
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

from faultline.harness.world.hosts.agent.clock_code import Setting, Skew
from faultline.harness.world.hosts.agent.clock_patch import ClockPatch, ClockView, PatchError, patch_of
from faultline.harness.world.hosts.agent.member import Member

__all__ = ["MemberClock", "refuse_rate", "refuse_wall"]

RATE_PPM_MIN, RATE_PPM_MAX = -900_000, 9_000_000
"""A clock that stands still or goes back is none; one ten times too fast suffices."""
_WALL_NS_MIN = 86_400 * 1_000_000_000
_ROUNDS = 50
_PATIENCE_S = 2.0
_PAUSE_S = 0.001
_HALF_SPEED_PPM = -500_000


class MemberClock:
    """The clock of `member`. Untouched, and nothing is done, until it is first set. Methods raise PatchError."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._setting = Setting()
        self._patches: dict[tuple[int, float], ClockPatch] = {}
        self._is_catching_up = False
        """Return whether the monotonic clock is ahead, and slowed down until it is right."""
        self._changed = False
        self.in_use = False

    def step(self, wall_ns: int, monotonic_ns: int = 0) -> None:
        """Step the wall clock; the monotonic clock too, forward only."""
        wall, monotonic = self._setting.wall.stepped(wall_ns), self._setting.monotonic.stepped(monotonic_ns)
        refuse_wall(wall)
        if monotonic_ns < 0:
            raise PatchError("a monotonic clock does not go back")
        self._follow(Setting(wall, monotonic))

    def drift(self, rate_ppm: int) -> None:
        """Let both kinds of clock run fast by `rate_ppm`, slow when negative."""
        refuse_rate(rate_ppm)
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
        deadline_s = time.monotonic() + _PATIENCE_S
        for _ in range(_ROUNDS):
            while unreached := self._adopt_once():
                # One that is about to end, or to become another program, is neither here nor there for a moment.
                if time.monotonic() > deadline_s:
                    raise unreached[0]
                time.sleep(_PAUSE_S)
            if not self._changed:
                return

    def view(self) -> ClockView:
        """Return the view farthest from the setting; the setting itself while the member does not run."""
        seen = self._views()
        expected = self._expected()
        if not seen:
            return expected
        return max(seen, key=lambda view: abs(view.wall_off_ns - expected.wall_off_ns))

    def _views(self) -> list[ClockView]:
        """Return the view of each process; asked once more of a process that became another program in between."""
        for _ in range(_ROUNDS):
            self.adopt()
            seen = [_view(patch) for patch in self._patches.values()]
            if None not in seen or not self._running():
                return [view for view in seen if view is not None]
        raise PatchError("the processes become other programs without end")

    def _expected(self) -> ClockView:
        wall_ns = self._setting.wall.at(time.clock_gettime_ns(time.CLOCK_REALTIME))
        monotonic_ns = self._setting.monotonic.at(time.clock_gettime_ns(time.CLOCK_MONOTONIC))
        return ClockView(wall_ns, monotonic_ns, self._setting)

    def _follow(self, setting: Setting) -> None:
        self.in_use = True
        self._setting = setting
        self.adopt()

    def _adopt_once(self) -> list[PatchError]:
        """Reach all processes once; return the errors of those out of reach. Set `_changed` when any was changed."""
        errors, running = {}, self._running()
        self._changed = False
        self._patches = {key: patch for key, patch in self._patches.items() if key in running}
        for key in running:
            try:
                self._changed |= self._reach(key)
            except PatchError as error:
                errors[key] = error
        # One that has ended meanwhile needs no clock.
        still_running = self._running() if errors else []
        return [error for key, error in errors.items() if key in still_running]

    def _reach(self, key: tuple[int, float]) -> bool:
        patch = self._patches.get(key)
        if patch is None or not patch.is_in_force():
            # New, or another program since: its vDSO is elsewhere.
            patch = self._patches[key] = patch_of(key[0])
        return patch.follow(self._setting)

    def _running(self) -> list[tuple[int, float]]:
        """Return the processes now, each with the time of its start: another one may have its number later."""
        found = []
        for pid in self._member.processes():
            started = _started(pid)
            if started is not None:
                found.append((pid, started))
        return found


def refuse_wall(skew: Skew) -> None:
    """Raise PatchError when a wall clock that is off by `skew` would stand before 1970 now."""
    now_ns = time.clock_gettime_ns(time.CLOCK_REALTIME)
    if now_ns + skew.at(now_ns) < _WALL_NS_MIN:
        raise PatchError("no clock goes back behind 1970")


def refuse_rate(rate_ppm: int) -> None:
    """Raise PatchError when no clock is to drift by so much."""
    if not RATE_PPM_MIN <= rate_ppm <= RATE_PPM_MAX:
        raise PatchError(f"clocks drift by {RATE_PPM_MIN} to {RATE_PPM_MAX} parts per million, not by {rate_ppm}")


def _view(patch: ClockPatch) -> ClockView | None:
    """Return the view of a process; None for one that has ended or become another program."""
    try:
        return patch.view()
    except (PatchError, OSError):
        return None


def _started(pid: int) -> float | None:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return float(stat.read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return None
