"""The plan of a run of real processes, with the times and targets that the run turned out to have.

A plan says *the leader, after two seconds*; the history says *cyrene, after 2.031 s*. Every run keeps both: the plan
(`run.json`) has all draws of the generators, and the history has their effects, with real times and real targets.
`as_it_happened` joins the two into a plan that aims every fault at the nodes and links it hit and invokes every
operation when it was really invoked. Repeating that plan tests whether the *schedule* shows the finding; repeating the
original plan tests whether the *idea* does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from faultline.harness.history import FaultEvent, History
from faultline.harness.plan import Plan, PlannedFault, PlannedOperation
from faultline.harness.stored_faults import FaultBegun, fault_begun, fault_ended
from faultline.harness.untrusted import DamagedInput

__all__ = ["as_it_happened"]


def as_it_happened(plan: Plan, history: History) -> Plan:
    """Return `plan` with the operations and faults of `history` in place of its own ones.

    Operations that were never invoked and faults that were never injected are left out; a fault that never stopped
    lasts until the heal.
    """
    return msgspec.structs.replace(
        plan,
        operations=tuple(_operations(plan, history)),
        faults=tuple(_faults(plan, history)),
    )


def _operations(plan: Plan, history: History) -> Iterator[PlannedOperation]:
    """Yield the operations as they were invoked. One whose value depends on an answer depends on it again: the answers
    of another run may be others."""
    dependent: dict[tuple[int, str, str | None], list[PlannedOperation]] = {}
    for one in sorted(plan.operations, key=lambda one: one.at_us):
        if one.answer_of is not msgspec.UNSET:
            dependent.setdefault((one.worker, one.f, one.key), []).append(one)
    columns = zip(history.worker, history.invoke_us, history.f, history.key, history.value, strict=True)
    for worker, invoke_us, f, key, value in columns:
        left = dependent.get((worker, f, key), [])
        asked = value[:1] if isinstance(value, list) else ()
        place = next((number for number, one in enumerate(left) if asked == [one.value]), None)
        if place is None:
            yield PlannedOperation(worker, invoke_us, f, key, value)
        else:
            yield msgspec.structs.replace(left[place], at_us=invoke_us)
            # A worker that was late has left some of its operations out.
            del left[: place + 1]


def _faults(plan: Plan, history: History) -> Iterator[PlannedFault]:
    stops = {fault_ended(event).fault: event.time_us for event in history.faults if event.f.startswith("stop-")}
    for event in history.faults:
        if event.f.startswith("start-"):
            told = fault_begun(event)
            if told.fault >= len(plan.faults):
                cause = f"it names fault {told.fault}, but the plan has {len(plan.faults)} faults"
                raise DamagedInput("history.jsonl", cause, place=f"event {event.index}")
            stop_us = min(stops.get(told.fault, plan.heal_us), plan.heal_us)
            yield _decided(plan.faults[told.fault], event, told, stop_us)


def _decided(planned: PlannedFault, event: FaultEvent, told: FaultBegun, stop_us: int) -> PlannedFault:
    """Return `planned`, aimed at what it hit. A fault that hit no node stays as it was planned."""
    nodes, links = told.nodes, told.links
    argument: dict[str, Any] = planned.argument | ({"links": [list(link) for link in links]} if links else {})
    return PlannedFault(
        kind=planned.kind,
        at_us=event.time_us,
        duration_us=max(stop_us - event.time_us, 0),
        target="+".join(nodes) or planned.target,
        argument=argument,
    )
