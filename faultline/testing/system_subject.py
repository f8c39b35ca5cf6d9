"""A system that is examined: its maker, its workload, and runs of it in the simulated world."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from faultline.checkers import InvariantChecker
from faultline.harness.judge import judge
from faultline.harness.judgement import Judgement
from faultline.harness.parts import Parts
from faultline.harness.plan import Plan, PlannedFault, PlannedOperation
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.run_record import RunRecord
from faultline.harness.system import NodeSystem
from faultline.harness.workload import Workload
from faultline.nemesis import combined, heal_everything
from faultline.registry import load_nemeses, load_packages, load_workload
from faultline.testing.problem import place_of

__all__ = ["SystemSubject", "import_path_of", "replay_of", "workload_of"]

_FOREVER_US = 60_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemSubject:
    """The subject of the kit for systems.

    `make` gives a fresh one; `workload` has its operations; `bears` are the fault sets under which it keeps its
    promise; `reads` the functions that change nothing; `options` are used in every run; `nodes` its usual size.
    """

    make: Callable[[], NodeSystem]
    workload: Workload
    bears: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    reads: tuple[str, ...] = ("read",)
    nodes: int = 3
    seeds: int = 3

    def parts(self, faults: tuple[str, ...] = (), system: Any = None) -> Parts:
        """Return the parts of a run with these fault sets; of `system` when a probe stands in for it."""
        subject = self.make()
        package = combined(load_packages(faults))
        return Parts(
            system=subject if system is None else system,
            system_path=import_path_of(subject),
            workload=self.workload,
            checkers=(*self.workload.checkers(), InvariantChecker()),
            nemeses=load_nemeses(package.kinds),
            package=package,
            heal=heal_everything,
        )

    def plan(self, seed: int, faults: tuple[str, ...] = (), operations: int = 120) -> Plan:
        """Return the plan of one run."""
        request = RunRequest(
            system=self.make().name,
            workload=self.workload.name,
            faults=faults,
            seed=seed,
            options=dict(self.options),
            nodes=self.nodes,
            operations=operations,
            # Clients have to keep their contract under any faults, also where the system promises nothing of its data.
            beyond_promise=not set(faults) <= set(self.bears),
        )
        return make_plan(request, self.parts(faults))

    def run(self, plan: Plan, system: Any = None) -> RunRecord:
        """Carry out `plan`, on `system` when a probe stands in."""
        return run_simulated(plan, self.parts(plan.fault_set, system))

    def judged(self, plan: Plan) -> Judgement:
        """Carry out `plan` and judge it as `faultline run` does."""
        parts = self.parts(plan.fault_set)
        return judge(run_simulated(plan, parts), parts, run_id=f"seed-{plan.seed}")

    def few_operations(self, seed: int, count: int) -> Plan:
        """Return a calm plan of the first `count` operations, with ample time to end."""
        plan = self.plan(seed)
        return msgspec.structs.replace(plan, operations=plan.operations[:count], end_us=_FOREVER_US)

    def one_operation(self, f: str, value: Any = None) -> Plan:
        """Return a calm plan of a single operation."""
        plan = self.few_operations(0, 1)
        operation = msgspec.structs.replace(plan.operations[0], f=f, value=value)
        return msgspec.structs.replace(plan, operations=(operation,))

    def with_faults(self, plan: Plan, *faults: PlannedFault) -> Plan:
        """Return `plan` with exactly these faults."""
        return msgspec.structs.replace(plan, faults=faults, fault_set=("all",) if faults else ())

    def place(self, attribute: str = "") -> str:
        """Return where the system, or an attribute of it, is defined."""
        return place_of(self.make(), attribute)

    def replay(self, plan: Plan) -> str:
        """Return the command of a run, for systems that are installed."""
        return replay_of(plan, self.options)


def replay_of(plan: Plan, options: Mapping[str, str]) -> str:
    """Return the run of `plan` as a command line."""
    words = ["faultline run", f"--system {plan.system}", f"--workload {plan.workload}", f"--seed {plan.seed}"]
    words += [f"--faults {','.join(plan.fault_set) or 'none'}", f"--nodes {len(plan.nodes)}"]
    words += [f"--operations {_before_the_heal(plan)}", *(f"--option {name}={text}" for name, text in options.items())]
    return " ".join(words)


def _before_the_heal(plan: Plan) -> int:
    operations: tuple[PlannedOperation, ...] = plan.operations
    return sum(1 for operation in operations if operation.at_us < plan.heal_us)


def import_path_of(system: Any) -> str:
    """Return `module:class`, by which another process finds the system."""
    return f"{type(system).__module__}:{type(system).__qualname__}"


def workload_of(workload: str | Workload | type) -> Workload:
    """Return a workload by name, as an instance, or as its class."""
    if isinstance(workload, str):
        return load_workload(workload)
    made: Workload = workload() if isinstance(workload, type) else workload
    return made
