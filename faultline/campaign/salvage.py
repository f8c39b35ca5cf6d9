"""The rest of unfinished work units: the verdicts of their runs.

A unit writes its rows when all its seeds are done. When it was stopped before that, its runs have left their verdicts.
Rows are made from those, without latencies and faults, which are lost.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from faultline.campaign.layout import CampaignFolder
from faultline.campaign.matrix import CampaignPlan
from faultline.campaign.row import RUN_SCHEMA, check_figures, run_row, table_of_rows
from faultline.harness.commands import run_command
from faultline.harness.judgement import Judgement
from faultline.harness.untrusted import DamagedInput, read_json
from faultline.harness.verdict import merge

__all__ = ["salvage", "stored_verdicts"]


def salvage(plan: CampaignPlan, folder: CampaignFolder, finished: pa.Table) -> pa.Table:
    """Return the rows of all runs of the campaign that left a verdict and have no row in `finished`.

    Where two runs of one cell and seed have left verdicts, because a unit was tried twice, the graver one counts.
    """
    counted = set(zip(finished["cell"].to_pylist(), finished["seed"].to_pylist(), strict=True))
    gravest: dict[tuple[str, int], tuple[Path, Judgement]] = {}
    for path, judgement in stored_verdicts(folder, frozenset(finished["run_id"].to_pylist())):
        place = (judgement.cell, judgement.seed)
        if place not in counted and (place not in gravest or _is_graver(judgement, gravest[place][1])):
            gravest[place] = (path, judgement)
    cells, seeds = {cell.name: cell for cell in plan.cells()}, plan.seed_range()
    rows = [
        run_row(
            judgement,
            None,
            expected=cells[cell].expected,
            folder_kept=(path / "history.jsonl").is_file(),
            run_again=judgement.replay if plan.guided else run_command(plan.request(cells[cell], seed), plan.hosts),
            verdict_only=True,
        )
        for (cell, seed), (path, judgement) in gravest.items()
        if cell in cells and seed in seeds
    ]
    return pa.concat_tables([RUN_SCHEMA.empty_table(), *(table for row in rows for table in _tables(row))])


def _tables(row: dict[str, Any]) -> list[pa.Table]:
    """Return the row as a table; none when a table cannot hold it, which happens only with a damaged verdict."""
    try:
        table = table_of_rows([row])
        check_figures(table)
    except (pa.ArrowException, ValueError, OverflowError):
        return []
    return [table]


def stored_verdicts(folder: CampaignFolder, besides: Container[str] = frozenset()) -> Iterator[tuple[Path, Judgement]]:
    """Yield each run folder with a whole verdict, and that verdict, in the order of their names, except those in
    `besides`.

    A verdict that cannot be read does not count: its run did not end.
    """
    for path in sorted(each for each in folder.runs.iterdir() if each.name not in besides):
        try:
            yield path, read_json(path / "verdict.json", Judgement)
        except DamagedInput:
            continue


def _is_graver(one: Judgement, other: Judgement) -> bool:
    return one.verdict is not other.verdict and merge([one.verdict, other.verdict]) is one.verdict
