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

from faultline.campaign.matrix import CampaignPlan
from faultline.harness.conditions import weather_of
from faultline.harness.errors import UsageError
from faultline.harness.floors import checked_floors
from faultline.harness.planning import refuse_bad_numbers
from faultline.harness.system import HasUsualTest
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
        plan = msgspec.convert(values, CampaignPlan)
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
    a plan, named systems bring their usual workload and at least their usual number of nodes.
    """
    base = load_plan(plan or "default")
    given: dict[str, Any] = {key: value for key, value in others.items() if value is not None}
    if plan is None and systems:
        usual = [_usual_test(name, base) for name in systems]
        workloads = workloads or _one_workload(dict(zip(systems, (workload for workload, _ in usual), strict=True)))
        given.setdefault("nodes", max(nodes for _, nodes in usual))
    dimensions = {"systems": systems, "workloads": workloads}
    given |= {key: tuple(value) for key, value in dimensions.items() if value}
    sets = {"fault_sets": fault_sets, "planted_bugs": planted_bugs}
    given |= {key: tuple(map(tuple, value)) for key, value in sets.items() if value}
    if host_options:
        given["host_options"] = base.host_options | dict(host_options)
    if options:
        given["options"] = base.options | dict(options)
    if weather:
        given["weather"] = weather_of(weather, base.weather)
    if floors:
        given["floors"] = base.floors | dict(floors)
    if planted_bugs or fault_sets or systems or workloads:
        given.setdefault("include", ("*",))
    return _checked(msgspec.structs.replace(base, **given), "the flags")


def _usual_test(name: str, base: CampaignPlan) -> tuple[str, int]:
    """Return the workload and the number of nodes with which system `name` is tested by default."""
    system = load_system(name)
    if isinstance(system, HasUsualTest):
        return system.usual_workload, max(system.usual_nodes, base.nodes)
    return base.workloads[0], base.nodes


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
    plan = _on_its_hosts(plan, source)
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
    return msgspec.structs.replace(plan, world="hosts", nodes=min(plan.nodes, parse_hosts(plan.hosts).count))


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
