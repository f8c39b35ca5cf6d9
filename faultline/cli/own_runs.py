"""Runs of Faultline's own, judged again for `faultline check`: by the checkers of their workload, as they were then.

The plan beside the history says which checkers these are. What they cost may be more than in a run, as a person waits
for one history; apart from that, nothing about them can be chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from faultline.checkers.files import LARGE_BYTES, STEPS_MAX, CheckedHistory, check_by_key, check_histories, models
from faultline.checkers.importers.imported import ImportedHistory
from faultline.harness.errors import UsageError
from faultline.harness.judge import judge_by
from faultline.harness.judgement import Judgement
from faultline.harness.store import RunFile, read_run_file
from faultline.harness.stored_record import Recovered, recovered
from faultline.harness.verdict import CheckResult
from faultline.harness.workload import Checker
from faultline.registry import checkers_of, load_workload, workloads

__all__ = ["check_own_run", "folder_of_run"]

_BUDGETS = ("steps_max", "steps", "transactions_max")
"""What checkers call the budget of their search."""

_NEED_THE_VERDICT = ("availability", "invariants")
"""Checkers that would blame the system for what only `verdict.json` tells, or miss it: whether the harness failed, who
is slow by nature, and what was seen inside."""


def folder_of_run(path: Path) -> Path | None:
    """The folder of the run whose folder or history `path` is; None for anything else."""
    folder = path if path.is_dir() else path.parent if path.name == "history.jsonl" else None
    if folder is None or not (folder / "history.jsonl").is_file() or not (folder / "run.json").is_file():
        return None
    return folder


def check_own_run(path: Path, folder: Path, options: Mapping[str, Any], timeout_s: float | None) -> CheckedHistory:
    """Judge the run in `folder`, which the user named by `path`, by the checkers of its workload.

    A plan that cannot be read, or a history that is large and can be split by key, is judged like any history, and that
    is noted. Raises UsageError for a workload that is not installed, and for options that do not apply.
    """
    try:
        file = read_run_file(folder)
    except UsageError as error:
        checked = next(check_histories(path, "faultline", timeout_s=timeout_s, options=options))
        return _noted(checked, f"Its plan is not known: {error.message}")
    if (folder / "history.jsonl").stat().st_size > LARGE_BYTES:
        large = check_by_key(folder / "history.jsonl", timeout_s=timeout_s, options=options)
        if large is not None:
            return _noted(replace(large, label=str(path)), f"Its history has more than {LARGE_BYTES >> 20} MiB.")
    checkers = _checkers(path, file)
    _set_budgets(checkers, options, file.plan.workload)
    _set_time_limit(checkers, timeout_s)
    return _judged(path, recovered(folder), checkers, timeout_s)


def _noted(checked: CheckedHistory, why: str) -> CheckedHistory:
    return replace(checked, notes=(f"{why} So it is judged like any history, under {checked.model}.",))


# -- the checkers ----------------------------------------------------------------------------------------------------


def _checkers(path: Path, file: RunFile) -> Sequence[Checker]:
    name = file.plan.workload
    if name in workloads():
        return checkers_of(load_workload(name))
    package = file.providers.get("workload", "")
    came_with = f" which came with {package} and" if package else " which"
    install = f"pip install {package.split(' ')[0]}" if package else "install the package that brings it"
    raise UsageError(
        f"{path} is a run of the workload {name},{came_with} is not installed.",
        f"To judge it as it was judged, {install}; or name a model with --model: one of {', '.join(models())}.",
    )


def _set_budgets(checkers: Sequence[Checker], options: Mapping[str, Any], workload: str) -> None:
    """Give searches what a person waits for, or what was asked for; nothing else about a workload is an option."""
    for checker in checkers:
        if hasattr(checker, "steps_max"):
            checker.steps_max = max(checker.steps_max, STEPS_MAX)
    for name, value in options.items():
        taking = [checker for checker in checkers if name in _BUDGETS and hasattr(checker, name)]
        if not taking:
            raise UsageError(
                f"There is no use for --option {name}: the checkers of the workload {workload} have no option `{name}` "
                "that can be set.",
                f"Leave it out, {_settable(checkers)}or name a model with --model.",
            )
        if type(value) is not int or value < 1:
            raise UsageError(f"The option {name} must be a whole number above 0, not {value!r}.", "Give it another.")
        for checker in taking:
            setattr(checker, name, value)


def _settable(checkers: Sequence[Checker]) -> str:
    found = [name for name in _BUDGETS if any(hasattr(checker, name) for checker in checkers)]
    return f"set {' or '.join(found)}, " if found else ""


def _set_time_limit(checkers: Sequence[Checker], timeout_s: float | None) -> None:
    for checker in checkers:
        if hasattr(checker, "timeout_s"):
            checker.timeout_s = timeout_s


# -- the verdict -----------------------------------------------------------------------------------------------------


def _judged(path: Path, found: Recovered, checkers: Sequence[Checker], timeout_s: float | None) -> CheckedHistory:
    left_out = [] if found.judgement else [checker.name for checker in checkers if checker.name in _NEED_THE_VERDICT]
    asked = [checker for checker in checkers if checker.name not in left_out]
    judgement = judge_by(asked, found.record, run_id=found.stored.file.run_id)
    notes = [*_notes(found, judgement, left_out)]
    if timeout_s is not None and not any(hasattr(checker, "timeout_s") for checker in asked):
        notes.append("--timeout has no effect: these checkers count, and do not search.")
    history = found.record.history
    return CheckedHistory(
        label=str(path),
        format_name="faultline",
        model="",
        imported=ImportedHistory(history, None, "seconds", nemesis_events=len(history.faults)),
        result=_result(judgement),
        operations=len(history),
        workload=found.record.plan.workload,
        checks=tuple(judgement.checks),
        notes=tuple(notes),
    )


def _result(judgement: Judgement) -> CheckResult:
    """The judgement as one result: all findings, and the details of the check that decided."""
    telling = next((check for check in judgement.checks if check.verdict is judgement.verdict), None)
    return CheckResult(
        checker=telling.checker if telling else "harness",
        verdict=judgement.verdict,
        sentence=judgement.sentence,
        findings=tuple(judgement.findings),
        detail=telling.detail if telling else {},
        reason=telling.reason if telling else None,
    )


def _notes(found: Recovered, judgement: Judgement, left_out: Sequence[str]) -> Iterator[str]:
    """What was taken from the stored verdict, what could not be judged without it, and where the two differ."""
    stored = found.judgement
    if stored is None:
        yield f"Left out: {', '.join(left_out)}, as {found.why_not}."
        return
    breaches, errors = len(found.record.breaches), len(found.record.errors)
    yield f"Taken from verdict.json: breaches of invariants ({breaches}), errors of the harness ({errors})."
    if stored.verdict is not judgement.verdict:
        yield f"verdict.json says {stored.verdict.value}: {stored.sentence}"
