"""Calmer plans: each value of the weather and of the options at its default, fewer nodes and clients, shorter faults.

A plan from which no operation and no fault can be taken out may still have a slow disk, seven nodes and a cut of two
seconds, none of which the violation needs. Each function here tries simpler plans in a fixed order, and keeps those
that `still_fails` accepts: the result depends on the plan and on its answers alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from faultline.harness.conditions import contradictions
from faultline.harness.options import all_options, effective_options, flat_options
from faultline.harness.plan import Plan, PlannedOperation, Trigger, Weather, answers_needed
from faultline.harness.racks import without_other_nodes
from faultline.harness.system import NodeSystem, functions_options, planted_options
from faultline.harness.universe import domains_of, usual_nodes_of

__all__ = ["Test", "calm_values", "calmed", "earlier_events", "fewer_nodes_and_workers", "shorter_faults", "values_of"]

Test = Callable[[Plan], bool]
"""A function that tells whether a plan still fails in the same way."""

_NOT_CALMED = ("operations", "faults", "aimed", "racks")
"""Drawn values that have no calm one: shrinking takes operations, faults and nodes out of the plan instead."""

_DURATIONS_US = tuple(1_000 * each for each in (10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000))
"""The durations that are tried for a shorter fault."""


def calm_values(plan: Plan, system: NodeSystem, still_fails: Test) -> Plan:
    """Return `plan` with as many values of its weather and options at their defaults as leave it failing: all of them
    at once, or else one by one."""
    plan = replace(plan, universe=_without(plan, _NOT_CALMED))
    values = values_of(plan, system)
    for names in (tuple(values), *((name,) for name in values)):
        candidate = calmed(plan, system, names)
        if candidate != plan and not any(contradictions(candidate.weather)) and still_fails(candidate):
            plan = candidate
    return plan


def values_of(plan: Plan, system: NodeSystem) -> dict[str, str]:
    """Return the values of weather and options that differ from the defaults, by their names in a universe.

    Options that the planted bugs or the operations need have no other value.
    """
    usual, calm = Weather(), _calm_options(plan, system)
    weather = {
        f"weather.{name}": str(getattr(plan.weather, name))
        for name in Weather.__struct_fields__
        if getattr(plan.weather, name) != getattr(usual, name)
    }
    options = {
        f"option.{name}": value for name, value in flat_options(plan.options).items() if value != calm.get(name, value)
    }
    return weather | options


def calmed(plan: Plan, system: NodeSystem, names: Collection[str]) -> Plan:
    """Return `plan` with the values called `names`, as in `values_of`, at their defaults."""
    usual, calm = Weather(), _calm_options(plan, system)
    kinds = [name.partition(".") for name in names]
    weather = {name: getattr(usual, name) for kind, _, name in kinds if kind == "weather"}
    options = {name: calm[name] for kind, _, name in kinds if kind == "option"}
    return replace(
        plan,
        weather=replace(plan.weather, **weather),
        options=effective_options(system, flat_options(plan.options) | options, plan.planted_bugs),
        universe=_without(plan, names),
    )


def fewer_nodes_and_workers(plan: Plan, system: NodeSystem, still_fails: Test) -> Plan:
    """Return `plan` with the fewest nodes, among the numbers that the universes of `system` have, and then with the
    fewest workers with which it still fails.

    The usual number of nodes, and as many workers as the operations name, are not told as drawn.
    """
    for candidates in (_with_fewer_nodes, _with_fewer_workers):
        plan = next((each for each in candidates(plan, system) if still_fails(each)), plan)
    usual = ["nodes"] * (len(plan.nodes) == usual_nodes_of(system)) + ["workers"] * (plan.workers == _needed(plan))
    return replace(plan, universe=_without(plan, usual))


def shorter_faults(plan: Plan, still_fails: Test) -> Plan:
    """Return `plan` with each fault, one after the other, for the shortest round time with which it still fails.

    The times are bisected: a fault that is too short at one time is taken to be too short at all smaller ones.
    """
    for place, fault in enumerate(plan.faults):
        shorter = [each for each in _DURATIONS_US if each < fault.duration_us]
        low, high = 0, len(shorter)
        while low < high:
            middle = (low + high) // 2
            changed = replace(fault, duration_us=shorter[middle])
            candidate = replace(plan, faults=(*plan.faults[:place], changed, *plan.faults[place + 1 :]))
            if still_fails(candidate):
                plan, high = candidate, middle
            else:
                low = middle + 1
    return plan


def earlier_events(plan: Plan, still_fails: Test) -> Plan:
    """Return `plan` with each trigger at the first event, or else the least ordinal, at which it still fails, and then
    without a delay where that is possible."""
    for place, fault in enumerate(plan.faults):
        trigger = fault.trigger
        if trigger is UNSET:
            continue
        for ordinal in range(1, trigger.ordinal):
            candidate = _with_trigger(plan, place, replace(trigger, ordinal=ordinal))
            if still_fails(candidate):
                plan, trigger = candidate, replace(trigger, ordinal=ordinal)
                break
        candidate = _with_trigger(plan, place, replace(trigger, delay_us=0))
        if trigger.delay_us and still_fails(candidate):
            plan = candidate
    return plan


def _with_trigger(plan: Plan, place: int, trigger: Trigger) -> Plan:
    changed = replace(plan.faults[place], trigger=trigger)
    return replace(plan, faults=(*plan.faults[:place], changed, *plan.faults[place + 1 :]))


def _with_fewer_nodes(plan: Plan, system: NodeSystem) -> Iterator[Plan]:
    for count in range(min(domains_of(system).nodes), len(plan.nodes)):
        drawn = _without(plan, ())
        if drawn is not UNSET and "nodes" in drawn:
            drawn["nodes"] = str(count)
        nodes = plan.nodes[:count]
        racks = without_other_nodes(plan.racks, nodes) if plan.racks else UNSET
        yield replace(plan, nodes=nodes, universe=drawn, racks=racks)


def _with_fewer_workers(plan: Plan, _system: NodeSystem) -> Iterator[Plan]:
    """Yield `plan` with two workers made one, with the workers numbered anew, and without those after the last used.

    Only the last of the three keeps each client at its node.
    """
    used = sorted(_workers_named(plan))
    numbered = {worker: number for number, worker in enumerate(used)}
    folded = {worker: min(number, max(0, len(used) - 2)) for worker, number in numbered.items()}
    for numbers in (folded, numbered, {worker: worker for worker in used}):
        count = 1 + max(numbers.values(), default=0)
        operations = tuple(_numbered(each, numbers) for each in plan.operations)
        if (count, operations) != (plan.workers, plan.operations):
            yield replace(plan, workers=count, operations=operations, universe=_without(plan, ["workers"]))


def _needed(plan: Plan) -> int:
    """Return the fewest workers that the operations of `plan` name."""
    return 1 + max(_workers_named(plan), default=0)


def _workers_named(plan: Plan) -> set[int]:
    return {one.worker for one in plan.operations} | {one.worker for one in answers_needed(plan)}


def _numbered(operation: PlannedOperation, numbers: Mapping[int, int]) -> PlannedOperation:
    answer_of = operation.answer_of
    if answer_of is not UNSET:
        answer_of = replace(answer_of, worker=numbers[answer_of.worker])
    return replace(operation, worker=numbers[operation.worker], answer_of=answer_of)


def _without(plan: Plan, names: Collection[str]) -> dict[str, str] | UnsetType:
    """Return the drawn values of `plan`, if there are any, without those called `names`."""
    if plan.universe is UNSET:
        return UNSET
    return {name: value for name, value in plan.universe.items() if name not in names}


def _calm_options(plan: Plan, system: NodeSystem) -> dict[str, str]:
    defaults = {name: one.default for name, one in all_options(system).items()}
    functions = sorted({operation.f for operation in plan.operations})
    return (
        defaults
        | flat_options(functions_options(system, functions))
        | flat_options(planted_options(system, plan.planted_bugs))
    )
