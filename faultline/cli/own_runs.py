"""Runs of Faultline's own, judged again for `faultline check` by the checkers of their workload, as they were then.

The plan beside the history names these checkers. Their budgets may be larger than in a run, as a person waits for one
history; the user can choose nothing else about them. The run's `verdict.json` counts beside them (`stored_verdicts`),
and a check that cannot be done, or cannot be repeated, is *unknown* by its name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from os.path import isdir, isfile
from pathlib import Path
from typing import Any, NamedTuple

from faultline.checkers.files import LARGE_BYTES, STEPS_MAX, CheckedHistory, check_by_key, check_histories, models
from faultline.checkers.importers.imported import ImportedHistory
from faultline.cli.stored_verdicts import as_one, beyond, disagreement
from faultline.harness.checks import left_out, name_of
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.judge import judge_by
from faultline.harness.judgement import Judgement
from faultline.harness.run_record import RunRecord
from faultline.harness.store import RunFile, read_judgement, read_run_file
from faultline.harness.stored_record import judgement_in, recovered
from faultline.harness.verdict import CheckResult, Verdict
from faultline.harness.workload import Checker
from faultline.registry import checkers_of, load_workload, workloads

__all__ = [
    "Settings",
    "check_own_run",
    "check_verdict",
    "checkers_for",
    "folder_of_run",
    "judged_again",
    "not_judged",
    "shown",
]

_BUDGETS = ("steps_max", "steps", "transactions_max")
"""The names of the search budget among the checkers' options."""

_NEED_THE_VERDICT = ("availability", "invariants")
"""Checkers that need facts from `verdict.json` alone, and would be wrong without them: whether the harness failed,
which nodes are slow by nature, and the events inside the system."""


class Settings(NamedTuple):
    """The user's settings for the checks: options of the searches, and seconds for each history."""

    options: Mapping[str, Any]
    timeout_s: float | None = None


def folder_of_run(path: Path) -> Path | None:
    """Return the folder of the run whose folder or history `path` is; None for anything else."""
    folder = path if isdir(path) else path.parent if path.name == "history.jsonl" else None
    if folder is None or not any(isfile(folder / name) for name in ("run.json", "verdict.json")):
        return None
    return folder


def check_own_run(path: Path, folder: Path, settings: Settings) -> CheckedHistory:
    """Judge the run in `folder`, which the user named by `path`, by the checkers of its workload.

    A history whose plan cannot be read, or which is large and can be split by key, is judged like any history. The
    other checks of its workload are taken from the stored verdict or are *unknown*. Raise UsageError for a workload
    that is not installed, and for options that do not apply."""
    has_history = isfile(folder / "history.jsonl")
    if not isfile(folder / "run.json") and not has_history:
        return check_verdict(str(path), folder)
    try:
        file = read_run_file(folder)
    except UsageError as error:
        return _without_plan(path, folder, settings, error)
    checkers = checkers_for(str(path), file.plan.workload, settings, file.providers)
    if not has_history:
        return _without_history(path, file, checkers)
    if (folder / "history.jsonl").stat().st_size > LARGE_BYTES:
        large = check_by_key(folder / "history.jsonl", timeout_s=settings.timeout_s, options=settings.options)
        if large is not None:
            return _in_parts(replace(large, label=str(path)), folder, file, checkers)
    found = recovered(folder)
    missing = {} if found.judgement else dict.fromkeys(_NEED_THE_VERDICT, found.why_not)
    return judged_again(str(path), found.record, checkers, settings, found.judgement, missing)


def check_verdict(label: str, folder: Path) -> CheckedHistory:
    """Return the stored verdict of a run of which only that is left in `folder`: it counts as it was given."""
    try:
        stored = read_judgement(folder)
    except UsageError as error:
        return shown(label, History(), "", [left_out("verdict.json", error.message.removesuffix("."))])
    if stored is None:
        return shown(label, History(), "", [left_out("verdict.json", "it is missing")])
    result = as_one(beyond([], stored), stored.verdict, stored.sentence)
    note = "Its history was not kept, so it is not judged again: this is the verdict of the run itself."
    alone = shown(label, History(), stored.workload, stored.checks, (note,), result)
    return replace(alone, operations=stored.counts.get("invoked", 0))


def not_judged(label: str, history: History, folder: Path, checkers: Sequence[Checker], why: str) -> CheckedHistory:
    """Return a run whose checkers cannot be asked, for the reason `why`, half a sentence; its stored
    verdict counts."""
    missing = [left_out(name, why) for name in map(name_of, checkers)] or [left_out("workload", why)]
    alone = check_verdict(label, folder)
    names = {check.checker for check in missing}
    then = [check for check in alone.checks if check.verdict is Verdict.VIOLATION or check.checker not in names]
    checks = [*missing, *then]
    grave = alone.result if alone.result.verdict is Verdict.VIOLATION else missing[0]
    return shown(label, history, alone.workload, checks, (), as_one(checks, grave.verdict, grave.sentence))


def _without_plan(path: Path, folder: Path, settings: Settings, error: UsageError) -> CheckedHistory:
    """Return a run judged like any history: its other checks come from the stored verdict or are unknown."""
    checked = next(check_histories(path, "faultline", timeout_s=settings.timeout_s, options=settings.options))
    others = _stored_beyond(checked.result, folder)
    if isfile(folder / "run.json"):
        others += [left_out("workload", error.message.removesuffix("."))]
    return _with(checked, [checked.result, *others], f"Its plan is unknown: {error.message}") if others else checked


def _stored_beyond(result: CheckResult, folder: Path) -> list[CheckResult]:
    """Return the checks of `verdict.json`, if there is one, that `result` of the history beside it does not cover."""
    try:
        stored = read_judgement(folder)
    except UsageError as error:
        return [left_out("verdict.json", error.message.removesuffix("."))]
    if stored is not None and stored.history_sha256 not in ("", _digest(folder / "history.jsonl")):
        return [left_out("verdict.json", "it judged another history")]
    return beyond([result], stored) if stored else []


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _in_parts(large: CheckedHistory, folder: Path, file: RunFile, checkers: Sequence[Checker]) -> CheckedHistory:
    """Return a large history judged like any, key by key, with the other checks from the stored verdict."""
    stored, why_not = judgement_in(folder, file.plan, _digest(folder / "history.jsonl"))
    if stored is not None:
        others = beyond([large.result], stored)
    else:
        others = [left_out(name_of(one), why_not) for one in checkers if name_of(one) != large.result.checker]
    return _with(large, [large.result, *others], f"Its history has more than {LARGE_BYTES >> 20} MiB.")


def _with(checked: CheckedHistory, checks: Sequence[CheckResult], why: str) -> CheckedHistory:
    note = f"{why} So it is judged like any history, under {checked.model}."
    result = as_one(checks, checked.result.verdict, checked.result.sentence)
    return replace(checked, result=result, checks=tuple(checks), notes=(note,))


def _without_history(path: Path, file: RunFile, checkers: Sequence[Checker]) -> CheckedHistory:
    """Return a run that ended before anything was recorded: no check can be done."""
    checks = [left_out(name_of(checker), "there is no history.jsonl") for checker in checkers]
    return shown(str(path), History(), file.plan.workload, checks)


def checkers_for(
    label: str, name: str, settings: Settings, providers: Mapping[str, str] | None = None
) -> Sequence[Checker]:
    """Return the checkers of the workload called `name`, with the user's settings.

    `label` is the run as the user named it, and `providers` the packages that it came with, if they are known.
    """
    if name in workloads():
        checkers = checkers_of(load_workload(name))
        _set_budgets(checkers, settings.options, name)
        _set_time_limit(checkers, settings.timeout_s)
        return checkers
    package = (providers or {}).get("workload", "")
    came_with = f" which came with {package} and" if package else " which"
    install = f"pip install {package.split(' ')[0]}" if package else "install the package that brings it"
    raise UsageError(
        f"{label} is a run of the workload {name},{came_with} is not installed.",
        f"To judge it as the run was judged, {install}; or name a model with --model: one of {', '.join(models())}.",
    )


def _set_budgets(checkers: Sequence[Checker], options: Mapping[str, Any], workload: str) -> None:
    """Set the budgets of searches: as asked for, else as long as a person waits; no other option can be set."""
    for checker in checkers:
        if hasattr(checker, "steps_max"):
            checker.steps_max = max(checker.steps_max, STEPS_MAX)
    for name, value in options.items():
        taking = [checker for checker in checkers if name in _BUDGETS and hasattr(checker, name)]
        if not taking:
            raise UsageError(
                f"--option {name} has no effect: the checkers of the workload {workload} have no option `{name}` "
                "that can be set.",
                f"Leave it out, {_settable(checkers)}or name a model with --model.",
            )
        if type(value) is not int or value < 1:
            raise UsageError(f"The option {name} must be a whole number above 0, not {value!r}.", "Give another value.")
        for checker in taking:
            setattr(checker, name, value)


def _settable(checkers: Sequence[Checker]) -> str:
    found = [name for name in _BUDGETS if any(hasattr(checker, name) for checker in checkers)]
    return f"set {' or '.join(found)}, " if found else ""


def _set_time_limit(checkers: Sequence[Checker], timeout_s: float | None) -> None:
    for checker in checkers:
        if hasattr(checker, "timeout_s"):
            checker.timeout_s = timeout_s


def judged_again(
    label: str,
    record: RunRecord,
    checkers: Sequence[Checker],
    settings: Settings,
    stored: Judgement | None,
    missing: Mapping[str, str],
) -> CheckedHistory:
    """Return the results of `checkers` for `record` now, and the further checks of the `stored` judgement of this run.

    `missing` names checkers that cannot be asked, each with the reason.
    """
    now = judge_by(checkers, record, run_id=label, without=missing)
    checks = [*now.checks, *(beyond(now.checks, stored) if stored else ())]
    result = as_one(checks, now.verdict, now.sentence)
    notes = [*_notes(record, stored, result.verdict, missing)]
    if settings.timeout_s is not None and not any(hasattr(checker, "timeout_s") for checker in checkers):
        notes.append("--timeout has no effect: these checkers count, and do not search.")
    return shown(label, record.history, record.plan.workload, checks, notes, result)


def shown(
    label: str,
    history: History,
    workload: str,
    checks: Sequence[CheckResult],
    notes: Sequence[str] = (),
    result: CheckResult | None = None,
) -> CheckedHistory:
    """Return a run of Faultline's own, to be shown with its `checks`; `result` merges them."""
    return CheckedHistory(
        label=label,
        format_name="faultline",
        model="",
        imported=ImportedHistory(history, None, "seconds", nemesis_events=len(history.faults)),
        result=result or as_one(checks),
        operations=len(history),
        workload=workload,
        checks=tuple(checks),
        notes=tuple(notes),
    )


def _notes(record: RunRecord, stored: Judgement | None, verdict: Verdict, missing: Mapping[str, str]) -> Iterator[str]:
    """Yield notes: the checks from the stored verdict, those that could not be judged, and any disagreement."""
    for why in dict.fromkeys(missing.values()):
        names = ", ".join(name for name, reason in missing.items() if reason == why)
        yield f"Left out: {names}, as {why}."
    if stored is None:
        return
    breaches, errors = len(record.breaches), len(record.errors)
    yield f"Taken from verdict.json: breaches of invariants ({breaches}), errors of the harness ({errors})."
    told = disagreement(stored, verdict)
    if told:
        yield told
