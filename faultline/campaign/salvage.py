"""What an interrupted campaign still has: verdicts of units that did not come to their end.

A unit writes its rows when all its seeds are done. When it was stopped before that, its runs have left their verdicts;
rows are made from those, without latencies and faults, which are lost.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from faultline.campaign.commands import run_command
from faultline.campaign.histories import write_part
from faultline.campaign.layout import CampaignFolder
from faultline.campaign.matrix import CampaignPlan, WorkUnit
from faultline.campaign.row import run_row, table_of_rows
from faultline.harness.judgement import Judgement
from faultline.harness.store import run_id_of

__all__ = ["salvage"]


def salvage(plan: CampaignPlan, folder: CampaignFolder) -> int:
    """Write the rows of all unfinished units from their verdicts; returns how many runs were salvaged."""
    unfinished = [unit for unit in plan.units() if not folder.rows_part(unit.number).exists()]
    salvaged = 0
    for unit in unfinished:
        rows = _rows(plan, folder, unit)
        if rows:
            write_part(folder.rows_part(unit.number), table_of_rows(rows))
        salvaged += len(rows)
    return salvaged


def _rows(plan: CampaignPlan, folder: CampaignFolder, unit: WorkUnit) -> list[dict[str, Any]]:
    cell = plan.cells()[unit.cell]
    rows = []
    for seed in unit.seeds:
        path = folder.run(run_id_of(plan.request(cell, seed), plan.hosts))
        judgement = _judgement(path / "verdict.json")
        if judgement is not None:
            kept = (path / "history.jsonl").is_file()
            again = run_command(plan.request(cell, seed), plan.hosts)
            rows.append(run_row(judgement, None, expected=cell.expected, folder_kept=kept, run_again=again))
    return rows


def _judgement(path: Path) -> Judgement | None:
    """The judgement in the file; None when there is none, or it was being written when the task was stopped."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Judgement)
    except (OSError, msgspec.DecodeError):
        return None
