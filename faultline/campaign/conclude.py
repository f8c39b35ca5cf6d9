"""The result of a campaign from what its folder holds, whether it has ended, was killed, or still runs.

Nothing is run, repeated or removed: rows of finished units and verdicts of the others are counted (in DuckDB, without
Java), and `campaign.json`, `junit.xml`, `index.html` and the tables are written in place of those that are there. The
same folder gives the same result each time. A running campaign ends here as well when it was interrupted, when Spark
failed, and when anything went wrong after its runs.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow as pa

from faultline.campaign.aggregate import aggregate
from faultline.campaign.journal import Journal, read_journal, read_plan, read_rows, seconds_by_cell, write_record
from faultline.campaign.junit import junit_xml
from faultline.campaign.layout import CampaignFolder
from faultline.campaign.matrix import CampaignPlan
from faultline.campaign.row import table_of_rows
from faultline.campaign.salvage import salvage
from faultline.campaign.summarise import summarise
from faultline.campaign.summary import CampaignResult, CampaignSummary
from faultline.harness.results import writable, write_whole

__all__ = ["conclude", "conclude_folder", "write_results"]


def conclude_folder(path: Path) -> CampaignResult:
    """Summarise the campaign in the folder `path` from what it holds.

    Raises UsageError when `path` is no campaign, HarnessError when the results cannot be written.
    """
    folder = CampaignFolder(path.absolute())
    plan, journal = read_plan(folder), read_journal(folder)
    if journal.ending is None:
        journal = msgspec.structs.replace(journal, seconds=seconds_by_cell(plan, folder))
    return conclude(plan, folder, journal, path)


def conclude(plan: CampaignPlan, folder: CampaignFolder, journal: Journal, shown: Path) -> CampaignResult:
    """Summarise the campaign `plan` in `folder`, which the user calls `shown`, and write its results."""
    from faultline.campaign.duckdb_rows import DuckdbRows

    finished, damaged = read_rows(folder)
    rows = pa.concat_tables([finished, table_of_rows(salvage(plan, folder, finished))])
    with writable(folder.root):
        tables = aggregate(DuckdbRows(rows), folder, _whole_folders(folder, rows), journal.declared)
    summary = summarise(plan, folder, tables, journal)
    warnings = [f"rows/{name} is damaged; its runs were counted from their verdicts." for name in damaged]
    return write_results(folder, shown, msgspec.structs.replace(summary, warnings=(*warnings, *summary.warnings)))


def _whole_folders(folder: CampaignFolder, rows: pa.Table) -> list[str]:
    """The ids of the runs in `rows` whose whole folder is there."""
    kept = rows.filter(rows["folder_kept"])["run_id"].to_pylist()
    return [run_id for run_id in kept if (folder.run(run_id) / "history.jsonl").is_file()]


def write_results(folder: CampaignFolder, shown: Path, summary: CampaignSummary) -> CampaignResult:
    """Write the files that tell a campaign's result, and say where they are."""
    with writable(folder.root):
        write_whole(folder.junit, junit_xml(summary))
        write_record(folder.summary, summary)
    report, problem = _report(folder, shown)
    return CampaignResult(
        folder=shown,
        verdict=summary.verdict,
        exit_code=summary.exit_code,
        sentences=summary.sentences,
        warnings=(*summary.warnings, *problem),
        cells=summary.cells,
        signatures=summary.signatures,
        report=report,
        interrupted=summary.interrupted,
    )


def _report(folder: CampaignFolder, shown: Path) -> tuple[Path | None, list[str]]:
    """Write the page; a verdict must not be lost because its page cannot be written."""
    from faultline.reports.campaign_page import write_campaign_report

    try:
        return shown / write_campaign_report(folder.root).name, []
    except Exception as error:
        return None, [f"The campaign's page could not be written ({type(error).__name__}: {error})."]
