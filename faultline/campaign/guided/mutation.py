"""Changes of one value in the plan of an earlier run: an option, the weather, a fault, or the seed of its chances.

The operations of the parent stay, and but for a change of the seed its chances too: until the changed value matters,
the new run goes as that of the parent did. A change that planning refuses is drawn again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Literal, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from faultline.harness.conditions import weather_of
from faultline.harness.errors import UsageError
from faultline.harness.generator.chance import chance_of_text
from faultline.harness.nemesis import AimablePackage, CombinedPackage, FaultPackage, StrikesRacks
from faultline.harness.options import flat_options
from faultline.harness.parts import Parts
from faultline.harness.plan import Plan, PlannedFault, Weather
from faultline.harness.planning import SIMULATED_START_US, changed_plan, packages_of
from faultline.harness.request import RunRequest
from faultline.harness.triggers import possible_events
from faultline.harness.universe import AIMED, WEATHER, domains_of, kept_options, option_values, weather_value
from faultline.nemesis.packages import quarrel

__all__ = ["CHANGES", "ChangeKind", "changeable_options", "changed"]

ChangeKind = Literal["option", "weather", "fault", "aim", "seed"]

CHANGES: tuple[ChangeKind, ...] = ("option", "weather", "fault", "aim", "seed")
"""The kinds of change: `fault` takes a fault out or adds one, `aim` adds faults that strike at an event."""

_ATTEMPTS = 20
_FAULTS_MAX = 30
_AIMED_AT_ONCE = 2


class _Change(NamedTuple):
    """The circumstances of one attempt: the request of the run, its parts, a wish that comes first, and the chances."""

    request: RunRequest
    parts: Parts
    wish: str
    rng: Random


def changeable_options(request: RunRequest, parts: Parts) -> dict[str, tuple[str, ...]]:
    """Return the values of each option that may be changed: those that neither the user nor the workload set."""
    kept = flat_options(kept_options(request, parts.system, parts.workload.functions))
    values = option_values(parts.system, domains_of(parts.system))
    return {name: each for name, each in values.items() if name not in kept and len(each) > 1}


def changed(parent: Plan, kind: ChangeKind, wish: str, request: RunRequest, parts: Parts) -> Plan | None:
    """Return the plan of `parent` with one change of `kind`, under the seed of `request`; None when none is legal.

    The `wish`, an option value or the name of an event, is tried first.
    """
    change, rng = _CHANGES[kind], Random(chance_of_text("guided", request.cell, request.seed))
    for attempt in range(_ATTEMPTS):
        plan = change(parent, _Change(request, parts, "" if attempt else wish, rng))
        if plan is None or plan == parent:
            continue
        chances = UNSET if kind == "seed" else parent.seed_of_chances
        try:
            renamed = replace(plan, seed=request.seed, chance_seed=chances)
            return changed_plan(renamed, parts, beyond_promise=request.beyond_promise)
        except UsageError:
            continue
    return None


def _option(parent: Plan, change: _Change) -> Plan | None:
    values = changeable_options(change.request, change.parts)
    if not values:
        return None
    name, _, value = change.wish.partition("=")
    if value not in values.get(name, ()):
        name = change.rng.choice(sorted(values))
        value = change.rng.choice(values[name])
    options = flat_options(parent.options)
    # Settings that have their default, the first of the values, are not written.
    if options.get(name, values[name][0]) == value:
        return None
    return replace(parent, options=options | {name: value}, universe=_drawn(parent, f"option.{name}", value))


def _weather(parent: Plan, change: _Change) -> Plan | None:
    domains, given = domains_of(change.parts.system).weather, change.request.weather or {}
    fields = [name for name in WEATHER if name not in given and domains.get(name, WEATHER[name])]
    if not fields:
        return None
    name = change.rng.choice(fields)
    value = change.rng.choice((weather_value(Weather(), name), *domains.get(name, WEATHER[name])))
    if value == weather_value(parent.weather, name):
        return None
    weather = weather_of({name: value}, parent.weather)
    return replace(parent, weather=weather, universe=_drawn(parent, f"weather.{name}", str(value)))


def _fault(parent: Plan, change: _Change) -> Plan | None:
    faults, rng = parent.faults, change.rng
    if len(faults) > 1 and (rng.random() < 0.5 or len(faults) >= _FAULTS_MAX):
        place = rng.randrange(len(faults))
        return replace(parent, faults=(*faults[:place], *faults[place + 1 :]))
    name, package = _some_package(parent, change)
    if package is None:
        return None
    timed = [each for each in _planned(parent, package, rng) if each.trigger is UNSET and _fits(each, faults)]
    return _with_faults(parent, name, [rng.choice(timed)]) if timed else None


def _aim(parent: Plan, change: _Change) -> Plan | None:
    events = possible_events(change.parts.system, parent.options)
    name, package = _some_package(parent, change)
    if not events or not isinstance(package, AimablePackage) or len(parent.faults) >= _FAULTS_MAX:
        return None
    package, rng = package.aimed_too(), change.rng
    if not isinstance(package, AimablePackage) or not package.is_aimed:
        return None
    event = change.wish if change.wish in events else rng.choice(events)
    waiting = [each for each in _planned(parent, package.at_events((event,)), rng) if each.trigger is not UNSET]
    if not waiting:
        return None
    chosen = rng.sample(waiting, min(len(waiting), rng.randint(1, _AIMED_AT_ONCE)))
    plan = _with_faults(parent, name, chosen)
    return replace(plan, universe=_drawn(plan, AIMED, "on"))


def _seed(parent: Plan, _change: _Change) -> Plan:
    return replace(parent, seed=parent.seed + 1)


_CHANGES: Mapping[ChangeKind, Callable[[Plan, _Change], Plan | None]] = {
    "option": _option,
    "weather": _weather,
    "fault": _fault,
    "aim": _aim,
    "seed": _seed,
}


def _drawn(plan: Plan, name: str, value: str) -> dict[str, str]:
    """Return the drawn values of `plan` with one of them changed."""
    return (plan.universe or {}) | {name: value}


def _some_package(parent: Plan, change: _Change) -> tuple[str, FaultPackage | None]:
    """Return the name of one of the fault packages of the cell, and that package; None when the cell has none."""
    if not parent.fault_set:
        return "", None
    name, package = change.rng.choice(parent.fault_set), change.parts.package
    alone = len(parent.fault_set) == 1 or not isinstance(package, CombinedPackage)
    return name, package if alone or not isinstance(package, CombinedPackage) else package.only((name,))


def _planned(parent: Plan, package: FaultPackage, rng: Random) -> tuple[PlannedFault, ...]:
    """Return the faults of another seed of `package`, for the racks of `parent` where it has some."""
    if parent.racks is not UNSET and isinstance(package, StrikesRacks):
        package = package.in_racks(len(parent.racks))
    return package.plan(
        seed=rng.getrandbits(32), nodes=parent.nodes, start_us=SIMULATED_START_US, end_us=parent.heal_us
    )


def _fits(fault: PlannedFault, others: tuple[PlannedFault, ...]) -> bool:
    """Return whether no other fault acts on the same while `fault` is in force."""
    return not any(
        other.trigger is UNSET
        and quarrel(fault.kind, other.kind)
        and fault.at_us <= other.stop_us
        and other.at_us <= fault.stop_us
        for other in others
    )


def _with_faults(parent: Plan, name: str, more: list[PlannedFault]) -> Plan:
    """Return `parent` with `more` faults, which the package `name` planned."""
    faults = tuple(sorted((*parent.faults, *more), key=lambda each: (each.at_us, each.kind)))
    universe = parent.universe
    if len(parent.fault_set) > 1:
        known = packages_of(parent)
        names = [each for each in parent.fault_set if each in known or each == name]
        universe = _drawn(parent, "faults", "+".join(names))
    return replace(parent, faults=faults, universe=universe)
