"""Simulated runs inside Spark tasks.

One Spark partition is one work unit: a block of seeds of one cell. The task resolves the cell's parts once, runs seed
after seed, and writes its own files into the campaign's folder: a verdict per run, one Parquet file with all its
histories, one with its result rows. Back to the driver goes a receipt, nothing else; operations never cross a shuffle.

Files are written under another name and renamed, and named after their unit, so a task that Spark runs twice
overwrites its own work with the same bytes, and an interrupted campaign keeps every unit that was finished.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from faultline.campaign.commands import replay_command, run_command
from faultline.campaign.engine import Engine
from faultline.campaign.expectation import telling_finding
from faultline.campaign.histories import HISTORY_SCHEMA, history_table, write_parquet, write_part
from faultline.campaign.layout import CampaignFolder
from faultline.campaign.matrix import CampaignPlan, Cell, WorkUnit
from faultline.campaign.row import run_row, table_of_rows
from faultline.harness.errors import FaultlineError
from faultline.harness.judgement import Judgement
from faultline.harness.parts import Parts
from faultline.harness.results import appending, write_whole
from faultline.harness.run_record import RunRecord
from faultline.harness.store import prepare_run, run_id_of
from faultline.harness.verdict import Verdict

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SimulationJob", "broken_run", "keep_run", "progress_mark", "run_unit", "simulate", "write_verdict"]

_WORTH_KEEPING = (Verdict.VIOLATION, Verdict.UNKNOWN, Verdict.HARNESS_ERROR)
_RECEIPT = pa.schema([("unit", pa.int64()), ("runs", pa.int64())])


@dataclass(frozen=True, slots=True)
class SimulationJob:
    """What every task is given. `folder` is where it writes, `shown` the same folder as the user wrote it."""

    plan: CampaignPlan
    folder: CampaignFolder
    shown: Path
    engine: Engine


def simulate(session: SparkSession, job: SimulationJob) -> DataFrame:
    """The runs of `job` as a data frame of receipts (unit, runs); nothing runs until it is collected."""
    units = job.plan.units()

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                runs = run_unit(job, units[number])
                yield pa.RecordBatch.from_pylist([{"unit": number, "runs": runs}], schema=_RECEIPT)

    return session.range(0, len(units), 1, len(units)).mapInArrow(task, "unit long, runs long")


def run_unit(job: SimulationJob, unit: WorkUnit) -> int:
    """Run the seeds of one unit and write its files; returns how many runs there were."""
    cell = job.plan.cells()[unit.cell]
    parts = job.engine.resolve(job.plan.request(cell, unit.first_seed))
    rows: list[dict[str, Any]] = []
    histories: list[pa.Table] = []
    kept: dict[tuple[Verdict, str], int] = {}
    with appending(job.folder.progress_part(unit.number)) as progress:
        for seed in unit.seeds:
            judgement, record = _run_seed(job, cell, parts, seed)
            rows.append(_write_run(job, cell, judgement, record, kept))
            if record is not None:
                histories.append(history_table(judgement.run_id, record.history))
            progress(progress_mark(judgement.verdict))
    table = pa.concat_tables(histories) if histories else HISTORY_SCHEMA.empty_table()
    write_parquet(job.folder.history_part(unit.number), table)
    write_part(job.folder.rows_part(unit.number), table_of_rows(rows))
    return len(rows)


def _run_seed(job: SimulationJob, cell: Cell, parts: Parts, seed: int) -> tuple[Judgement, RunRecord | None]:
    """One run, judged. Whatever goes wrong in it is a harness error of this run and of no other."""
    record: RunRecord | None = None
    run_id = run_id_of(job.plan.request(cell, seed), job.plan.hosts)
    try:
        plan = job.engine.plan(job.plan.request(cell, seed), parts)
        record = job.engine.simulate(plan, parts, False)
        return job.engine.judge(record, parts, run_id), record
    except (Exception, SystemExit) as error:
        return broken_run(job.plan, cell, seed, run_id, error), record


def broken_run(plan: CampaignPlan, cell: Cell, seed: int, run_id: str, error: BaseException) -> Judgement:
    """The judgement of a run in which the harness itself failed with `error`."""
    said = str(error) if isinstance(error, FaultlineError) else f"{type(error).__name__}: {error} ({_place(error)})"
    return Judgement(
        run_id=run_id,
        cell=cell.name,
        system=cell.system,
        workload=cell.workload,
        fault_set=cell.faults,
        mutants=cell.mutants,
        options=plan.options,
        seed=seed,
        world=plan.world,
        verdict=Verdict.HARNESS_ERROR,
        sentence=said,
        errors=[said],
    )


def _place(error: BaseException) -> str:
    """The innermost place of an exception, as module file and line, without the machine's folders."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else "unknown place"


def _write_run(
    job: SimulationJob,
    cell: Cell,
    judgement: Judgement,
    record: RunRecord | None,
    kept: dict[tuple[Verdict, str], int],
) -> dict[str, Any]:
    """Write the run's files and return its row. Each unit keeps whole folders only for its first of each kind."""
    run_again = run_command(job.plan.request(cell, judgement.seed))
    kind = (judgement.verdict, _kind(judgement, cell))
    keep = judgement.verdict in _WORTH_KEEPING and kept.get(kind, 0) < job.plan.keep_per_signature
    judgement.replay = run_again
    if keep and record is not None:
        kept[kind] = kept.get(kind, 0) + 1
        judgement.replay = replay_command(job.shown / "runs" / judgement.run_id)
        keep_run(job.folder, judgement.run_id, record)
    write_verdict(job.folder, judgement)
    is_kept = keep and record is not None
    return run_row(judgement, record, expected=cell.expected, folder_kept=is_kept, run_again=run_again)


def _kind(judgement: Judgement, cell: Cell) -> str:
    """What violations are counted by: the finding that stands for the run."""
    finding = telling_finding(judgement.findings, cell.expected)
    return finding.signature if finding else ""


def progress_mark(verdict: str) -> bytes:
    """The byte that a finished run adds to the progress file of its unit."""
    return {"violation": b"V", "harness-error": b"E"}.get(verdict, b".")


def keep_run(folder: CampaignFolder, run_id: str, record: RunRecord) -> None:
    """Write what is needed to look at a run and to do it again: `run.json` and `history.jsonl`."""
    path = folder.run(run_id)
    prepare_run(path, run_id, record.plan, record.world)
    write_whole(path / "history.jsonl", record.history.to_jsonl(), durable=False)


def write_verdict(folder: CampaignFolder, judgement: Judgement) -> None:
    """Write `verdict.json`, without waiting for the disk as a single run does: a task that dies is run again."""
    path = folder.run(judgement.run_id)
    path.mkdir(parents=True, exist_ok=True)
    encoded = msgspec.json.format(msgspec.json.encode(judgement), indent=2)
    write_whole(path / "verdict.json", encoded + b"\n", durable=False)
