"""The agent's conversation with the harness: a question per line of its input, an answer per line of its output.

Both are JSON: a question is `{"do": NAME, ...}`, an answer `{"answer": ...}` or `{"error": "why not"}`. The end of
standard input is the end of the harness, however it came about: the agent then undoes everything, and ends. Between
questions it looks for processes that have come since, while a fault is in force that is meant for them too.
"""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from faultline.harness.world.hosts.agent.clock_patch import PatchError
from faultline.harness.world.hosts.agent.control_groups import ControlGroup, GroupError, Tree, find_trees
from faultline.harness.world.hosts.agent.freezing import Freezer, GroupFreezer, SignalFreezer
from faultline.harness.world.hosts.agent.limits import CpuSqueeze, MemorySqueeze
from faultline.harness.world.hosts.agent.member import Member
from faultline.harness.world.hosts.agent.member_clock import MemberClock
from faultline.harness.world.hosts.agent.preload import Preload
from faultline.harness.world.hosts.agent.preloaded_clock import PreloadedClock
from faultline.harness.world.hosts.agent.ptrace import release_late_threads
from faultline.harness.world.hosts.agent.real_clock import RealClock
from faultline.harness.world.hosts.agent.self_test import (
    clock_refusal,
    cpu_refusal,
    freeze_refusal,
    memory_refusal,
    preload_refusal,
    real_clock_refusal,
)

__all__ = ["Agent", "main"]

_LOOK_S_MIN, _LOOK_S_MAX = 0.01, 0.1
_READ_BYTES = 65_536
_NOT_ASKED_FOR = 'its host file does not say clock = "real"'


class Agent:
    """The actions on one member on this host. `group` names its control groups: `faultline-SET/MEMBER`."""

    def __init__(self, member: Member, group: str, clock: MemberClock | PreloadedClock | RealClock) -> None:
        self._member = member
        self._group = group
        self._clock = clock
        self._freezer: Freezer | None = None
        self._cpu: CpuSqueeze | None = None
        self._memory: MemorySqueeze | None = None
        self._trees = _trees()
        self._squeezed: set[str] = set()
        self._seen: list[int] = []
        self._wait_s = _LOOK_S_MIN
        self._actions: dict[str, Callable[..., Any]] = {
            "examine": self.examine,
            "step": self._step,
            "drift": self._drift,
            "reset": self._reset,
            "adopt": self._adopt,
            "clock": self._view,
            "preload": self._preload,
            "preloading": self._refuse_unfit,
            "rewrite": self._rewrite,
            "freeze": self._freeze,
            "thaw": self._thaw,
            "frozen": self._is_frozen,
            "squeeze-cpu": self._squeeze_cpu,
            "cpu": self._cpu_limit,
            "squeeze-memory": self._squeeze_memory,
            "memory": self._memory_limit,
            "lift": self._lift,
        }

    def perform(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to one question."""
        action = self._actions.get(question.pop("do", ""))
        if action is None:
            return {"error": "that is no question this agent knows"}
        try:
            return {"answer": action(**question)}
        except (PatchError, GroupError, OSError) as error:
            return {"error": str(error)}

    def look_after(self) -> float | None:
        """Reach processes that have come since; answers when to look again, in seconds, or None for never."""
        release_late_threads()
        if not self._clock.in_use and not self._squeezed:
            return None
        # A question about it is answered with the reason; a part that fails must not keep the others from working.
        with suppress(PatchError, GroupError, OSError):
            self._clock.adopt()
            if self._cpu is not None and "cpu" in self._squeezed:
                self._cpu.adopt(self._member.processes)
            if self._memory is not None and "memory" in self._squeezed:
                self._memory.adopt(self._member.processes)
        return self._pause_s()

    def _pause_s(self) -> float:
        """Return a pause: short while the member starts or changes, longer while nothing happens."""
        processes = self._member.processes()
        calm = bool(processes) and processes == self._seen
        self._seen, self._wait_s = processes, min(2 * self._wait_s, _LOOK_S_MAX) if calm else _LOOK_S_MIN
        return self._wait_s

    def close(self) -> None:
        """Undo all limits and give the clock back."""
        with suppress(PatchError, OSError):
            self._clock.reset()
        if isinstance(self._clock, PreloadedClock):
            self._clock.close()
        for fault in (self._freezer, self._cpu, self._memory):
            if fault is not None:
                with suppress(GroupError, OSError):
                    fault.close()

    def examine(self) -> dict[str, Any]:
        """Return why each fault cannot be injected here, empty when it can; and the means of freezing processes.

        For clocks there is a reason against each means, and the `kind` that the host file asks for.
        """
        is_real = isinstance(self._clock, RealClock)
        answer = {"vdso": clock_refusal(), "libfaketime": preload_refusal(_shared_name(self._group))}
        answer["kind"] = "real" if is_real else "process"
        answer["real"] = real_clock_refusal() if is_real else _NOT_ASKED_FOR
        answer["freeze"], answer["means"] = freeze_refusal(self._best_freezer()), self._best_freezer().means
        answer["cpu-squeeze"] = cpu_refusal(self._make_cpu)
        answer["memory-squeeze"] = memory_refusal(self._make_memory)
        return answer

    def _control_group(self, controller: str) -> ControlGroup:
        tree = self._trees.get(controller)
        if tree is None:
            raise GroupError(f"no control groups for {controller} are mounted")
        return ControlGroup(tree, self._group)

    def _best_freezer(self) -> Freezer:
        if self._freezer is None:
            try:
                self._freezer = GroupFreezer(self._control_group("freezer"))
            except GroupError:
                self._freezer = SignalFreezer()
        return self._freezer

    def _make_cpu(self) -> CpuSqueeze:
        if self._cpu is None:
            self._cpu = CpuSqueeze(self._control_group("cpu"))
        return self._cpu

    def _make_memory(self) -> MemorySqueeze:
        if self._memory is None:
            self._memory = MemorySqueeze(self._control_group("memory"))
        return self._memory

    def _step(self, wall_ns: int, monotonic_ns: int = 0) -> None:
        self._clock.step(wall_ns, monotonic_ns)

    def _drift(self, rate_ppm: int) -> None:
        self._clock.drift(rate_ppm)

    def _reset(self) -> None:
        self._clock.reset()

    def _adopt(self) -> None:
        self._clock.adopt()

    def _view(self, has_answered: bool = False) -> dict[str, int]:
        clock = self._clock
        view = clock.view(has_answered=has_answered) if isinstance(clock, PreloadedClock) else clock.view()
        return {
            "wall_off_ns": view.wall_off_ns,
            "monotonic_off_ns": view.monotonic_off_ns,
            "rate_ppm": view.setting.wall.rate_ppm,
        }

    def _preload(self) -> list[str]:
        """Return the words before the member's command; none where its programs need no library."""
        return self._clock.launcher() if isinstance(self._clock, PreloadedClock) else []

    def _refuse_unfit(self) -> None:
        if isinstance(self._clock, PreloadedClock):
            self._clock.refuse_unfit()

    def _rewrite(self) -> None:
        if isinstance(self._clock, PreloadedClock):
            self._clock.rewrite()

    def _freeze(self) -> str:
        freezer = self._best_freezer()
        freezer.freeze(self._member.processes)
        return freezer.means

    def _thaw(self) -> None:
        if self._freezer is not None:
            self._freezer.thaw(self._member.processes)

    def _is_frozen(self) -> bool:
        return self._freezer is not None and self._freezer.is_frozen(self._member.processes)

    def _squeeze_cpu(self, share: float) -> None:
        self._squeezed.add("cpu")
        self._make_cpu().squeeze(self._member.processes, share)

    def _cpu_limit(self) -> float:
        return self._cpu.limit() if self._cpu is not None else 0.0

    def _squeeze_memory(self, headroom_bytes: int) -> None:
        self._squeezed.add("memory")
        self._make_memory().squeeze(self._member.processes, headroom_bytes)

    def _memory_limit(self) -> dict[str, int]:
        if self._memory is None or "memory" not in self._squeezed:
            return {"limit": 0, "killed": 0}
        return {"limit": self._memory.limit(), "killed": self._memory.killed()}

    def _lift(self) -> None:
        for name, squeeze in (("cpu", self._cpu), ("memory", self._memory)):
            if squeeze is not None and name in self._squeezed:
                squeeze.lift()
        self._squeezed.clear()


def main(arguments: list[str]) -> None:
    """Run as `agent PID_FILE supervisor|node GROUP vdso|libfaketime|real`, until standard input ends."""
    pid_file, kind, group, means = arguments
    member = Member(pid_file, supervisor=kind == "supervisor")
    agent = Agent(member, group, _clock(means, member, group, f"{os.path.dirname(pid_file)}.clock"))
    try:
        _converse(agent)
    finally:
        agent.close()


def _shared_name(group: str) -> str:
    return group.replace("/", "-")


def _clock(means: str, member: Member, group: str, file: str) -> MemberClock | PreloadedClock | RealClock:
    if means == "libfaketime":
        return PreloadedClock(member, Preload(_shared_name(group), file))
    return RealClock() if means == "real" else MemberClock(member)


def _converse(agent: Agent) -> None:
    waiting, wait_s = b"", None
    while True:
        if select.select([0], [], [], wait_s)[0]:
            heard = os.read(0, _READ_BYTES)
            if not heard:
                return
            *lines, waiting = (waiting + heard).split(b"\n")
            for line in lines:
                sys.stdout.write(json.dumps(agent.perform(json.loads(line))) + "\n")
                sys.stdout.flush()
        wait_s = agent.look_after()


def _trees() -> dict[str, Tree]:
    with suppress(OSError), open("/proc/self/mountinfo") as mounts, open("/proc/self/cgroup") as groups:
        return find_trees(mounts.read(), groups.read())
    return {}
