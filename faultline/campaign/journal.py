"""The journal of a campaign: the files in its folder from which it can be summarised at any time.

`plan.json` is written first, `journal.json` next; then every finished work unit leaves one file of rows, and every run
of an unfinished one its verdict. The ending of the campaign is added to `journal.json` last, just before the results
are made from all these files. A campaign that was killed has no ending; `faultline campaign conclude` can still
summarise it."""

from __future__ import annotations

from collections.abc import Iterable, Set
from pathlib import Path
from typing import TypeVar

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from faultline.campaign.features import DeclaredFeature
from faultline.campaign.layout import CampaignFolder
from faultline.campaign.matrix import CampaignPlan, Unit
from faultline.campaign.row import RUN_SCHEMA, check_figures
from faultline.harness.errors import UsageError
from faultline.harness.results import write_whole
from faultline.harness.untrusted import read_json
from faultline.harness.verdict import Verdict

__all__ = ["SCHEMA", "Ending", "Journal", "read_journal", "read_plan", "read_rows", "seconds_by_cell", "write_record"]

_Record = TypeVar("_Record")

SCHEMA = 1
"""Version of the journal and of the rows beside it."""


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """The ending of a campaign: interrupted by the user, by `failure`, one sentence, empty without one, or `stopped` at
    its first violation, as the plan asks."""

    interrupted: bool = False
    failure: str = ""
    stopped: bool = False


class Journal(msgspec.Struct, frozen=True, kw_only=True):
    """The beginning and the ending of a campaign; `ending` is None as long as it runs, and when it was killed.

    `features` are those that the systems declare; `declared` are all marks known by name, each after the system that
    should reach it: those the plan demands, and the features. `seconds` is the measured time of the runs of each cell.
    """

    schema: int = SCHEMA
    master: str = ""
    declared: tuple[tuple[str, str], ...] = ()
    features: tuple[DeclaredFeature, ...] = ()
    ending: Ending | None = None
    seconds: dict[str, float] = {}


def write_record(path: Path, record: object) -> None:
    """Write `record` as JSON for people and programs, whole or not at all."""
    write_whole(path, msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")


def read_plan(folder: CampaignFolder) -> CampaignPlan:
    """Return the plan of the campaign in `folder`. Raise UsageError when there is none to be read."""
    return _read(folder.plan, CampaignPlan)


def read_journal(folder: CampaignFolder) -> Journal:
    """Return the journal of the campaign in `folder`. Raise UsageError when it cannot be read, or is of another
    version."""
    journal = _read(folder.journal, Journal)
    if journal.schema != SCHEMA:
        raise UsageError(
            f"{folder.journal} has version {journal.schema} of the journal, but this Faultline reads {SCHEMA}.",
            "Use the version of Faultline that ran the campaign.",
        )
    return journal


def _read(path: Path, kind: type[_Record]) -> _Record:
    if not path.is_file():
        raise UsageError(
            f"{path.parent} is not a campaign: it has no {path.name}.",
            "Give the folder of a campaign, STORE/campaigns/NAME.",
        )
    return read_json(path, kind)


def read_rows(folder: CampaignFolder, plan: CampaignPlan | None = None) -> tuple[pa.Table, list[str]]:
    """Return the rows of all finished work units, and the names of the files that are damaged.

    With `plan`, a file also counts as damaged when it has a row that no run of the plan can have left, or a row that an
    earlier file has.
    """
    tables, damaged, seen = [RUN_SCHEMA.empty_table()], [], set[tuple[str, int]]()
    for path in folder.rows_parts():
        try:
            with pq.ParquetFile(path) as file:
                table = _of_today(file.read()).select(RUN_SCHEMA.names).cast(RUN_SCHEMA)
            check_figures(table)
            if plan is not None:
                seen |= _places(table, plan, seen)
            tables.append(table)
        except (pa.ArrowException, OSError, KeyError, ValueError):
            damaged.append(path.name)
    return pa.concat_tables(tables), damaged


def _of_today(table: pa.Table) -> pa.Table:
    """Return `table` with the column `covered`, which rows of former versions lack: nothing is known of them."""
    if "covered" in table.column_names:
        return table
    field = RUN_SCHEMA.field("covered")
    return table.append_column(field, pa.array([[]] * table.num_rows, field.type))


def _places(table: pa.Table, plan: CampaignPlan, seen: Set[tuple[str, int]]) -> set[tuple[str, int]]:
    """Return the cell and seed of each row of `table`. Raise ValueError when the rows are not of `plan`, or are not
    new."""
    cells, seeds = {cell.name for cell in plan.cells()}, plan.seed_range()
    places = list(zip(table["cell"].to_pylist(), table["seed"].to_pylist(), strict=True))
    if not all(cell in cells and seed in seeds for cell, seed in places):
        raise ValueError("rows of another plan")
    if len(set(places)) < len(places) or seen & set(places):
        raise ValueError("two rows of one run")
    if any(table[name].null_count for name in table.column_names):
        raise ValueError("rows with holes")
    if not set(table["verdict"].to_pylist()) <= set(Verdict) or not all(map(_is_name, table["run_id"].to_pylist())):
        raise ValueError("rows that no run leaves")
    return set(places)


def _is_name(text: str) -> bool:
    """Return whether `text` can be the name of a file."""
    return 0 < len(text.encode()) < 256 and not set("/\0") & set(text) and text not in (".", "..")


def seconds_by_cell(plan: CampaignPlan, folder: CampaignFolder, units: Iterable[Unit]) -> dict[str, float]:
    """Return the seconds that the finished ones of the work `units` of each cell took, without those that did not note
    them."""
    cells, seconds = plan.cells(), dict[str, float]()
    for unit in units:
        name, path = cells[unit.cell].name, folder.seconds_part(unit.number)
        try:
            seconds[name] = round(seconds.get(name, 0.0) + float(path.read_text("ascii")), 3)
        except (OSError, ValueError):
            continue
    return seconds
