"""Triggers: the events at which a fault can be aimed, and the watch for them in a simulated run.

Rare bugs need a fault in a state that lasts for a millisecond: between a vote and its flush, or while one participant
has promised and another has not. A fault at a drawn time seldom meets it. A fault with a `Trigger` strikes when a node
reports that it is there. (Gunawi et al., "FATE and DESTINI", NSDI 2011, inject failures at points of the program too.)

The events of a system are those that its nodes report already: the trace events that its invariants observe, by the
name of their type, and the features that it declares. So a system needs to declare nothing for it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.feature import features_of, possible_features
from faultline.harness.invariant import Invariant, can_observe
from faultline.harness.options import flat_options
from faultline.harness.plan import ANY_NODE, EVENT_NODE, Plan, PlannedFault, Trigger
from faultline.harness.system import NodeSystem

__all__ = ["TriggerWatch", "event_names", "no_aim", "possible_events", "refuse_bad_triggers", "unknown_event"]

_ROLES = ("leader", "follower")
_TRACE_EVENT_WEIGHT = 4

Strike = Callable[[int, str], None]
"""Called with the number of a fault and the node on which its event happened."""


def event_names(system: NodeSystem) -> tuple[str, ...]:
    """Return the names of all events of `system`, sorted: of the trace events that its invariants observe, and of the
    features that it declares."""
    watched = {name for one in system.invariants() for name in _names_of_events(one)}
    return tuple(sorted({*watched, *(feature.name for feature in features_of(system))}))


def possible_events(system: NodeSystem, options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the events of `system` that may happen with these `options`, sorted, each as often as it is to be drawn.

    Most features are rare by their nature, so that a trace event stands there several times.
    """
    features = (feature.name for feature in possible_features(system, options))
    flat = flat_options(options)
    watched = {name for one in system.invariants() if can_observe(one, flat) for name in _names_of_events(one)}
    return tuple(sorted([*(sorted(watched) * _TRACE_EVENT_WEIGHT), *features]))


def unknown_event(name: str, system: NodeSystem) -> str:
    """Return a hint for an event that `system` does not have: the names that are nearest, or the first of all."""
    known = event_names(system)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if near:
        return f"Did you mean {' or '.join(near)}?"
    return f"It has {', '.join(known[:8])}{' …' if len(known) > 8 else ''}." if known else "It reports no event."


def no_aim(world: str) -> tuple[str, str]:
    """Return the refusal of faults with a trigger in `world`, which is not the simulated one, and what to do."""
    return (
        f"The {world} world cannot aim faults at events of nodes: it learns of an event when the node has gone on.",
        "Leave the fault set `aimed`, or the fault with a trigger, out, or run with --world simulated.",
    )


def refuse_bad_triggers(plan: Plan, system: NodeSystem, world: str) -> None:
    """Raise `UsageError` for a trigger that `world` cannot watch for, or that names what `system` or `plan` has not."""
    aimed = [fault for fault in plan.faults if fault.trigger is not msgspec.UNSET]
    if aimed and world != "simulated":
        raise UsageError(*no_aim(world))
    known = event_names(system) if aimed else ()
    for fault in plan.faults:
        trigger = fault.trigger
        if trigger is msgspec.UNSET:
            if fault.target == EVENT_NODE:
                raise UsageError(
                    f"A fault of the plan aims at {EVENT_NODE}, but has no trigger that names an event.",
                    "Give it a `trigger`, or another target.",
                )
        elif trigger.event not in known:
            raise UsageError(
                f"A {fault.kind} of the plan waits for {trigger.event!r}, an event that {system.name} does not have.",
                unknown_event(trigger.event, system),
            )
        elif trigger.node not in (ANY_NODE, *_ROLES, *plan.nodes):
            raise UsageError(
                f"A {fault.kind} of the plan waits for {trigger.event} on {trigger.node!r}, which is no node.",
                f"Use {ANY_NODE}, {', '.join(_ROLES)} or one of {', '.join(plan.nodes)}.",
            )


class TriggerWatch:
    """The triggers of one run: it counts the events that nodes report, and strikes at the one that a trigger names."""

    def __init__(self, plan: Plan, now_us: Callable[[], int], leader: Callable[[], str | None], strike: Strike) -> None:
        """`leader` tells the leader of the moment; `strike` is called within the step in which the event happens."""
        self._now_us = now_us
        self._leader = leader
        self._strike = strike
        self._counts: dict[int, int] = {}
        self._waiting: dict[str, list[tuple[int, PlannedFault, Trigger]]] = {}
        for number, fault, trigger in _triggered(plan):
            self._waiting.setdefault(trigger.event, []).append((number, fault, trigger))

    def seen(self, node: str, event: str) -> None:
        """Count `event` on `node`, and strike where it was the last that was waited for."""
        for number, fault, trigger in self._waiting.get(event, ()):
            if self._now_us() >= fault.at_us and self._matches(trigger.node, node):
                count = self._counts[number] = self._counts.get(number, 0) + 1
                if count == trigger.ordinal:
                    self._strike(number, node)

    def _matches(self, wanted: str, node: str) -> bool:
        if wanted in _ROLES:
            return (node == self._leader()) == (wanted == "leader")
        return wanted in (ANY_NODE, node)


def _names_of_events(invariant: Invariant) -> Iterator[str]:
    return (event.__name__ for event in invariant.events)


def _triggered(plan: Plan) -> Iterator[tuple[int, PlannedFault, Trigger]]:
    for number, fault in enumerate(plan.faults):
        if fault.trigger is not msgspec.UNSET:
            yield number, fault, fault.trigger
