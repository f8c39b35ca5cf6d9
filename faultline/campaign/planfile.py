"""Campaign plans as people write them: TOML files, plans shipped by name, and command-line flags on top of either.

    name = "leadership"
    systems = ["consistent-core"]
    workloads = ["register"]
    fault_sets = [["partition", "kill"], ["pause"]]
    seeds = "0..499"
    [options]
    read_mode = "read-index"
    [expected]
    "consistent-core+*" = ["stale-read"]

A plan that cannot be used is refused with its file, the key and the cause, before anything is written.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from faultline.campaign.default_campaign import Place, default_cells, usual_nodes, usual_workloads, with_cells
from faultline.campaign.matrix import CampaignPlan, Guidance
from faultline.harness.errors import UsageError
from faultline.harness.floors import checked_floors
from faultline.harness.planning import refuse_bad_numbers
from faultline.harness.request import DRAWN_NUMBERS
from faultline.harness.untrusted import from_toml, read_toml
from faultline.registry import load_system

__all__ = ["load_plan", "parse_plan", "plan_from_flags", "refuse_absurd_counts", "shipped_plans"]

_FIELDS = msgspec.structs.fields(CampaignPlan)
_STORED_NAMES = {field.name: field.encode_name for field in _FIELDS if field.name != field.encode_name}
_KEYS = tuple(name for field in _FIELDS for name in dict.fromkeys((field.name, field.encode_name)))
_UNITS_MAX = 1_000_000
_AT_LEAST_ONE = (
    "systems",
    "workloads",
    "fault_sets",
    "planted_bugs",
    "nodes",
    "workers",
    "operations",
    "seeds_per_task",
)


def shipped_plans() -> tuple[str, ...]:
    """Return the names of the campaigns that come with Faultline, sorted."""
    folder = resources.files("faultline.campaign") / "plans"
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")))


def load_plan(name_or_file: str) -> CampaignPlan:
    """Return the shipped plan of that name, else the plan in that file. Raise UsageError when it cannot be used."""
    if name_or_file in shipped_plans():
        text = (resources.files("faultline.campaign") / "plans" / f"{name_or_file}.toml").read_text("utf-8")
        return parse_plan(text, f"plan {name_or_file}")
    file = Path(name_or_file)
    if not os.path.exists(file) or os.path.isdir(file):
        raise UsageError(f"There is no campaign plan {name_or_file!r}, neither shipped nor as a file.", _hint(file))
    return _plan_of(read_toml(file), str(file))


def parse_plan(text: str, source: str) -> CampaignPlan:
    """Return the plan in `text`; `source` names it in errors. Raise UsageError with the key and the cause."""
    return _plan_of(from_toml(text, source), source)


def _plan_of(given: Mapping[str, Any], source: str) -> CampaignPlan:
    values = _with_stored_names(given, source)
    _refuse_unknown_keys(values, source)
    try:
        plan = msgspec.convert({"held": [name for name in DRAWN_NUMBERS if name in values], **values}, CampaignPlan)
    except msgspec.ValidationError as error:
        message, key = _cause(error)
        raise UsageError(f"{source}: key {key}: {message}.", "See docs/reference/campaign-plan.md.") from error
    return _checked(plan, source)


def plan_from_flags(
    *,
    plan: str | None = None,
    systems: Sequence[str] = (),
    workloads: Sequence[str] = (),
    fault_sets: Sequence[Sequence[str]] = (),
    planted_bugs: Sequence[Sequence[str]] = (),
    options: Mapping[str, str] | None = None,
    floors: Mapping[str, float] | None = None,
    host_options: Mapping[str, str] | None = None,
    weather: Mapping[str, str] | None = None,
    **others: Any,
) -> CampaignPlan:
    """Return the plan named or filed as `plan` (else `default`), with the given flags in place of its own
    values.

    `fault_sets` and `planted_bugs` are one sequence per flag; `others` are further fields of CampaignPlan, or None.
    Bugs switched on by a flag are not expected: the expectations of the shipped `default` do not apply to them. Without
    a plan, named systems bring the campaign of theirs (`faultline.campaign.default_campaign`), in a drawn universe
    where one can be drawn.
    """
    base = load_plan(plan or "default")
    given = _with_guidance(base, {key: value for key, value in others.items() if value is not None})
    given["held"] = _held(base, given)
    if plan is None and systems:
        places = _places(systems, workloads, fault_sets, base, given)
        base = with_cells(base, places)
        systems, workloads, fault_sets = (), (), ()
        given.setdefault("nodes", max(usual_nodes(load_system(system), base.nodes) for system in base.systems))
        given.setdefault("include", base.include)
    dimensions = {"systems": systems, "workloads": workloads}
    given |= {key: tuple(value) for key, value in dimensions.items() if value}
    sets = {"fault_sets": fault_sets, "planted_bugs": planted_bugs}
    given |= {key: tuple(map(tuple, value)) for key, value in sets.items() if value}
    if host_options:
        given["host_options"] = base.host_options | dict(host_options)
    if options:
        given["options"] = base.options | dict(options)
    if weather:
        given["weather"] = (base.weather or {}) | dict(weather)
    if floors:
        given["floors"] = base.floors | dict(floors)
    if planted_bugs or fault_sets or systems or workloads:
        given.setdefault("include", ("*",))
    return _checked(msgspec.structs.replace(base, **given), "the flags")


def _with_guidance(base: CampaignPlan, given: dict[str, Any]) -> dict[str, Any]:
    """Return the flags `given` with `guided`, `runs`, `wave` and `seed` as the values of a plan that they stand for."""
    size = {name: given.pop(name) for name in ("runs", "wave") if name in given}
    wanted, seed = given.pop("guided", False), given.pop("seed", None)
    if not wanted and not base.guided:
        for name in (*size, *(("seed",) if seed is not None else ())):
            raise UsageError(f"--{name} has no effect on a campaign that is not guided.", f"Add --guided to --{name}.")
        return given
    if "seeds" in given:
        raise UsageError(
            "A guided campaign gives each run a seed of its own, so that --seeds has no effect.",
            "Use --seed for the first seed, and --runs for the number of runs.",
        )
    given["guided"] = msgspec.structs.replace(base.guided or Guidance(), **size)
    if seed is not None:
        given["seeds"] = str(seed)
    return given


def _held(base: CampaignPlan, given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the numbers that no universe may draw: those of a flag, and those of the plan that are not defaults."""
    own = [name for name in DRAWN_NUMBERS if getattr(base, name) != getattr(CampaignPlan(), name)]
    return tuple(name for name in DRAWN_NUMBERS if name in given or name in own or name in (base.held or ()))


def _places(
    systems: Sequence[str],
    workloads: Sequence[str],
    fault_sets: Sequence[Sequence[str]],
    base: CampaignPlan,
    given: dict[str, Any],
) -> tuple[Place, ...]:
    """Return the cells of a campaign of `systems` alone, and set its universe where the flags do not."""
    simulated = not (given.get("hosts") or given.get("world", "simulated") != "simulated")
    given.setdefault("universe", "drawn" if simulated else "calm")
    if given["universe"] == "drawn":
        return default_cells(systems, workloads, fault_sets)
    usual = {name: usual_workloads(load_system(name))[0] for name in systems} if not workloads else {}
    chosen = workloads or _one_workload(usual)
    return default_cells(systems, chosen, fault_sets or base.fault_sets)


def _one_workload(usual: Mapping[str, str]) -> tuple[str, ...]:
    """Return the workload that all these systems are usually tested with. Raise UsageError when they differ."""
    found = tuple(dict.fromkeys(usual.values()))
    if len(found) > 1:
        raise UsageError(
            f"No workload is the usual one of all systems: {_pairs(usual)}.",
            f"Add --workload, or run a shipped plan: {_shipped_for(usual)}.",
        )
    return found


def _pairs(usual: Mapping[str, str]) -> str:
    return ", ".join(f"{workload} of {system}" for system, workload in usual.items())


def _shipped_for(names: Iterable[str]) -> str:
    """Return the commands of shipped plans for these systems."""
    plans = [name for name in shipped_plans() if set(load_plan(name).systems) & set(names)]
    return ", ".join(f"--plan {name}" for name in plans) or "no plan is shipped for them"


def _checked(plan: CampaignPlan, source: str) -> CampaignPlan:
    plan = _guided(_in_its_universe(_on_its_hosts(plan, source), source), source)
    plan.seed_range()
    plan.expectations(source)
    _check_floors(plan, source)
    for key in _AT_LEAST_ONE:
        value = getattr(plan, key)
        if (value if isinstance(value, int) else len(value)) < 1:
            raise UsageError(f"{source}: key {key}: must not be {value!r}.", "Give at least one.")
    if plan.keep_per_signature < 0:
        raise UsageError(f"{source}: key keep_per_signature: must not be negative.", "Write 0 to keep none.")
    refuse_absurd_counts(plan, source)
    return plan


def _check_floors(plan: CampaignPlan, source: str) -> None:
    try:
        checked_floors(plan.floors)
    except UsageError as error:
        raise UsageError(f"{source}: key floors: {error.message}", error.next_step) from error


def refuse_absurd_counts(plan: CampaignPlan, source: str) -> None:
    """Raise UsageError, before any planning, for a plan that would never end, or never begin."""
    cells, seeds = plan.cells(), plan.seed_range()
    units = len(cells) * -(-len(seeds) // max(plan.seeds_per_task, 1))
    if units > _UNITS_MAX:
        raise UsageError(
            f"{source}: key seeds: {len(seeds):,} seeds in {len(cells)} cells are {units:,} tasks of "
            f"{plan.seeds_per_task}; a campaign has at most {_UNITS_MAX:,}.",
            "Take fewer seeds, or a higher seeds_per_task.",
        )
    try:
        refuse_bad_numbers(plan.request(cells[0], seeds[0]))
    except UsageError as error:
        raise UsageError(f"{source}: {error.message}", error.next_step) from error


def _on_its_hosts(plan: CampaignPlan, source: str) -> CampaignPlan:
    """Return the plan on its hosts: they are a world of their own, with a node on each unless the plan has fewer."""
    if not plan.hosts and plan.world != "hosts" and not plan.host_options:
        return plan
    if not plan.hosts:
        raise UsageError(
            f"{source}: the world and the options of hosts need the key hosts.", 'Write hosts = "namespaces:3".'
        )
    from faultline.harness.world.hosts.machines.host_options import checked_host_options
    from faultline.harness.world.hosts.machines.host_sets import parse_hosts

    checked_host_options(plan.host_options)
    hosts = parse_hosts(plan.hosts)
    racks = plan.racks
    if not isinstance(racks, tuple):
        racks = hosts.racks_instead_of(racks or None)
    return msgspec.structs.replace(plan, world="hosts", nodes=min(plan.nodes, hosts.count), racks=racks)


def _in_its_universe(plan: CampaignPlan, source: str) -> CampaignPlan:
    """Return the plan with its universe unset where it is calm. Raise UsageError where none can be drawn."""
    if plan.universe != "drawn":
        return msgspec.structs.replace(plan, universe=msgspec.UNSET, held=msgspec.UNSET)
    if plan.world != "simulated":
        raise UsageError(
            f"{source}: key universe: the {plan.world} world has a weather of its own, and none can be drawn.",
            'Write universe = "calm".',
        )
    for name in plan.held or ():
        if name not in DRAWN_NUMBERS:
            raise UsageError(f"{source}: key held: {name!r} is not drawn.", f"There are {', '.join(DRAWN_NUMBERS)}.")
    return plan


def _guided(plan: CampaignPlan, source: str) -> CampaignPlan:
    """Return the plan with as many seeds as it has runs, where it is guided. Raise UsageError where it cannot be."""
    if not plan.guided:
        return plan
    runs, cells = plan.guided.runs, len(plan.cells())
    if plan.world != "simulated":
        raise UsageError(
            f"{source}: key guided: the {plan.world} world cannot be guided: it does not tell which events of its "
            "nodes follow one another, and no change of a plan can be tried there with all else the same.",
            "Leave --guided out, or run with --world simulated.",
        )
    if plan.guided.wave < 1:
        raise UsageError(f"{source}: key guided.wave: must not be {plan.guided.wave}.", "Give at least one.")
    if runs < cells:
        raise UsageError(
            f"{source}: key guided.runs: {runs} runs cannot try each of {cells} cells.", f"Give at least {cells}."
        )
    first = plan.seed_range().start
    return msgspec.structs.replace(plan, seeds=f"{first}..{first + runs - 1}")


def _with_stored_names(given: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Return `given` under the names that files of plans have; raise UsageError for a key under both of its names."""
    for name, stored in _STORED_NAMES.items():
        if name in given and stored in given:
            raise UsageError(f"{source}: {name} and {stored} are two names of one key.", f"Leave {stored} out.")
    return {_STORED_NAMES.get(key, key): value for key, value in given.items()}


def _refuse_unknown_keys(values: Mapping[str, Any], source: str) -> None:
    for key in values:
        if key not in _KEYS:
            near = difflib.get_close_matches(key, _KEYS, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"The keys are {', '.join(_KEYS)}."
            raise UsageError(f"{source}: unknown key {key}.", hint)


def _cause(error: msgspec.ValidationError) -> tuple[str, str]:
    """Return the message of a validation error and the path of the key it is about."""
    match = re.fullmatch(r"(.*?)(?: - at `(?:key in )?\$\.?(.*)`)?", str(error), re.DOTALL)
    return (match[1], match[2] or "(the file)") if match else (str(error), "(the file)")


def _hint(file: Path) -> str:
    near = difflib.get_close_matches(file.name, shipped_plans(), n=1)
    hint = f"Did you mean {near[0]}? " if near else ""
    return f"{hint}See the shipped ones with `faultline list plans`; anything else is read as a file."
