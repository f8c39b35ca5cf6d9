"""The result of a campaign from its folder, whether it has ended, was killed, or still runs.

No run is repeated or removed: rows of finished units and verdicts of the others are counted (in DuckDB, without Java),
and `campaign.json`, `junit.xml`, `index.html` and the tables are replaced. The same folder gives the same result each
time. A running campaign also ends here when it was interrupted, when Spark failed, and after any error that follows its
runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa

from faultline.campaign.aggregate import aggregate
from faultline.campaign.guided.waves import units_of
from faultline.campaign.histories import write_parquet
from faultline.campaign.journal import Journal, read_journal, read_plan, read_rows, seconds_by_cell, write_record
from faultline.campaign.junit import junit_xml
from faultline.campaign.layout import CampaignFolder
from faultline.campaign.matrix import CampaignPlan
from faultline.campaign.outcome import campaign_exit_code
from faultline.campaign.salvage import salvage
from faultline.campaign.summarise import summarise
from faultline.campaign.summary import CampaignResult, CampaignSummary
from faultline.harness.errors import UsageError
from faultline.harness.results import writable, write_whole
from faultline.harness.verdict import Verdict, merge

__all__ = ["conclude", "conclude_folder", "write_results"]


def conclude_folder(path: Path) -> CampaignResult:
    """Summarise the campaign in the folder `path` from its files.

    Raise UsageError when `path` is no campaign, HarnessError when the results cannot be written.
    """
    folder = CampaignFolder(path.absolute())
    plan, journal = read_plan(folder), read_journal(folder)
    if not folder.runs.is_dir():
        raise UsageError(
            f"{path} is not a whole campaign: it has no folder runs/ with the verdicts of its runs.",
            "Copy the whole folder, also its empty folders.",
        )
    with writable(folder.root):
        folder.tables.mkdir(exist_ok=True)
    if journal.ending is None:
        journal = msgspec.structs.replace(journal, seconds=seconds_by_cell(plan, folder, units_of(plan, folder)))
    return conclude(plan, folder, journal, path)


def conclude(plan: CampaignPlan, folder: CampaignFolder, journal: Journal, shown: Path) -> CampaignResult:
    """Summarise the campaign `plan` in `folder`, which the user named `shown`, and write its results."""
    from faultline.campaign.duckdb_rows import DuckdbRows

    # Rows of finished units come first, because they have latencies and faults. A verdict counts only where its unit
    # left no rows, so that no run is counted twice, and a damaged file costs detail but no run.
    finished, damaged = read_rows(folder, plan)
    rows = pa.concat_tables([finished, salvage(plan, folder, finished)])
    tables = aggregate(DuckdbRows(rows), _whole_folders(folder, rows), journal.declared)
    summary = summarise(plan, folder, tables, journal)
    counted = "is damaged or of another plan; its runs were counted from their verdicts."
    warnings = [f"rows/{name} {counted}" for name in damaged]
    summary = msgspec.structs.replace(summary, warnings=(*warnings, *summary.warnings))
    return write_results(folder, shown, summary, tables)


def _whole_folders(folder: CampaignFolder, rows: pa.Table) -> list[str]:
    """Return the ids of the runs in `rows` whose whole folder exists."""
    kept = rows.filter(rows["folder_kept"])["run_id"].to_pylist()
    return [run_id for run_id in kept if (folder.run(run_id) / "history.jsonl").is_file()]


def write_results(
    folder: CampaignFolder, shown: Path, summary: CampaignSummary, tables: Mapping[str, pa.Table]
) -> CampaignResult:
    """Write the files of a campaign's result, and return their places.

    A file that cannot be written is missing, and the verdict stands; the campaign becomes a harness error, unless it
    is a violation.
    """
    problems = [
        problem
        for name, table in tables.items()
        if (problem := _problem_with(folder.table(name), partial(write_parquet, folder.table(name), table)))
    ]
    summary = _with_problems(summary, problems)
    last = [
        _problem_with(folder.junit, lambda: write_whole(folder.junit, junit_xml(summary))),
        _problem_with(folder.summary, lambda: write_record(folder.summary, summary)),
    ]
    told = _with_problems(summary, list(filter(None, last)))
    report, unwritten = _report(folder, shown)
    return CampaignResult(
        folder=shown,
        verdict=told.verdict,
        exit_code=told.exit_code,
        sentences=told.sentences,
        warnings=(*told.warnings, *unwritten),
        cells=told.cells,
        signatures=told.signatures,
        report=report,
        interrupted=told.interrupted,
    )


def _problem_with(path: Path, write: Callable[[], None]) -> str:
    """Call `write`; return the sentence about its error, or ''."""
    try:
        write()
    except OSError as error:
        return f"{path.name} could not be written: {error.strerror or error}."
    return ""


def _with_problems(summary: CampaignSummary, problems: Sequence[str]) -> CampaignSummary:
    """Return the summary of a campaign whose results could not all be written."""
    if not problems:
        return summary
    verdict = merge([summary.verdict, Verdict.HARNESS_ERROR])
    code = campaign_exit_code(verdict, interrupted=summary.interrupted)
    warnings = (*summary.warnings, *problems)
    return msgspec.structs.replace(summary, verdict=verdict, exit_code=code, warnings=warnings)


def _report(folder: CampaignFolder, shown: Path) -> tuple[Path | None, list[str]]:
    """Write the page; return the error as a sentence, because a verdict must not be lost with its page."""
    from faultline.reports.campaign_page import write_campaign_report

    try:
        return shown / write_campaign_report(folder.root).name, []
    except Exception as error:
        return None, [f"The campaign's page could not be written ({type(error).__name__}: {error})."]
