"""From result tables to the summary: sentences, intervals and expectations around the numbers that Spark counted."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

import faultline
from faultline.campaign.coverage import Coverage, coverage, coverage_sentences
from faultline.campaign.expectation import is_allowed
from faultline.campaign.features import (
    RUNS_MIN,
    RUNS_MIN_DRAWN,
    FeaturesEntered,
    features_entered,
    features_sentences,
    features_shortfall,
)
from faultline.campaign.guided.outlook import outlook, outlook_sentences
from faultline.campaign.guided.waves import planned_by_cell
from faultline.campaign.journal import Ending, Journal
from faultline.campaign.layout import CampaignFolder
from faultline.campaign.matrix import CampaignPlan, Cell
from faultline.campaign.outcome import NOT_SEEN, RunCounts, campaign_exit_code, campaign_verdict, remaining, standing
from faultline.campaign.sentences import (
    campaign_sentence,
    cell_sentence,
    exposure_sentence,
    faults_sentence,
    marks_sentence,
    never_reached,
    plural,
    sensitivity_sentences,
    signature_sentence,
)
from faultline.campaign.statistics import wilson_interval
from faultline.campaign.summary import CampaignSummary, CellSummary, LatencySummary, SignatureSummary
from faultline.harness.exposure import Exposure
from faultline.harness.sensitivity import Sensitivity
from faultline.harness.store import read_run
from faultline.harness.verdict import Verdict
from faultline.registry import fault_marks

__all__ = ["summarise"]

_VERDICT_COLUMNS = {
    "pass": "passed",
    "violation": "violations",
    "unknown": "unknown",
    "vacuous": "vacuous",
    "harness-error": "harness_errors",
}

_LONG = ("runs", "findings")
_SIGNATURES_TOLD = 3
_FAILING_SEEDS = 100

Rows = list[dict[str, Any]]


def summarise(
    plan: CampaignPlan, folder: CampaignFolder, tables: Mapping[str, pa.Table], journal: Journal
) -> CampaignSummary:
    """Return the summary of a campaign whose result tables are `tables`, whether it has ended or not."""
    rows: dict[str, Rows] = {name: each.to_pylist() for name, each in tables.items() if name not in _LONG}
    counted = {row["cell"]: row for row in rows["cells"]}
    _mark_expected(plan, rows["signatures"])
    failing = _failing_seeds(plan, tables["runs"])
    counts = {
        name: _counts(counted.get(name, {}), name, rows["signatures"], planned)
        for name, planned in planned_by_cell(plan, folder).items()
    }
    signatures = tuple(_signature(row, counts[row["cell"]].judged, folder) for row in rows["signatures"])
    cells = tuple(
        msgspec.structs.replace(
            _cell(plan, cell, counts[cell.name], counted.get(cell.name, {}), signatures),
            failing_seeds=tuple(failing.get(cell.name, ())[:_FAILING_SEEDS]),
            seconds=journal.seconds.get(cell.name, 0.0),
            sensitivity=_sensitivity(cell.name, rows["sensitivity"]),
        )
        for cell in plan.cells()
    )
    scheduled, finished = plan.runs(), tables["runs"].num_rows
    verdicts_only = sum(row["verdicts_only"] for row in rows["cells"])
    marks = _marks(rows["marks"])
    reached = {mark: runs for mark, runs in marks.items() if runs}
    covers = coverage(plan, tables["runs"])
    guided = outlook(plan, folder)
    entered = features_entered(journal.features, marks)
    missed = tuple(_missed(plan, journal, marks, rows))
    remains = [remaining(cell.expected, counts[cell.name], strict=plan.strict) for cell in plan.cells()]
    remains += [Verdict.VACUOUS for _ in missed]
    ending, missing = journal.ending or Ending(), scheduled - finished
    lost = missing > 0 and journal.ending is not None and not (ending.interrupted or ending.stopped)
    verdict = campaign_verdict(remains, finished=not missing, failed=bool(ending.failure) or lost)
    first = campaign_sentence(plan.name, verdict, cells, finished, scheduled, _why_incomplete(ending, missing))
    troubles = tuple(_troubles(plan, cells, journal, missed, missing))
    return CampaignSummary(
        id=folder.root.name,
        name=plan.name,
        plan=plan,
        plan_sha256=plan.digest(),
        verdict=verdict,
        exit_code=campaign_exit_code(verdict, interrupted=ending.interrupted),
        interrupted=ending.interrupted,
        scheduled=scheduled,
        finished=finished,
        verdicts_only=verdicts_only,
        sentence=first,
        sentences=(
            first,
            *_told(cells, signatures),
            faults_sentence(rows["faults"], finished, verdicts_only),
            *_tested(cells, reached, finished, entered, covers),
            *(outlook_sentences(guided) if guided else ()),
        ),
        troubles=troubles,
        warnings=(*troubles, *_doubts(rows, signatures, {*reached, *plan.must_reach})),
        cells=cells,
        signatures=signatures,
        latency=tuple(LatencySummary(**row) for row in rows["latency"]),
        marks=reached,
        marks_missing=tuple(mark for mark, runs in marks.items() if not runs),
        overlap=_overlap(rows["faults"]),
        features=entered,
        coverage=covers,
        environment={"master": journal.master, "world": plan.world},
        versions=_versions(),
        guided=guided,
    )


def _tested(
    cells: Sequence[CellSummary],
    reached: Mapping[str, int],
    finished: int,
    entered: Iterable[FeaturesEntered],
    covers: Iterable[Coverage],
) -> Iterator[str]:
    """Yield the sentences on how much the runs tested."""
    yield exposure_sentence(cells)
    yield from sensitivity_sentences(cells)
    yield marks_sentence(reached, finished)
    yield from features_sentences(entered)
    yield from coverage_sentences(covers)


def _mark_expected(plan: CampaignPlan, signatures: Rows) -> None:
    """Note for each kind of violation whether the plan allows it where it was seen."""
    allowed = {cell.name: cell.expected for cell in plan.cells()}
    for row in signatures:
        row["expected"] = is_allowed(row["checker"], row["anomaly"], allowed[row["cell"]])


def _counts(row: Mapping[str, Any], cell: str, signatures: Rows, planned: int) -> RunCounts:
    expected = sum(each["count"] for each in signatures if each["cell"] == cell and each["expected"])
    counts = {column: row.get(column, 0) for column in _VERDICT_COLUMNS.values()}
    return RunCounts(**counts, expected=expected, missing=max(0, planned - sum(counts.values())))


def _failing_seeds(plan: CampaignPlan, runs: pa.Table) -> dict[str, list[int]]:
    """Return the seeds of the runs of each cell with a violation that the plan does not allow, in order."""
    allowed = {cell.name: cell.expected for cell in plan.cells()}
    violating = runs.filter(pc.equal(runs["verdict"], Verdict.VIOLATION.value))
    seeds: dict[str, list[int]] = {}
    for row in violating.select(["cell", "seed", "checker", "anomaly"]).to_pylist():
        if not is_allowed(row["checker"], row["anomaly"], allowed[row["cell"]]):
            seeds.setdefault(row["cell"], []).append(row["seed"])
    return seeds


def _cell(
    plan: CampaignPlan, cell: Cell, counts: RunCounts, row: Mapping[str, Any], signatures: Sequence[SignatureSummary]
) -> CellSummary:
    low, high = wilson_interval(counts.violations, counts.judged)
    first_error = row.get("first_error") or ""
    own = [each for each in signatures if each.cell == cell.name]
    return CellSummary(
        cell=cell.name,
        system=cell.system,
        workload=cell.workload,
        fault_set=cell.faults,
        planted_bugs=cell.planted_bugs,
        options=plan.options,
        expected=cell.expected,
        verdict=counts.verdict,
        standing=standing(cell.expected, counts),
        sentence=cell_sentence(
            cell.name,
            cell.expected,
            counts,
            row.get("broken_promises", ()),
            _smallest(own),
            first_error,
            [each.signature for each in own if not each.expected],
        ),
        runs=counts.planned,
        counts={verdict: getattr(counts, column) for verdict, column in _VERDICT_COLUMNS.items()},
        violations_expected=counts.expected,
        violation_rate=counts.violations / counts.judged if counts.judged else 0.0,
        wilson_low=low,
        wilson_high=high,
        operations={outcome: row.get(f"operations_{outcome}", 0) for outcome in ("ok", "fail", "info")},
        first_error=first_error,
        exposure={name: row.get(f"exposure_{name}", 0) for name in Exposure().figures()},
    )


def _sensitivity(cell: str, rows: Rows) -> tuple[Sensitivity, ...]:
    """Return the sensitivity of the probed passes of a cell."""
    return tuple(
        Sensitivity(anomaly=row["anomaly"], inserted=row["inserted"], shown=row["shown"], limit=row["limit_text"])
        for row in rows
        if row["cell"] == cell
    )


def _smallest(signatures: Sequence[SignatureSummary]) -> tuple[int, int, Sequence[str] | None] | None:
    """Return the smallest counterexample; those that the plan does not allow come before those that it does."""
    if not signatures:
        return None
    best = min(signatures, key=lambda each: (each.expected, each.operations == 0, each.operations, each.seed))
    return best.seed, best.operations, best.fault_kinds if best.faults_known else None


def _signature(row: Mapping[str, Any], judged: int, folder: CampaignFolder) -> SignatureSummary:
    low, high = wilson_interval(row["count"], judged)
    report = Path("runs") / row["run_id"] / "report.html"
    minimal_report = report.parent / "minimal" / "report.html"
    return SignatureSummary(
        **{**row, "fault_kinds": tuple(row["fault_kinds"])},
        judged=judged,
        rate=row["count"] / judged,
        wilson_low=low,
        wilson_high=high,
        sentence=signature_sentence(row, judged),
        report=str(report) if (folder.root / report).is_file() else "",
        minimal=_minimal(folder.root / report.parent / "minimal" / "run.json"),
        minimal_report=str(minimal_report) if (folder.root / minimal_report).is_file() else "",
    )


def _minimal(run_file: Path) -> str:
    """Return the size of the minimal run, in words; empty when the run was not shrunk."""
    if not run_file.is_file():
        return ""
    plan = read_run(run_file.parent).file.plan
    return f"{plural(len(plan.operations), 'operation')} and {plural(len(plan.faults), 'fault')} still show it"


def _told(cells: Sequence[CellSummary], signatures: Sequence[SignatureSummary]) -> list[str]:
    """Return each cell's sentence, and below it its most frequent kinds of violation, each with its replay line."""
    lines: list[str] = []
    for cell in cells:
        lines.append(cell.sentence)
        own = sorted((each for each in signatures if each.cell == cell.cell), key=lambda each: each.expected)
        for each in own[:_SIGNATURES_TOLD]:
            shrunk = f" Shrunk: {each.minimal}." if each.minimal else ""
            lines += [f"  {each.sentence}{shrunk}", f"  {each.replay}"]
        if len(own) > _SIGNATURES_TOLD:
            lines.append(f"  … and {plural(len(own) - _SIGNATURES_TOLD, 'rarer kind')} of violation, in the report.")
    return lines


def _why_incomplete(ending: Ending, missing: int) -> str:
    """Return the reason, in a few words, for `missing` runs; '' when there are none."""
    if ending.interrupted:
        return "interrupted"
    if not missing:
        return ""
    return "stopped at a violation" if ending.stopped else "not finished"


def _troubles(
    plan: CampaignPlan, cells: Sequence[CellSummary], journal: Journal, missed: Sequence[str], missing: int
) -> Iterator[str]:
    """Yield the troubles of the campaign as a whole, apart from those of its cells."""
    ending = journal.ending
    if ending is not None and ending.interrupted:
        left = f"{plural(missing, 'run')} did not end" if missing else "all of its runs had ended"
        yield f"The campaign was interrupted: {left}."
    elif ending is None and missing:
        yield f"The campaign has not ended: {plural(missing, 'run')} did not end, or not yet."
    elif ending is not None and ending.stopped:
        yield f"The campaign stopped at its first violation: {plural(missing, 'run')} did not begin."
    elif missing:
        yield f"The campaign is incomplete: {plural(missing, 'run')} left no verdict."
    if ending is not None and ending.failure:
        yield ending.failure
    yield from missed
    if plan.strict:
        for cell in cells:
            if cell.standing == NOT_SEEN:
                yield f"{cell.cell}: a violation was expected and not seen, and the plan is strict."


def _missed(plan: CampaignPlan, journal: Journal, marks: Mapping[str, int], rows: Mapping[str, Rows]) -> Iterator[str]:
    """Yield a sentence for each mark that no run reached although the plan demands it or a promise rests on it."""
    for mark in plan.must_reach:
        if not marks.get(mark):
            yield f"No run reached {mark}, which the plan demands: the campaign proves too little."
    runs_min = RUNS_MIN_DRAWN if plan.universe else RUNS_MIN
    if told := features_shortfall(journal.features, rows["marks"], rows["cells"], plan.floors, runs_min):
        yield told


def _doubts(rows: Mapping[str, Rows], signatures: Sequence[SignatureSummary], marks: set[str]) -> list[str]:
    """Return the doubts about the result that a reader should know; `marks` are those that every cell might reach."""
    doubts: list[str] = []
    for row in rows["faults"]:
        if row["not_applied"]:
            doubts.append(
                f"{row['cell']}: {row['not_applied']} of {row['injections']} {row['kind']} faults did not take effect."
            )
        if row["operations_in_flight"] == 0:
            doubts.append(f"{row['cell']}: no operation was ever in flight during {row['kind']}.")
    for each in signatures:
        if each.folders_kept < each.count:
            shown = f"{each.folders_kept} of {plural(each.count, 'run')}"
            doubts.append(
                f"{each.cell}: {shown} with {each.signature} kept their whole folder, the others only their verdict."
            )
    return doubts + never_reached(_marks_expected(rows["marks"], marks))


def _marks_expected(rows: Rows, known: set[str]) -> Rows:
    """Return the `known` marks without those of faults: a cell does not miss a fault that it does not plan."""
    expected = known - fault_marks()
    return [row for row in rows if row["mark"] in expected]


def _marks(rows: Rows) -> dict[str, int]:
    marks: dict[str, int] = {}
    for row in rows:
        marks[row["mark"]] = marks.get(row["mark"], 0) + row["runs"]
    return dict(sorted(marks.items()))


def _overlap(rows: Rows) -> dict[str, int]:
    overlap: dict[str, int] = {}
    for row in rows:
        overlap[row["kind"]] = overlap.get(row["kind"], 0) + row["operations_in_flight"]
    return dict(sorted(overlap.items()))


def _versions() -> dict[str, str]:
    return {
        "faultline": faultline.__version__,
        "python": platform.python_version(),
        "pyspark": metadata.version("pyspark"),
        "pyarrow": metadata.version("pyarrow"),
        "duckdb": metadata.version("duckdb"),
    }
