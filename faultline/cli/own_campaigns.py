"""The runs of a campaign, judged again for `faultline check`, and the number of planned runs that are present.

A campaign keeps the operations of all runs (`histories/part-*.parquet`), a verdict of each (`runs/RUN/verdict.json`),
and the whole folder of some. Planning is deterministic, so the plan of each run follows from `plan.json`, and with it
its checkers. Faults and breaches of invariants, which the Parquet files do not hold, are taken from the verdict. So is
all of a run whose unit of work did not end. A planned run that left no file is *unknown*.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from os.path import isdir, isfile
from pathlib import Path

import msgspec

from faultline.campaign.expectation import not_allowed
from faultline.campaign.layout import CampaignFolder
from faultline.campaign.matrix import CampaignPlan
from faultline.campaign.planfile import refuse_absurd_counts
from faultline.checkers.files import CheckedHistory
from faultline.checkers.importers.parquet import read_parquet
from faultline.cli.own_runs import Settings, check_own_run, check_verdict, checkers_for, judged_again, not_judged, shown
from faultline.cli.progress import line_now_and_then
from faultline.harness.checks import left_out, name_of
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.judgement import Judgement
from faultline.harness.parts import Parts
from faultline.harness.plan import Plan
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run_record import RunRecord
from faultline.harness.store import read_run_file
from faultline.harness.stored_record import OTHER_PLAN, judgement_in, take_observations
from faultline.harness.untrusted import DamagedInput, read_json
from faultline.harness.verdict import CheckResult, Verdict
from faultline.harness.workload import Checker
from faultline.registry import resolve

__all__ = ["campaign_of", "check_own_campaign"]

_NAME = re.compile(r"[^/\x00]{1,255}")
_SEED = re.compile(r"0|[1-9]\d{0,14}", re.ASCII)


def campaign_of(path: Path) -> Path | None:
    """Return the folder of the campaign that `path` names, as a whole or by its histories; None for any other path."""
    if isdir(path):
        root = path.absolute().parent if path.name == "histories" else path
    else:
        root = path.absolute().parent.parent if path.match("histories/part-*.parquet") else path
    folder = CampaignFolder(root)
    return root if isfile(folder.plan) and (isdir(folder.runs) or isdir(folder.histories)) else None


def check_own_campaign(path: Path, root: Path, settings: Settings) -> Iterator[CheckedHistory]:
    """Judge the runs of the campaign in `root`, of which the user named the part `path`, one after another.

    For a whole campaign the last result has the number of its runs that are present. Raise UsageError at once for a
    workload that is not installed and for options that do not apply, and at the end for an unreadable file.
    """
    campaign = _Campaign(root, str(path), settings)
    parts = [path] if isfile(path) else sorted(campaign.folder.histories.glob("part-*.parquet"))
    tell = line_now_and_then(f"runs of {path} checked")
    present: set[str] = set()
    unreadable: list[UsageError] = []
    for run_id, history in _histories(parts, unreadable):
        present.add(run_id)
        yield campaign.run(run_id, history)
        tell(len(present))
    if path == root:
        for folder in sorted(campaign.folder.runs.glob("*/")):
            if folder.name not in present:
                present.add(folder.name)
                yield campaign.run(folder.name, None)
                tell(len(present))
        yield campaign.completeness(present)
    if unreadable:
        raise unreadable[0]


def _histories(parts: Sequence[Path], unreadable: list[UsageError]) -> Iterator[tuple[str, History]]:
    """Yield the histories in the files `parts`, with the ids of their runs; files that cannot be read are noted."""
    for part in parts:
        try:
            for imported in read_parquet(part):
                if not _NAME.fullmatch(str(imported.part)):
                    raise DamagedInput(part, f"{imported.part!r:.60} is not the name of a run")
                yield str(imported.part), imported.history
        except UsageError as error:
            unreadable.append(error)


class _Campaign:
    """A stored campaign: its folder, the user's name for it, and its cells by the prefix of their runs' names.

    A name goes on with the seed, and then with a digest, which differs in other versions of Faultline.
    """

    def __init__(self, root: Path, label: str, settings: Settings) -> None:
        self.folder = CampaignFolder(root)
        self._label = label
        self._settings = settings
        self._parts: dict[str, Parts] = {}
        self._checkers: dict[str, Sequence[Checker]] = {}
        self._plan, self._why_no_plan = _plan_in(self.folder)
        cells = self._plan.cells() if self._plan else ()
        self._cells = {cell.name.replace("/", "."): cell for cell in cells}
        self._seeds = self._plan.seed_range() if self._plan else range(0)

    def run(self, run_id: str, history: History | None) -> CheckedHistory:
        """Judge one run: from its folder where that is whole, else by its operations, else by its verdict alone."""
        label, folder = f"{self._label}#{run_id}", self.folder.run(run_id)
        if all(isfile(folder / name) for name in ("run.json", "history.jsonl")):
            checked = check_own_run(Path(label), folder, self._settings)
        elif history is None:
            checked = check_verdict(label, folder)
        else:
            checked = self._by_operations(label, folder, history)
        return self._with_what_is_allowed(checked, run_id)

    def completeness(self, present: set[str]) -> CheckedHistory:
        """Return the result for the number of planned runs that are `present`; the missing ones are unknown."""
        if self._plan is None:
            return shown(self._label, History(), "", [left_out("plan", self._why_no_plan)])
        planned, there = self._plan.runs(), len({self._beginning(run_id) for run_id in present} - {""})
        if there < planned:
            why = f"{planned - there} of the {planned} runs of the plan are missing"
            return shown(self._label, History(), "", [left_out("plan", why)])
        all_there = f"The plan has {planned} run{'' if planned == 1 else 's'}, and all are present."
        result = CheckResult(checker="plan", verdict=Verdict.PASS, sentence=all_there)
        return shown(self._label, History(), "", (), (), result)

    def _beginning(self, run_id: str) -> str:
        """Return the prefix of the run's name in the plan; '' for a run that the plan does not have."""
        words = run_id.split(".")
        beginnings = (".".join(words[:end]) for end in range(len(words), 0, -1))
        return next((beginning for beginning in beginnings if self._planned(beginning)), "")

    def _planned(self, beginning: str) -> RunRequest | None:
        """Return the request of the run whose name has this prefix, None when the plan has no such run."""
        name, _, seed = beginning.rpartition(".")
        if self._plan is None or name not in self._cells or not _SEED.fullmatch(seed) or int(seed) not in self._seeds:
            return None
        return self._plan.request(self._cells[name], int(seed))

    def _by_operations(self, label: str, folder: Path, history: History) -> CheckedHistory:
        """Judge a run of which only the operations are kept: by the promise of its workload.

        The checkers that judge the test rather than the promise need faults too: their stored results count.
        """
        request = self._planned(self._beginning(folder.name))
        if request is None:
            why = self._why_no_plan or "the plan of the campaign has no such run"
            return not_judged(label, history, folder, (), why)
        checkers = self._checkers_of(request)
        promised = [checker for checker in checkers if not getattr(checker, "judges_the_test", False)]
        try:
            plan = self._plan_of(folder, request)
        except UsageError as error:
            return not_judged(label, history, folder, promised, f"it cannot be planned again: {error.message}")
        stored, why_not = judgement_in(folder, plan)
        if why_not == OTHER_PLAN:
            why = "this version of Faultline plans the run differently from the one that ran it"
            return not_judged(label, history, folder, promised, why)
        record = RunRecord(plan=plan, world=request.world, history=history)
        if stored is not None and _is_of(stored, history):
            take_observations(record, stored)
            return judged_again(label, record, promised, self._settings, stored, {})
        why_not = why_not or "verdict.json is not of this run: it judged another history"
        missing = {name_of(checker): why_not for checker in checkers if checker not in promised}
        return judged_again(label, record, checkers, self._settings, None, missing)

    def _plan_of(self, folder: Path, request: RunRequest) -> Plan:
        """Return the plan of a run, which a run of a guided campaign has kept. Raise UsageError when there is none."""
        if self._plan is not None and self._plan.guided:
            return read_run_file(folder).plan
        return make_plan(request, self._parts_of(request))

    def _checkers_of(self, request: RunRequest) -> Sequence[Checker]:
        """Return the checkers of the run's workload, made once."""
        if request.workload not in self._checkers:
            self._checkers[request.workload] = checkers_for(self._label, request.workload, self._settings)
        return self._checkers[request.workload]

    def _parts_of(self, request: RunRequest) -> Parts:
        """Return the parts of the run's cell, found once."""
        if request.cell not in self._parts:
            self._parts[request.cell] = resolve(request)
        return self._parts[request.cell]

    def _with_what_is_allowed(self, checked: CheckedHistory, run_id: str) -> CheckedHistory:
        cell = self._cells.get(self._beginning(run_id).rpartition(".")[0])
        allowed = cell.expected if cell else ()
        result = checked.result
        if result.verdict is not Verdict.VIOLATION or not allowed or not_allowed(result.findings, allowed):
            return checked
        return replace(checked, notes=(*checked.notes, f"The campaign's plan allows this: {', '.join(allowed)}."))


def _is_of(stored: Judgement, history: History) -> bool:
    """Return whether the verdict counted these operations; its digest covers the faults too, which are not kept."""
    told = {kind: stored.counts.get(kind, 0) for kind in ("invoked", "ok", "fail")}
    counted = {"invoked": len(history), "ok": history.outcome.count("ok"), "fail": history.outcome.count("fail")}
    return told == counted


def _plan_in(folder: CampaignFolder) -> tuple[CampaignPlan | None, str]:
    """Return the campaign's plan, else the reason why it cannot be used; its expectations count only if it can be."""
    try:
        plan = read_json(folder.plan, CampaignPlan)
    except DamagedInput as error:
        return None, error.message.removesuffix(".")
    try:
        plan.expectations()
    except UsageError:
        plan = msgspec.structs.replace(plan, expected={})
    try:
        refuse_absurd_counts(plan, str(folder.plan))
    except UsageError as error:
        return None, f"{folder.plan} cannot be used as a plan: {error.message.removesuffix('.')}"
    return plan, ""
