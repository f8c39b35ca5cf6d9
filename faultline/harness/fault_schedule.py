"""The faults of a plan, carried out on a fault port: each one is proved, and its real effect is recorded.

All worlds share it. The world calls `start`, `tick`, `stop` and `heal` at the planned times; the schedule resolves the
target, verifies the fault, and writes it into the history and into the list of intervals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from faultline.harness.history import History
from faultline.harness.nemesis import Injection
from faultline.harness.parts import Parts
from faultline.harness.plan import EVENT_NODE, Plan, PlannedFault
from faultline.harness.run_record import FaultInterval
from faultline.harness.world.faults import FaultPort
from faultline.harness.world.ports import NodeId

__all__ = ["FaultSchedule"]

_LEFT_OUT = "it had not begun when everything was healed"


class FaultSchedule:
    """The faults of one run. `now_us` is the world's true time; `errors` collects faults that did not bite or heal.

    `marks` counts the faults that took effect, by the nemesis's mark.
    """

    def __init__(
        self, plan: Plan, parts: Parts, port: FaultPort, history: History, now_us: Callable[[], int], errors: list[str]
    ) -> None:
        self._plan = plan
        self._parts = parts
        self._port = port
        self._history = history
        self._now_us = now_us
        self._errors = errors
        self._active: dict[int, tuple[Injection, FaultInterval]] = {}
        self._intervals: dict[int, FaultInterval] = {}
        self._healed = False
        self._due_before_us = plan.heal_us
        self.marks: dict[str, int] = {}

    def tick_us(self, number: int) -> int:
        """Return the interval at which `tick` is due while fault `number` lasts; 0 for never."""
        return self._parts.nemeses[self._plan.faults[number].kind].tick_us

    def is_active(self, number: int) -> bool:
        """Return whether fault `number` has started and has not stopped."""
        return number in self._active

    def start(self, number: int, node: str = "") -> None:
        """Inject fault `number` of the plan and prove that it took effect; its event, if any, happened on `node`."""
        if self._healed:
            return
        fault = self._plan.faults[number]
        if fault.target == EVENT_NODE:
            fault = msgspec.structs.replace(fault, target=node)
        nemesis = self._parts.nemeses[fault.kind]
        roles = self._port.roles()
        injection = nemesis.start(self._port, fault, self._plan.seed_of_chances)
        problem = nemesis.verify(self._port, injection)
        interval = FaultInterval(
            kind=fault.kind,
            target=fault.target,
            start_us=self._now_us(),
            stop_us=-1,
            nodes=injection.nodes,
            links=injection.links,
            roles=tuple(roles[NodeId(node)] for node in injection.nodes),
            description=injection.description + _occasion(fault),
            applied=problem,
        )
        if problem is None and (injection.nodes or injection.links):
            self.marks[nemesis.mark] = self.marks.get(nemesis.mark, 0) + 1
        elif problem is not None:
            self._errors.append(f"Fault {number} ({fault.kind} on {fault.target}) did not take effect: {problem}")
        self._active[number] = (injection, interval)
        self._record("start", number, interval)

    def tick(self, number: int, count: int) -> None:
        """Let a repeating fault act again."""
        if number in self._active:
            nemesis = self._parts.nemeses[self._plan.faults[number].kind]
            nemesis.tick(self._port, self._active[number][0], count)

    def stop(self, number: int) -> None:
        """End fault `number`; do nothing when it is not active."""
        if number not in self._active:
            return
        injection, interval = self._active.pop(number)
        self._parts.nemeses[interval.kind].stop(self._port, injection)
        self._close(number, interval)

    def cut_short(self) -> None:
        """Let the run end before its plan does: faults that are due later are not missed by the heal."""
        self._due_before_us = min(self._now_us(), self._due_before_us)

    def heal(self) -> None:
        """Undo every fault, in whatever state it is; no fault starts afterwards.

        A fault that was due and had not begun is among the intervals, as one that was not applied.
        """
        self._healed = True
        for problem in self._parts.heal(self._port):
            self._errors.append(f"Healing failed: {problem}")
        for number, (_, interval) in sorted(self._active.items()):
            self._close(number, interval)
        self._active.clear()
        self._note_those_left_out()
        self._history.fault("heal", {}, self._now_us())

    def intervals(self) -> list[FaultInterval]:
        """Return the faults as they happened, in order of the plan; one that is still active ends now."""
        running = {number: self._ended(interval) for number, (_, interval) in self._active.items()}
        return [interval for _, interval in sorted((self._intervals | running).items())]

    def _note_those_left_out(self) -> None:
        """Record faults that were due and never began, so that they do not look as if they had never been planned.

        One whose event did not come was not due.
        """
        now_us = self._now_us()
        for number, fault in enumerate(self._plan.faults):
            is_due = fault.at_us < self._due_before_us and fault.trigger is msgspec.UNSET
            if is_due and number not in self._intervals:
                interval = FaultInterval(
                    kind=fault.kind, target=fault.target, start_us=now_us, stop_us=-1, applied=_LEFT_OUT
                )
                self._record("start", number, interval)
                self._close(number, interval)

    def _close(self, number: int, interval: FaultInterval) -> None:
        self._intervals[number] = self._ended(interval)
        self._record("stop", number, interval)

    def _ended(self, interval: FaultInterval) -> FaultInterval:
        return msgspec.structs.replace(interval, stop_us=self._now_us())

    def _record(self, event: str, number: int, interval: FaultInterval) -> None:
        value: dict[str, Any] = {"fault": number, "target": interval.target}
        if event == "start":
            value |= {"nodes": interval.nodes, "links": interval.links, "roles": interval.roles}
            value |= {"description": interval.description, "applied": interval.applied}
        self._history.fault(f"{event}-{interval.kind}", value, self._now_us())


def _occasion(fault: PlannedFault) -> str:
    """Return the event at which `fault` strikes, as it follows a description; nothing when it has a time."""
    return "" if fault.trigger is msgspec.UNSET else f", at {fault.trigger}"
