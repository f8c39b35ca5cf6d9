"""The duties of a nemesis and a fault set: take effect and prove it, end without a trace, follow the seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from faultline.harness.nemesis import Nemesis
from faultline.harness.parts import Parts
from faultline.harness.plan import NODE_NAMES, PlannedFault
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.run_record import RunRecord
from faultline.harness.triggers import event_names
from faultline.harness.world.faults import ALL_CAPABILITIES
from faultline.nemesis import NEMESES, Package, heal_everything
from faultline.registry import load_system, load_workload
from faultline.testing.problem import Check, place_of

__all__ = ["FAULT_CHECKS", "FaultSubject"]

Found = Iterator[tuple[str, str, str]]

_SEEDS = range(6)
_START_US, _END_US = 600_000, 4_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultSubject:
    """The subject of the kit: a fault set, and the nemeses of its kinds that do not ship with Faultline."""

    package: Package
    nemeses: tuple[Callable[[], Nemesis], ...] = ()

    def by_kind(self) -> Mapping[str, Nemesis]:
        """Return every known nemesis by its kind."""
        return NEMESES | {nemesis.kind: nemesis for nemesis in (make() for make in self.nemeses)}

    def faults(self, seed: int, nodes: int = 3) -> tuple[PlannedFault, ...]:
        """Return the faults that the fault set plans; those that are aimed, at events of `consistent-core`."""
        package = self.package.at_events(event_names(load_system("consistent-core")))
        return package.plan(seed=seed, nodes=NODE_NAMES[:nodes], start_us=_START_US, end_us=_END_US)

    def record(self, seed: int) -> RunRecord:
        """Return a run of the reference store `consistent-core` with these faults."""
        workload = load_workload("register")
        parts = Parts(
            system=load_system("consistent-core"),
            system_path="",
            workload=workload,
            checkers=workload.checkers(),
            nemeses=self.by_kind(),
            package=self.package,
            heal=heal_everything,
        )
        return run_simulated(make_plan(RunRequest(system="consistent-core", seed=seed), parts), parts)


def _says_what_it_is(subject: FaultSubject) -> Found:
    place = f"fault set {subject.package.name}"
    if not (subject.package.name and subject.package.summary):
        yield "it has no name or no summary", place, "Give both: `faultline list faults` shows them."
    for nemesis in (make() for make in subject.nemeses):
        for name in ("kind", "summary", "mark"):
            if not getattr(nemesis, name, ""):
                yield f"`{name}` is empty", place_of(nemesis), "See faultline.harness.nemesis.Nemesis."
        unknown = sorted(set(nemesis.needs) - set(ALL_CAPABILITIES))
        if unknown:
            yield f"it needs {', '.join(unknown)}", place_of(nemesis), f"Choose from {', '.join(ALL_CAPABILITIES)}."


def _every_kind_has_a_nemesis(subject: FaultSubject) -> Found:
    known = subject.by_kind()
    for kind in subject.package.kinds:
        if kind not in known:
            advice = "Write a nemesis of that kind and give it an entry point in the group faultline.nemeses."
            yield f"no nemesis carries out {kind!r}", f"fault set {subject.package.name}", advice


def _falls_as_the_seed_says(subject: FaultSubject) -> Found:
    place = f"fault set {subject.package.name}"
    for seed in _SEEDS:
        faults = subject.faults(seed)
        if faults != subject.faults(seed):
            yield f"seed {seed} plans other faults the second time", place, "Plan from the arguments alone."
        if [fault.at_us for fault in faults] != sorted(fault.at_us for fault in faults):
            yield f"seed {seed}: faults are not in order of time", place, "Sort them by `at_us`."
        if any(fault.at_us < _START_US or fault.stop_us > _END_US for fault in faults):
            yield f"seed {seed}: a fault is outside the given time", place, "End before `end_us`."
        if msgspec.json.decode(msgspec.json.encode(faults), type=tuple[PlannedFault, ...]) != faults:
            yield f"seed {seed}: faults are not plain data", place, "Use numbers, texts and lists as arguments."
    if not any(subject.faults(seed) for seed in _SEEDS):
        yield "it never plans a fault", place, "Give it recipes for which three nodes are enough."


def _bites_and_ends(subject: FaultSubject) -> Found:
    reached: set[str] = set()
    place = f"fault set {subject.package.name}, seed {{}}, on consistent-core"
    for seed in _SEEDS:
        record = subject.record(seed)
        reached |= set(record.marks)
        for error in record.errors:
            advice = "`verify` must return None right after `start`, and `stop` or the heal must undo everything."
            yield error, place.format(seed), advice
        history = record.history
        after = [row for row, at_us in enumerate(history.invoke_us) if at_us >= record.healed_us]
        if after and not any(history.outcome[row] == "ok" for row in after):
            yield (
                "no operation is answered after the heal",
                place.format(seed),
                "Undo in `stop` all effects of `start`.",
            )
    for nemesis in (make() for make in subject.nemeses):
        if nemesis.mark not in reached and nemesis.kind in subject.package.kinds:
            advice = "Return an Injection that names the nodes or links it acted on."
            yield f"{nemesis.kind} never took effect in {len(_SEEDS)} seeds", place_of(nemesis, "start"), advice


FAULT_CHECKS: tuple[Check[FaultSubject], ...] = (
    Check("faults declare their names and needs", _says_what_it_is),
    Check("every kind of the fault set has a nemesis", _every_kind_has_a_nemesis),
    Check("faults follow the seed, within their time", _falls_as_the_seed_says),
    Check("faults take effect, prove it, and end", _bites_and_ends),
)
