"""A work unit of a guided campaign: fresh universes and changed plans of one cell, one run after another.

Every run keeps its plan, as its seed alone does not tell it: a change is made to the plan of an earlier run.
"""

from __future__ import annotations

from typing import Any

import msgspec

from faultline.campaign.expectation import not_allowed
from faultline.campaign.guided.mutation import changeable_options, changed
from faultline.campaign.guided.signal import EventPairs, Signal, write_signals
from faultline.campaign.guided.waves import Choice, GuidedUnit
from faultline.campaign.matrix import Cell
from faultline.campaign.simulate import Carried, SimulationJob, broken_run, run_seeds
from faultline.harness.feature import features_of
from faultline.harness.judgement import Judgement
from faultline.harness.options import flat_options
from faultline.harness.parts import Parts
from faultline.harness.plan import Plan
from faultline.harness.request import RunRequest
from faultline.harness.run_record import RunRecord
from faultline.harness.store import prepare_run, read_run_file, run_id_of
from faultline.harness.verdict import Verdict

__all__ = ["run_guided_unit"]

_ARCHIVED = (Verdict.PASS, Verdict.UNKNOWN, Verdict.VACUOUS)
"""The verdicts of runs that may be changed: descendants of a violation mostly show the same one again."""


def run_guided_unit(job: SimulationJob, unit: GuidedUnit) -> int:
    """Run the choices of one unit and write its files; return the number of runs."""
    runs = _Runs(job, unit)
    count = run_seeds(job, unit, runs.carry_out)
    write_signals(job.folder.signals_part(unit.number), runs.signals)
    return count


class _Runs:
    """The runs of one unit, and the signals of those that have ended."""

    def __init__(self, job: SimulationJob, unit: GuidedUnit) -> None:
        assert job.engine.observe is not None, "guided campaigns are simulated"
        self._job = job
        self._observe = job.engine.observe
        self._choices = {choice.seed: choice for choice in unit.choices}
        self._cell: Cell = job.plan.cells()[unit.cell]
        request = job.plan.request(self._cell, unit.choices[0].seed)
        self._parts: Parts = job.engine.resolve(request)
        self._options = changeable_options(request, self._parts)
        self.signals: list[Signal] = []

    def carry_out(self, seed: int) -> Carried:
        """Return the judgement of one run. An error in it is a harness error of this run alone."""
        request = self._job.plan.request(self._cell, seed)
        record: RunRecord | None = None
        run_id = run_id_of(request)
        try:
            plan = self._plan(request, self._choices[seed])
            if plan.chance_seed is not msgspec.UNSET:
                run_id = run_id_of(plan)
            prepare_run(self._job.folder.run(run_id), run_id, plan, "simulated")
            pairs = EventPairs()
            record = self._observe(plan, self._parts, pairs.observe)
            judgement = self._job.engine.judge(record, self._parts, run_id)
        except (Exception, SystemExit) as error:
            return broken_run(self._job.plan, self._cell, seed, run_id, error), record
        self.signals.append(self._signal(judgement, record, pairs))
        return judgement, record

    def _plan(self, request: RunRequest, choice: Choice) -> Plan:
        """Return the plan of one run. Where no change of its parent is legal, it is a fresh universe."""
        if choice.kind != "fresh":
            parent = read_run_file(self._job.folder.run(choice.parent)).plan
            plan = changed(parent, choice.kind, choice.wish, request, self._parts)
            if plan is not None:
                return plan
        return self._job.engine.plan(request, self._parts)

    def _signal(self, judgement: Judgement, record: RunRecord, pairs: EventPairs) -> Signal:
        features = {each.name for each in features_of(self._parts.system)}
        options = flat_options(record.plan.options)
        return Signal(
            seed=judgement.seed,
            run_id=judgement.run_id,
            pairs=pairs.pairs(),
            features=tuple(sorted(features & record.marks.keys())),
            options={name: options[name] for name in self._options if name in options},
            violation=self._violation(judgement),
            is_archivable=judgement.verdict in _ARCHIVED,
        )

    def _violation(self, judgement: Judgement) -> str:
        """Return the kind of the first violation that the plan does not allow, with its cell; '' without one."""
        findings: list[Any] = not_allowed(judgement.findings, self._cell.expected)
        if judgement.verdict is not Verdict.VIOLATION or not findings:
            return ""
        return f"{self._cell.name}: {findings[0].signature}"
