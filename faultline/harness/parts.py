"""The parts of a run: the objects behind the names in a plan. `faultline.registry` resolves them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from faultline.harness.errors import UsageError
from faultline.harness.nemesis import FaultPackage, Nemesis
from faultline.harness.plan import Plan
from faultline.harness.racks import refuse_targets_without_racks
from faultline.harness.sensitivity import Anomalies
from faultline.harness.system import HostedStore, NodeSystem
from faultline.harness.triggers import refuse_bad_triggers
from faultline.harness.workload import Checker, Workload
from faultline.harness.world.faults import FaultPort

__all__ = ["Parts", "refuse_what_cannot_run"]


_SHOWS_LIKE = {"hosts": "local"}
"""A bug that shows in the second world also shows in the first: both run the same processes in real time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """All objects that a run is made of.

    `system_path` is `module:attribute`, so that another process can import the system; `nemeses` by kind; `package`
    plans the faults; `checkers` judge the run; `heal` undoes every fault and returns those that it could not undo;
    `anomalies` are inserted to measure the sensitivity of a pass, None where there are none.
    """

    system: NodeSystem
    system_path: str
    workload: Workload
    checkers: tuple[Checker, ...]
    nemeses: Mapping[str, Nemesis]
    package: FaultPackage
    heal: Callable[[FaultPort], list[str]]
    anomalies: Anomalies | None = None


def refuse_what_cannot_run(plan: Plan, parts: Parts, capabilities: frozenset[str], world: str) -> None:
    """Raise UsageError, by name, for a fault that this world cannot inject or aim, or a bug that cannot show in it."""
    if world != "hosts" and isinstance(parts.system, HostedStore):
        raise UsageError(
            f"{parts.system.name} is a program of its own and runs on hosts only.", "Use --hosts namespaces:3."
        )
    refuse_bad_triggers(plan, parts.system, world)
    refuse_targets_without_racks(plan)
    for kind in dict.fromkeys(fault.kind for fault in plan.faults):
        if kind not in parts.nemeses:
            known = ", ".join(sorted(parts.nemeses))
            raise UsageError(f"The plan has a fault of the unknown kind {kind!r}.", f"There are {known}.")
        missing = parts.nemeses[kind].needs - capabilities
        if missing:
            raise UsageError(
                f"The {world} world cannot inject {kind}: it lacks {', '.join(sorted(missing))}.",
                "Leave that fault out, or use another world; `faultline doctor` lists what each can do.",
            )
    for name in plan.planted_bugs:
        if name not in parts.system.planted_bugs:
            see = "See them with `faultline list planted-bugs`."
            raise UsageError(f"The plan has a planted bug {name!r}, which {parts.system.name} does not know.", see)
        planted_bug = parts.system.planted_bugs[name]
        if _SHOWS_LIKE.get(world, world) not in planted_bug.worlds:
            raise UsageError(
                f"The planted bug {name} cannot show in the {world} world: {planted_bug.why_not}",
                f"Run it with --world {planted_bug.worlds[0]}.",
            )
