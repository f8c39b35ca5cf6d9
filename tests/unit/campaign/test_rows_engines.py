"""The two engines that answer the queries of a campaign agree, on rows of real runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from faultline.campaign.aggregate import TABLES, RowsEngine, aggregate, choose_kept
from faultline.campaign.duckdb_rows import DuckdbRows
from faultline.campaign.engine import default_engine
from faultline.campaign.histories import write_parquet
from faultline.campaign.journal import read_rows
from faultline.campaign.layout import CampaignFolder
from faultline.campaign.matrix import CampaignPlan
from faultline.campaign.row import RUN_SCHEMA, table_of_rows
from faultline.campaign.simulate import SimulationJob, broken_run, run_unit
from faultline.campaign.spark import spark_session
from faultline.campaign.spark_rows import SparkRows

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PLAN = CampaignPlan(
    name="both",
    fault_sets=((), ("leadership",)),
    planted_bugs=((), ("stale-read",), ("acknowledge-last-index",)),
    seeds="0..17",
    seeds_per_task=9,
)
DECLARED = (("consistent-core", "leader-elected"), ("consistent-core", "never"), ("another", "never"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> CampaignFolder:
    """A campaign in which correct and planted systems ran, one run broke, and one left only its verdict."""
    folder = CampaignFolder(tmp_path_factory.mktemp("campaign"))
    folder.make()
    job = SimulationJob(PLAN, folder, folder.root, default_engine("simulated"))
    for unit in PLAN.units():
        run_unit(job, unit)
    rows = pa.concat_tables([read_rows(folder)[0], odd_rows(folder)])
    for part in folder.rows_parts():
        part.unlink()
    half = len(rows) // 2
    write_parquet(folder.rows_part(0), rows.slice(0, half))
    write_parquet(folder.rows_part(1), rows.slice(half))
    return folder


def odd_rows(folder: CampaignFolder) -> pa.Table:
    """A run that broke, and one that violates, has no key and no fault, and left only its verdict."""
    from faultline.campaign.row import run_row

    cell = PLAN.cells()[1]
    broken = broken_run(PLAN, cell, 400, "broken", ZeroDivisionError('it\'s "broken"'))
    rows = [run_row(broken, None, expected=(), folder_kept=False, run_again="again")]
    whole = read_rows(folder)[0]
    violating = whole.filter(pa.compute.equal(whole["verdict"], "violation")).slice(0, 1).to_pylist()[0]
    nothing: dict[str, Any] = {"latency": [], "faults": [], "counterexample_faults": [], "counts": [], "marks": []}
    rows.append(violating | nothing | {"run_id": "bare", "seed": 401, "counterexample_operations": 0})
    rows[-1]["verdict_only"] = True
    return table_of_rows(rows)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with spark_session("local[2]", tmp_path_factory.mktemp("spark")) as running:
        yield running


def answers(engine: RowsEngine, folder: CampaignFolder) -> dict[str, pa.Table]:
    kept = choose_kept(engine, 2)
    return {"kept": pa.table({"run_id": sorted(kept)}), **aggregate(engine, kept, DECLARED)}


def test_both_engines_give_the_same_tables(folder: CampaignFolder, session: Any) -> None:
    ours = answers(DuckdbRows(read_rows(folder)[0]), folder)
    theirs = answers(SparkRows(session, folder.rows_parts()), folder)
    for name in ("kept", *TABLES):
        assert ours[name].num_rows > 0, name
        assert ours[name].schema.equals(theirs[name].schema), name
        assert ours[name].to_pylist() == theirs[name].to_pylist(), name


def test_both_engines_give_the_same_tables_without_a_run(tmp_path: Path, session: Any) -> None:
    folder = CampaignFolder(tmp_path)
    folder.make()
    write_parquet(folder.rows_part(0), RUN_SCHEMA.empty_table())
    ours = answers(DuckdbRows(read_rows(folder)[0]), folder)
    theirs = answers(SparkRows(session, folder.rows_parts()), folder)
    for name in TABLES:
        assert (ours[name].num_rows, theirs[name].num_rows) == (0, 0), name
        assert ours[name].schema.equals(theirs[name].schema), name
