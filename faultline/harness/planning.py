"""From a user's request to a plan: the request, its defaults and its checks, and the timetable of a run.

    0 ──boot── START ──operations and faults── heal ──settle── final reads ── end

Simulated runs are short and dense, real ones last as long as the user says.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import msgspec

from faultline.harness.access import access_of, reads_of_the_rest
from faultline.harness.commands import run_command
from faultline.harness.conditions import refuse_contradictions, refuse_weather, weather_of
from faultline.harness.errors import UsageError
from faultline.harness.floors import checked_floors
from faultline.harness.generator.simulate import planned_operations
from faultline.harness.nemesis import AimablePackage, CombinedPackage, FaultPackage, PacedPackage, StrikesRacks
from faultline.harness.options import MovedAway, effective_options, flat_options
from faultline.harness.parts import Parts
from faultline.harness.plan import NODE_NAMES, WORKERS_MAX, Plan, PlannedOperation, Weather, node_names
from faultline.harness.promises import Asked, answers_missing, isolation_promised, refuse_what_is_not_promised
from faultline.harness.racks import RACKS_USUAL, racks_of
from faultline.harness.recovery import RECOVERY_US_MAX
from faultline.harness.request import RunRequest
from faultline.harness.run import refuse_what_cannot_boot
from faultline.harness.system import HostedStore, NodeSystem, options_missing
from faultline.harness.triggers import no_aim, possible_events
from faultline.harness.universe import AIMED, DRAWS_MAX, domains_of, draws

__all__ = ["SIMULATED_START_US", "RunRequest", "changed_plan", "make_plan", "packages_of", "refuse_bad_numbers"]

SIMULATED_START_US = 600_000
"""The time of a simulated run from which operations and faults may be planned: the nodes have started by then."""

_SECOND_US = 1_000_000
_MOST_SIMULATED_NODES = 1_000
_OPERATIONS_MAX = 10_000_000
_DURATION_S_MAX = 30 * 24 * 3_600
_SIMULATED_US_PER_OPERATION = 20_000
_SIMULATED_SETTLE_US = 900_000
_REAL_SETTLE_US = 3 * _SECOND_US
_REAL_OPERATIONS_PER_SECOND = 150
_STORE_PERIOD_US = 3 * _SECOND_US
_LATENCY_US = 4_000
_SLOW_READ_US = 100_000
_FINAL_SPAN_US = 2_500_000
_REAL_FINAL_SPAN_US = 5 * _SECOND_US
_GRACE_US = 2_500_000
_FILLED_SHARE = 0.925


def make_plan(request: RunRequest, parts: Parts) -> Plan:
    """Return the plan of `request`: a pure function of it. Raise UsageError for names and numbers that cannot be
    used."""
    return _drawn_plan(request, parts) if request.universe else _plan(request, parts, weather_of(request.weather or {}))


def _drawn_plan(request: RunRequest, parts: Parts) -> Plan:
    """Return the plan of the first universe that can be carried out; the span of a run is that of the calm one."""
    if request.world != "simulated":
        raise UsageError(
            f"The {request.world} world has a weather of its own: universes are drawn in the simulated world only.",
            "Use --universe calm.",
        )
    refuse_bad_numbers(request)
    # The request itself is checked apart, so that its mistakes are not told as those of a universe.
    _options(request, parts)
    _refuse_missing_functions(parts)
    span_s = request.operations * _SIMULATED_US_PER_OPERATION / _SECOND_US
    spanned = msgspec.structs.replace(request, duration_s=request.duration_s or span_s)
    refused = ""
    for drawn in draws(spanned, parts.system, parts.workload.functions):
        package, values = _some_of(parts.package, drawn.request.faults, request.faults), drawn.values
        if drawn.aimed and _events(parts.system, drawn.request.options) and (aimed := _aimed_too(package)):
            package, values = aimed, values | {AIMED: "on"}
        asked, chosen = drawn.request, dataclasses.replace(parts, package=package)
        if asked.racks is msgspec.UNSET and _strikes_racks(package):
            asked = msgspec.structs.replace(asked, racks=min(drawn.racks, asked.nodes))
            values = values | {"racks": str(asked.racks)}
        try:
            refuse_contradictions(drawn.weather)
            refuse_what_cannot_boot(_without_operations(asked, chosen, drawn.weather), chosen)
            plan = _plan(asked, chosen, drawn.weather)
        except UsageError as error:
            refused = error.message
            continue
        return msgspec.structs.replace(plan, fault_set=request.faults, universe=values)
    raise UsageError(
        f"None of {DRAWS_MAX} universes drawn for {request.cell} can be planned. The last was refused: {refused}",
        "Give fewer options or other faults, declare narrower `domains` of the system, or use --universe calm.",
    )


def changed_plan(plan: Plan, parts: Parts, *, beyond_promise: bool = False) -> Plan:
    """Return `plan`, of which single values were changed after planning, with all that follows from its options.

    Raise UsageError where planning would have refused its options, weather or faults, or its nodes refuse to start.
    """
    request = RunRequest(
        system=plan.system,
        workload=plan.workload,
        faults=packages_of(plan),
        seed=plan.seed,
        planted_bugs=plan.planted_bugs,
        options=flat_options(plan.options),
        nodes=len(plan.nodes),
        workers=plan.workers,
        beyond_promise=beyond_promise,
    )
    chosen = dataclasses.replace(parts, package=_some_of(parts.package, request.faults, plan.fault_set))
    refuse_contradictions(plan.weather)
    bare = _without_operations(request, chosen, plan.weather)
    refuse_what_cannot_boot(bare, chosen)
    isolation = isolation_promised(parts.system, parts.workload, bare.options) or msgspec.UNSET
    # A change may bring the first fault of racks into a plan.
    racks = plan.racks or _racks(request, chosen.package, plan.nodes) or msgspec.UNSET
    return msgspec.structs.replace(plan, options=bare.options, isolation=isolation, racks=racks)


def packages_of(plan: Plan) -> tuple[str, ...]:
    """Return the names of the fault packages that planned the faults of `plan`: of a drawn universe, those drawn."""
    drawn = (plan.universe or {}).get("faults")
    return plan.fault_set if drawn is None else tuple(name for name in plan.fault_set if name in drawn.split("+"))


def _without_operations(request: RunRequest, parts: Parts, weather: Weather) -> Plan:
    """Return a plan of the nodes of `request` alone: most refusals come of them, and operations take long to plan."""
    return Plan(
        system=request.system,
        workload=request.workload,
        seed=request.seed,
        nodes=node_names(request.nodes),
        workers=request.workers,
        operations=(),
        options=_checked_options(request, parts, weather),
        planted_bugs=request.planted_bugs,
        heal_us=0,
        end_us=0,
    )


def _some_of(package: FaultPackage, names: tuple[str, ...], all_names: tuple[str, ...]) -> FaultPackage:
    """Return the part of `package` made of the packages called `names`, of `all_names`."""
    if names == all_names or not isinstance(package, CombinedPackage):
        return package
    return package.only(names)


def _plan(request: RunRequest, parts: Parts, weather: Weather) -> Plan:
    options = _checked_options(request, parts, weather)
    start_us, heal_us = _active_phase(request)
    settle_us, final_us = _final_phase(request)
    nodes = node_names(request.nodes)
    final_start_us = heal_us + settle_us
    count = _count(request, start_us, heal_us)
    operations = _operations(request, parts, count, start_us, heal_us)
    racks = _racks(request, parts.package, nodes)
    package = _package(request, parts, options, len(racks))
    final = _final_operations(request, parts, count, final_start_us, final_us)
    # Objects that the workload itself does not read are read last, when the system has had the longest time to recover.
    rest_us = max((one.at_us for one in final), default=final_start_us) + _LATENCY_US
    rest = tuple(reads_of_the_rest(access_of(parts.workload), operations, final, request.workers, rest_us))
    # The run ends with its last operation, so time for slow reads and slow recovery costs nothing where they are fast.
    last_us = rest_us + len(rest) // request.workers * _SLOW_READ_US
    return Plan(
        system=request.system,
        workload=request.workload,
        seed=request.seed,
        nodes=nodes,
        workers=request.workers,
        operations=(*operations, *final, *rest),
        faults=package.plan(seed=request.seed, nodes=nodes, start_us=start_us, end_us=heal_us),
        fault_set=request.faults,
        options=options,
        host_options=request.host_options,
        planted_bugs=request.planted_bugs,
        weather=weather,
        floors=checked_floors(request.floors),
        heal_us=heal_us,
        end_us=max(final_start_us + final_us, last_us, heal_us + RECOVERY_US_MAX) + _GRACE_US,
        stop_at_violation=request.stop_at_violation,
        isolation=isolation_promised(parts.system, parts.workload, options) or msgspec.UNSET,
        racks=racks or msgspec.UNSET,
    )


def _racks(request: RunRequest, package: FaultPackage, nodes: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the racks that the user gave, or that the faults need; none where neither is so."""
    if request.racks is not msgspec.UNSET:
        return racks_of(nodes, request.racks)
    return racks_of(nodes, min(RACKS_USUAL, len(nodes))) if _strikes_racks(package) else {}


def _strikes_racks(package: FaultPackage) -> bool:
    return isinstance(package, StrikesRacks) and package.strikes_racks


def _checked_options(request: RunRequest, parts: Parts, weather: Weather) -> dict[str, str]:
    """Return the options in force. Raise `UsageError` for a request that the system cannot serve or does not
    promise."""
    refuse_bad_numbers(request)
    options = _options(request, parts)
    _refuse_what_is_not_served(parts, options)
    if not request.beyond_promise:
        refuse_what_is_not_promised(parts.system, _asked(request, parts, options, weather))
    return options


def _options(request: RunRequest, parts: Parts) -> dict[str, str]:
    """Return the options in force. Raise `UsageError`, with the whole command for what is another system's now."""
    try:
        return effective_options(parts.system, request.options, request.planted_bugs)
    except MovedAway as moved:
        options = {name: value for name, value in request.options.items() if name not in moved.given_up}
        instead = msgspec.structs.replace(request, system=moved.system, options=options)
        raise UsageError(moved.message, f"Run `{run_command(instead)}`.") from moved


def _package(request: RunRequest, parts: Parts, options: Mapping[str, str], racks: int) -> FaultPackage:
    """Return the fault package for so many `racks`, with the events at which its faults may strike; for a store on
    hosts, paced: faults that never let it serve test nothing."""
    package = parts.package
    if racks and isinstance(package, StrikesRacks):
        package = package.in_racks(racks)
    if isinstance(package, AimablePackage) and package.is_aimed:
        events = _events(parts.system, options)
        if request.world != "simulated":
            raise UsageError(*no_aim(request.world))
        if not events:
            raise UsageError(
                f"{parts.system.name} reports no event at which a fault could be aimed.",
                "Leave the fault set `aimed` out, or declare features or invariants of the system.",
            )
        package = package.at_events(events)
    if isinstance(parts.system, HostedStore) and isinstance(package, PacedPackage):
        return package.paced(_STORE_PERIOD_US)
    return package


def _events(system: NodeSystem, options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the events at which faults in a run of `system` with these `options` may be aimed."""
    declared = domains_of(system).events
    return possible_events(system, options) if declared is None else declared


def _aimed_too(package: FaultPackage) -> FaultPackage | None:
    """Return `package` with faults at events as well, None when none of its kinds can be aimed."""
    aimed = package.aimed_too() if isinstance(package, AimablePackage) else None
    return aimed if isinstance(aimed, AimablePackage) and aimed.is_aimed else None


def refuse_bad_numbers(request: RunRequest) -> None:
    """Raise UsageError for numbers with which no run, or no run that ends, could be planned."""
    most = _MOST_SIMULATED_NODES if request.world == "simulated" else len(NODE_NAMES)
    if not 1 <= request.nodes <= most:
        raise UsageError(
            f"A {request.world} cluster has 1 to {most} nodes, not {request.nodes}.", "Use --nodes 3 or 5."
        )
    if request.workers < 1 or request.operations < 1:
        raise UsageError("A run needs at least one worker and one operation.", "Leave --workers and --operations out.")
    if request.workers > WORKERS_MAX or request.operations > _OPERATIONS_MAX:
        raise UsageError(
            f"A run has at most {WORKERS_MAX:,} workers and {_OPERATIONS_MAX:,} operations.", "Ask for fewer of them."
        )
    if request.duration_s is not None and not 0 < request.duration_s <= _DURATION_S_MAX:
        raise UsageError(f"A run cannot last {request.duration_s} s.", "Give --duration in seconds, such as 60.")
    refuse_weather(request.weather or {}, request.world)
    if request.seed < 0:
        raise UsageError(f"Seeds are whole numbers from 0, not {request.seed}.", "Use --seed 0.")


def _refuse_what_is_not_served(parts: Parts, options: Mapping[str, str]) -> None:
    system, workload = parts.system, parts.workload
    _refuse_missing_functions(parts)
    switched_off = {f: needed for f in workload.functions if (needed := options_missing(system, f, options))}
    if switched_off:
        asked = dict(setting for needed in switched_off.values() for setting in needed.items())
        raise UsageError(
            f"{system.name} serves the workload {workload.name} only with "
            f"{' and '.join(f'{name}={value}' for name, value in asked.items())}: without, it has no function "
            f"{_either(list(switched_off))}.",
            f"Add {' '.join(f'--option {name}={value}' for name, value in asked.items())}, or to a plan's [options].",
        )


def _refuse_missing_functions(parts: Parts) -> None:
    system, workload = parts.system, parts.workload
    missing = [f for f in workload.functions if f not in system.functions]
    if missing:
        raise UsageError(
            f"{system.name} cannot serve the workload {workload.name}: it has no function {_either(missing)}.",
            f"It has {', '.join(system.functions)}. `faultline list workloads` lists what each workload needs.",
        )
    form = answers_missing(system, workload)
    if form is not None:
        raise UsageError(
            f"{system.name} cannot serve the workload {workload.name}: its answers do not have the form {form}.",
            "`faultline list workloads` tells which systems serve it.",
        )


def _asked(request: RunRequest, parts: Parts, options: Mapping[str, str], weather: Weather) -> Asked:
    return Asked(
        workload=parts.workload.name,
        functions=parts.workload.functions,
        options=options,
        nodes=request.nodes,
        faults=request.faults,
        fault_kinds=frozenset(parts.package.kinds),
        weather=weather,
    )


def _either(names: Sequence[str]) -> str:
    """Return `names` as a list of alternatives: `put, delete or list`."""
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _active_phase(request: RunRequest) -> tuple[int, int]:
    if request.world != "simulated":
        return 0, int((request.duration_s or 30) * _SECOND_US)
    if request.duration_s is not None:
        return SIMULATED_START_US, SIMULATED_START_US + int(request.duration_s * _SECOND_US)
    return SIMULATED_START_US, SIMULATED_START_US + request.operations * _SIMULATED_US_PER_OPERATION


def _final_phase(request: RunRequest) -> tuple[int, int]:
    if request.world != "simulated":
        return _REAL_SETTLE_US, _REAL_FINAL_SPAN_US
    return _SIMULATED_SETTLE_US, _FINAL_SPAN_US


def _operations(
    request: RunRequest, parts: Parts, count: int, start_us: int, end_us: int
) -> tuple[PlannedOperation, ...]:
    generator = parts.workload.generator(
        workers=request.workers,
        operations=count,
        seed=request.seed,
        interval_us=int(_FILLED_SHARE * (end_us - start_us) / count),
    )
    return planned_operations(
        generator, workers=request.workers, seed=request.seed, latency_us=_LATENCY_US, start_us=start_us, end_us=end_us
    )


def _final_operations(
    request: RunRequest, parts: Parts, count: int, start_us: int, span_us: int
) -> tuple[PlannedOperation, ...]:
    generator = parts.workload.final_generator(workers=request.workers, seed=request.seed, operations=count)
    return planned_operations(
        generator,
        workers=request.workers,
        seed=request.seed,
        latency_us=_LATENCY_US,
        start_us=start_us,
        end_us=start_us + span_us,
    )


def _count(request: RunRequest, start_us: int, end_us: int) -> int:
    """Return the number of operations: in a real run at least enough to keep every second busy."""
    if request.world != "simulated":
        return max(request.operations, int((end_us - start_us) / _SECOND_US * _REAL_OPERATIONS_PER_SECOND))
    return request.operations
