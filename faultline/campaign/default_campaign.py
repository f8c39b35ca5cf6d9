"""The campaign of a system that is named alone: all its workloads, and all faults that its promise covers.

A user who names a system and nothing else gets the strongest campaign there is for it: a universe drawn for each seed,
every workload that the system serves and promises to pass, and the broad fault sets together, of which each seed draws
some. Where no universe can be drawn – in the calm universe, in other worlds, for stores on hosts – it is the usual
workload with the fault sets of the plan `default`, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from faultline.campaign.matrix import CampaignPlan
from faultline.harness.errors import UsageError
from faultline.harness.options import effective_options
from faultline.harness.plan import cell_name
from faultline.harness.promises import Asked, answers_missing, option_that_promises, reason_not_promised
from faultline.harness.system import HasUsualTest, NodeSystem, functions_options
from faultline.harness.workload import Workload
from faultline.registry import load_packages, load_system, load_workload, workloads

__all__ = [
    "BROAD_FAULT_SETS",
    "Place",
    "covered_faults",
    "default_cells",
    "usual_nodes",
    "usual_workloads",
    "with_cells",
]

BROAD_FAULT_SETS = (
    *("leadership", "durability", "clocks", "skew", "retries", "restarts", "all"),
    *("partition", "kill", "pause", "packet"),
    *("power-cycles", "disk", "fsync", "corruption"),
)
"""The fault sets of the strong campaign; one whose faults are all in another that is covered too is left out.

`corruption` is for systems that promise to notice a changed byte. No system promises to notice other damage of disks.
"""

_BUGS = ("", "+*")
Place = tuple[str, str, tuple[str, ...]]


def usual_workloads(system: NodeSystem) -> tuple[str, ...]:
    """Return the workloads that `system` serves and promises to pass without faults, the usual one first: with its
    default options, or with one of them changed.

    A workload that another one includes (`included_in`) is left out where that is promised under the same options.

    Raise `UsageError` when there is none.
    """
    first = (system.usual_workload,) if isinstance(system, HasUsualTest) else ()
    names = [*first, *(name for name in workloads() if name not in first)]
    found = tuple(name for name in names if _is_promised(system, load_workload(name), ()))
    if not found:
        raise UsageError(
            f"{system.name} serves no workload: it has the functions {', '.join(system.functions)}.",
            "`faultline list workloads` lists what each workload needs.",
        )
    return tuple(name for name in found if not _is_included(system, load_workload(name)))


def usual_nodes(system: NodeSystem, least: int) -> int:
    """Return the number of nodes with which `system` is tested by default, `least` at least."""
    return max(system.usual_nodes, least) if isinstance(system, HasUsualTest) else least


def covered_faults(system: NodeSystem, workload: str) -> tuple[str, ...]:
    """Return the broad fault sets under which `system` promises to pass `workload`; without any, `leadership`, for
    which planning tells the reason."""
    loaded = load_workload(workload)
    packages = [each for each in load_packages(BROAD_FAULT_SETS) if _is_promised(system, loaded, (each.name,))]
    names: list[str] = []
    for package in packages:
        others = [other for other in packages if other is not package]
        if not any(set(package.recipes) <= set(other.recipes) for other in others):
            names.append(package.name)
    return tuple(names) or ("leadership",)


def default_cells(
    names: Sequence[str], chosen: Sequence[str], fault_sets: Sequence[Sequence[str]]
) -> tuple[Place, ...]:
    """Return system, workload and fault set of each cell of the strong campaign of the systems called `names`.

    The workloads `chosen` and the `fault_sets` replace those of the systems, where there are any.
    """
    places = []
    for name in names:
        system = load_system(name)
        for workload in chosen or usual_workloads(system):
            own = [tuple(each) for each in fault_sets] or [covered_faults(system, workload)]
            places += [(name, workload, faults) for faults in own]
    return tuple(places)


def with_cells(plan: CampaignPlan, places: Iterable[Place]) -> CampaignPlan:
    """Return `plan` with exactly these cells, each with every planted bug of the plan."""
    cells = tuple(dict.fromkeys(places))
    systems, tested, fault_sets = (tuple(dict.fromkeys(column)) for column in zip(*cells, strict=True))
    include = ["*"]
    if len(cells) < len(systems) * len(tested) * len(fault_sets):
        # A cell of planted bugs has their names between that of the system and the workload.
        include = [cell_name(name + bugs, (), workload, faults) for name, workload, faults in cells for bugs in _BUGS]
    return msgspec.structs.replace(
        plan, systems=systems, workloads=tested, fault_sets=fault_sets, include=tuple(include)
    )


def _is_promised(system: NodeSystem, workload: Workload, faults: tuple[str, ...]) -> bool:
    """Return whether `system` serves `workload`, and promises to pass it with defaults or one option changed."""
    asked = _asked(system, workload, faults)
    return asked is not None and (
        reason_not_promised(system, asked) is None or option_that_promises(system, asked) is not None
    )


def _is_included(system: NodeSystem, workload: Workload) -> bool:
    """Return whether another workload includes this one, with default options or where both need an option changed."""
    name: str = getattr(workload, "included_in", "")
    own, other = _asked(system, workload, ()), _asked(system, load_workload(name), ()) if name else None
    if own is None or other is None:
        return False
    if reason_not_promised(system, other) is None:
        return True
    return reason_not_promised(system, own) is not None and option_that_promises(system, other) is not None


def _asked(system: NodeSystem, workload: Workload, faults: tuple[str, ...]) -> Asked | None:
    """Return the demand of `workload` on `system` with default options; None when it lacks a function."""
    if not set(workload.functions) <= set(system.functions) or answers_missing(system, workload) is not None:
        return None
    options: Mapping[str, str] = effective_options(system, functions_options(system, workload.functions), ())
    return Asked(
        workload=workload.name,
        functions=workload.functions,
        options=options,
        nodes=usual_nodes(system, 3),
        faults=faults,
        fault_kinds=frozenset(kind for package in load_packages(faults) for kind in package.kinds),
    )
