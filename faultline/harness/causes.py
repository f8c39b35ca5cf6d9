"""Counterfactual causes of a violation: the parts of a simulated run without which it does not come about.

Undo one part of the run – lose this message, leave out that fault – and run again with nothing else changed. A part is
*necessary* when the violation is gone then (the test *but for*; Halpern and Pearl 2005, "Causes and explanations",
section 2). It is necessary *in time* when the violation is gone too if that part only comes a little later.

The run should be a minimal one: where two parts can each bring the violation about, neither is necessary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.judge import judge
from faultline.harness.judgement import Judgement, visible_us
from faultline.harness.parts import Parts
from faultline.harness.plan import Plan, PlannedFault, PlannedOperation
from faultline.harness.run import run_simulated
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Verdict
from faultline.harness.world.simulated.counterfactual import EventKind, WorldEvent, delaying, observing, undoing
from faultline.harness.world.simulated.scheduler import Scheduler

__all__ = ["LATER_US", "CausalKind", "Causes", "NecessaryPart", "Tried", "find_causes"]

LATER_US = 30_000
"""The delay after which a necessary part is asked whether its time matters."""

CausalKind = Literal["fault", "operation"] | EventKind


class NecessaryPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the run without which the violation is gone.

    `in_time` says that the violation is gone too when the part comes later, None that this was not tried. `place` is
    the position of a fault or an operation in the plan; of an event there is the `event`.
    """

    kind: CausalKind
    time_us: int
    in_time: bool | None
    place: int = -1
    event: WorldEvent | None = None


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """The number of parts of a kind before the violation, of those `tried`, and of those found `necessary`."""

    kind: CausalKind
    parts: int
    tried: int
    necessary: int


class Causes(msgspec.Struct, frozen=True, kw_only=True):
    """The necessary parts in the order of time, the counts by kind, and the cost in runs.

    `visible_us` is when the violation was visible: what happened later was not tried. `complete` says that all parts
    were tried, and the time of each necessary one.
    """

    signature: str
    sentence: str
    visible_us: int
    later_us: int
    parts: tuple[NecessaryPart, ...]
    counts: tuple[Tried, ...]
    runs: int
    complete: bool


Tell = Callable[[int, int], None]


class _Variant(msgspec.Struct, frozen=True):
    """A part, and the two ways to run without it and with it later: a plan, and a maker of its scheduler."""

    kind: CausalKind
    time_us: int
    place: int
    event: WorldEvent | None
    without: Callable[[], RunRecord]
    later: Callable[[], RunRecord]


def find_causes(
    plan: Plan,
    parts: Parts,
    signature: str,
    *,
    runs_max: int = 4_000,
    later_us: int = LATER_US,
    tell: Tell = lambda _tried, _all: None,
) -> tuple[Causes, RunRecord, Judgement]:
    """Return the causes of the violation of kind `signature` in the simulated run of `plan`, its record and judgement.

    At most `runs_max` runs are made: faults and operations first, then events, those nearest to the violation first.
    `tell(tried, all)` is called before each part. Raise UsageError when the plan does not violate so.
    """
    events: list[WorldEvent] = []
    record = run_simulated(plan, parts, scheduler=observing(events.append)).whole()
    judgement = judge(record, parts, run_id="causes")
    shown = next((finding for finding in judgement.findings if finding.signature == signature), None)
    if judgement.verdict is not Verdict.VIOLATION or shown is None:
        raise UsageError(
            f"The run does not show {signature} any more: the code of the system or of the harness has changed.",
            "Look for the violation anew with `faultline run`.",
        )
    moment_us = visible_us(shown, record.history) or record.statistics["virtual_us"]
    search = _Search(plan, parts, signature, later_us, runs_max, _begun_us(record))
    variants = list(search.variants([event for event in events if event.time_us <= moment_us]))
    found: list[NecessaryPart] = []
    tried: Counter[CausalKind] = Counter()
    for number, variant in enumerate(variants):
        if search.is_spent:
            break
        tell(number, len(variants))
        tried[variant.kind] += 1
        if search.is_gone(variant.without):
            found.append(_necessary(variant, search.is_gone_if_affordable(variant.later)))
    every = Counter(variant.kind for variant in variants)
    needed = Counter(part.kind for part in found)
    causes = Causes(
        signature=signature,
        sentence=shown.sentence,
        visible_us=moment_us,
        later_us=later_us,
        parts=tuple(sorted(found, key=lambda part: (part.time_us, part.event.number if part.event else -1))),
        counts=tuple(
            Tried(kind=kind, parts=every[kind], tried=tried[kind], necessary=needed[kind]) for kind in sorted(every)
        ),
        runs=search.runs,
        complete=tried == every and all(part.in_time is not None for part in found),
    )
    return causes, record, judgement


def _begun_us(record: RunRecord) -> dict[int, int]:
    return {event.value["fault"]: event.time_us for event in record.history.faults if event.f.startswith("start-")}


def _necessary(variant: _Variant, in_time: bool | None) -> NecessaryPart:
    return NecessaryPart(
        kind=variant.kind, time_us=variant.time_us, in_time=in_time, place=variant.place, event=variant.event
    )


class _Search:
    """The runs of a search for causes, counted against a budget."""

    def __init__(
        self, plan: Plan, parts: Parts, signature: str, later_us: int, runs_max: int, begun_us: Mapping[int, int]
    ) -> None:
        """`begun_us` are the times at which faults began, by their number."""
        self._plan = plan
        self._begun_us = begun_us
        self._parts = parts
        self._signature = signature
        self._later_us = later_us
        self._runs_max = runs_max
        self.runs = 0

    @property
    def is_spent(self) -> bool:
        return self.runs >= self._runs_max

    def is_gone(self, rerun: Callable[[], RunRecord]) -> bool:
        """Return whether the violation is gone in the changed run."""
        self.runs += 1
        findings = judge(rerun().whole(), self._parts, run_id="causes").findings
        return self._signature not in [finding.signature for finding in findings]

    def is_gone_if_affordable(self, rerun: Callable[[], RunRecord]) -> bool | None:
        """Return whether the violation is gone in the changed run, None when no run is left for it."""
        return None if self.is_spent else self.is_gone(rerun)

    def variants(self, events: list[WorldEvent]) -> Iterator[_Variant]:
        """Yield the parts of the run in the order in which they are tried."""
        for place, fault in enumerate(self._plan.faults):
            yield self._of_plan("fault", place, fault)
        for place, operation in enumerate(self._plan.operations):
            yield self._of_plan("operation", place, operation)
        for event in reversed(events):
            yield self._of_event(event)

    def _of_plan(
        self, kind: Literal["fault", "operation"], place: int, part: PlannedFault | PlannedOperation
    ) -> _Variant:
        field = f"{kind}s"
        standing: tuple[PlannedFault | PlannedOperation, ...] = getattr(self._plan, field)
        later, at_us = msgspec.structs.replace(part, at_us=part.at_us + self._later_us), part.at_us
        if isinstance(part, PlannedFault) and part.trigger is not msgspec.UNSET:
            trigger = msgspec.structs.replace(part.trigger, delay_us=part.trigger.delay_us + self._later_us)
            later, at_us = msgspec.structs.replace(part, trigger=trigger), self._begun_us.get(place, part.at_us)

        def run_with(*instead: PlannedFault | PlannedOperation) -> RunRecord:
            changed = (*standing[:place], *instead, *standing[place + 1 :])
            return self._run(msgspec.structs.replace(self._plan, **{field: changed}))

        return _Variant(kind, at_us, place, None, run_with, lambda: run_with(later))

    def _of_event(self, event: WorldEvent) -> _Variant:
        number = event.number
        return _Variant(
            event.kind,
            event.time_us,
            -1,
            event,
            lambda: self._run(self._plan, undoing(number)),
            lambda: self._run(self._plan, delaying(number, self._later_us)),
        )

    def _run(self, plan: Plan, scheduler: Scheduler | None = None) -> RunRecord:
        return run_simulated(plan, self._parts, scheduler=scheduler)
