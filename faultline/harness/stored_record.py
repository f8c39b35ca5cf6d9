"""A stored run as a record again, as far as its files hold it, so that a checker can judge it once more.

`run.json` has the plan, and `history.jsonl` the operations and the effects of faults. Observations of the run itself
(breaches of invariants, marks, errors of the harness) are in `verdict.json` alone, and are taken from there when it
judged this very history. Messages are not kept.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.invariant import Breach
from faultline.harness.judgement import Judgement
from faultline.harness.plan import Plan
from faultline.harness.run_record import FaultInterval, RunRecord
from faultline.harness.store import StoredRun, read_judgement, read_run_file
from faultline.harness.stored_faults import fault_begun, fault_ended
from faultline.harness.untrusted import HISTORY_BYTES_MAX, read_whole

__all__ = ["OTHER_PLAN", "Recovered", "judgement_in", "recovered", "take_observations"]

_INVARIANTS = "invariants"
"""The checker whose findings are the breaches that a run reported."""


OTHER_PLAN = "verdict.json is not of this run: it judged another plan"
"""The reason why a judgement is not of a run, half a sentence."""


class Recovered(NamedTuple):
    """A run read back as a record; `judgement` is the one of this history, else None and `why_not` says why."""

    stored: StoredRun
    record: RunRecord
    judgement: Judgement | None
    why_not: str = ""


def recovered(folder: Path) -> Recovered:
    """Return the run in `folder`, which must have a history. Raise UsageError for a plan or a history that is
    malformed."""
    history_path = folder / "history.jsonl"
    file, data = read_run_file(folder), read_whole(history_path, bytes_max=HISTORY_BYTES_MAX)
    judgement, why_not = judgement_in(folder, file.plan, hashlib.sha256(data).hexdigest())
    stored = StoredRun(folder=str(folder), file=file, history_bytes=data, judgement=judgement)
    history = stored.history()
    record = RunRecord(
        plan=file.plan,
        world=file.world,
        history=history,
        faults=_intervals(history, str(history_path)),
        detail={"node_logs": [str(log) for log in sorted(folder.glob("nodes/*/node.log"))]},
    )
    if judgement is not None:
        take_observations(record, judgement)
    return Recovered(stored, record, judgement, why_not)


def take_observations(record: RunRecord, judgement: Judgement) -> None:
    """Give `record` the observations of the run itself, from the judgement that was written then."""
    record.marks, record.statistics = dict(judgement.marks), dict(judgement.statistics)
    record.errors, record.breaches = list(judgement.errors), _breaches(judgement)
    record.interrupted = judgement.interrupted


def judgement_in(folder: Path, plan: Plan, history_sha256: str = "") -> tuple[Judgement | None, str]:
    """Return the judgement of this run in `folder`; else None and the reason, half a sentence.

    It is of this run when it judged this plan and, where `history_sha256` is given, this history.
    """
    try:
        judgement = read_judgement(folder)
    except UsageError as error:
        return None, f"{error.message.removesuffix('.')}"
    if judgement is None:
        return None, "there is no verdict.json: the run did not end, or the file was removed"
    if history_sha256 and judgement.history_sha256 not in ("", history_sha256):
        return None, "verdict.json is not of this run: it judged another history"
    if judgement.plan_sha256 not in ("", plan.digest()):
        return None, OTHER_PLAN
    return judgement, ""


def _breaches(judgement: Judgement) -> list[Breach]:
    return [
        Breach(invariant=finding.anomaly, sentence=finding.sentence, time_us=finding.time_us, node=finding.node or "")
        for check in judgement.checks
        if check.checker == _INVARIANTS
        for finding in check.findings
    ]


def _intervals(history: History, source: str) -> list[FaultInterval]:
    """Return the faults as they happened, in order of the plan; one without a stop lasts until the history ends."""
    intervals: dict[int, FaultInterval] = {}
    end_us = history.end_us()
    for event in history.faults:
        verb, _, kind = event.f.partition("-")
        if verb == "start" and "fault" in event.value:
            told = msgspec.structs.asdict(fault_begun(event, source))
            number = told.pop("fault")
            intervals[number] = FaultInterval(kind=kind, start_us=event.time_us, stop_us=end_us, **told)
        elif verb == "stop" and "fault" in event.value:
            number = fault_ended(event, source).fault
            if number in intervals:
                intervals[number] = msgspec.structs.replace(intervals[number], stop_us=event.time_us)
    return [interval for _, interval in sorted(intervals.items())]
