"""Simulated runs, one work unit after another.

A work unit is a block of seeds of one cell. It resolves the cell's parts once, runs seed after seed, and writes its own
files into the campaign's folder: a verdict per run, one Parquet file with all its histories, and last, as the sign that
it is done, one with its result rows.

Files are written under a unique name and renamed, and named after their unit. So two attempts at one unit, one after
the other or at once, write the same bytes and never collide."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from faultline.campaign.engine import Engine
from faultline.campaign.expectation import is_expected_violation, telling_finding
from faultline.campaign.histories import HISTORY_SCHEMA, history_table, write_parquet, write_part
from faultline.campaign.layout import CampaignFolder
from faultline.campaign.matrix import CampaignPlan, Cell, Unit, WorkUnit
from faultline.campaign.row import run_row, table_of_rows
from faultline.harness.commands import replay_command, run_command
from faultline.harness.errors import FaultlineError
from faultline.harness.judgement import Judgement
from faultline.harness.parts import Parts
from faultline.harness.results import write_whole
from faultline.harness.run_record import RunRecord
from faultline.harness.store import prepare_run, run_id_of
from faultline.harness.verdict import Verdict

__all__ = [
    "Carried",
    "SimulationJob",
    "broken_run",
    "keep_run",
    "progress_mark",
    "run_seeds",
    "run_unit",
    "write_seconds",
    "write_verdict",
]

_WORTH_KEEPING = (Verdict.VIOLATION, Verdict.UNKNOWN, Verdict.HARNESS_ERROR)


@dataclass(frozen=True, slots=True)
class SimulationJob:
    """The input of every task. `folder` is the folder to write into, `shown` the same folder as the user named it."""

    plan: CampaignPlan
    folder: CampaignFolder
    shown: Path
    engine: Engine


Carried = tuple[Judgement, RunRecord | None]
"""A judged run, and its record, None where it has none."""


def run_unit(job: SimulationJob, unit: WorkUnit) -> int:
    """Run the seeds of one unit and write its files; return the number of runs."""
    cell = job.plan.cells()[unit.cell]
    parts = job.engine.resolve(job.plan.request(cell, unit.first_seed))
    return run_seeds(job, unit, lambda seed: _run_seed(job, cell, parts, seed))


def run_seeds(job: SimulationJob, unit: Unit, run: Callable[[int], Carried]) -> int:
    """Call `run` with the seeds of `unit`, one after the other, and write its files; return the number of runs."""
    began_s = time.monotonic()
    cell = job.plan.cells()[unit.cell]
    rows: list[dict[str, Any]] = []
    histories: list[pa.Table] = []
    kept: dict[tuple[Verdict, str], int] = {}
    with _progress(job.folder.progress_part(unit.number)) as mark:
        for number, seed in enumerate(unit.seeds):
            if job.plan.stop_at_violation and job.folder.stopped.exists():
                break
            judgement, record = run(seed)
            rows.append(_write_run(job, cell, judgement, record, kept))
            if record is not None:
                histories.append(history_table(judgement.run_id, record.history))
            mark(number, progress_mark(judgement.verdict))
            if job.plan.stop_at_violation and _ends_campaign(judgement, cell):
                job.folder.stopped.touch()
    table = pa.concat_tables(histories) if histories else HISTORY_SCHEMA.empty_table()
    write_parquet(job.folder.history_part(unit.number), table)
    write_seconds(job.folder.seconds_part(unit.number), time.monotonic() - began_s)
    write_part(job.folder.rows_part(unit.number), table_of_rows(rows))
    return len(rows)


@contextmanager
def _progress(path: Path) -> Iterator[Callable[[int, bytes], int]]:
    """Return a function that puts the mark of the n-th run into the progress file, where another attempt puts
    the same."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        yield lambda number, mark: os.pwrite(descriptor, mark, number)
    finally:
        os.close(descriptor)


def write_seconds(path: Path, seconds: float) -> None:
    """Note how long a work unit took, beside the rows: it is no result, and differs between attempts."""
    write_whole(path, f"{seconds:.3f}\n".encode(), durable=False)


def _run_seed(job: SimulationJob, cell: Cell, parts: Parts, seed: int) -> Carried:
    """Return the judgement of one run. An error in it is a harness error of this run alone."""
    record: RunRecord | None = None
    run_id = run_id_of(job.plan.request(cell, seed), job.plan.hosts)
    try:
        plan = job.engine.plan(job.plan.request(cell, seed), parts)
        record = job.engine.simulate(plan, parts, False)
        return job.engine.judge(record, parts, run_id), record
    except (Exception, SystemExit) as error:
        return broken_run(job.plan, cell, seed, run_id, error), record


def broken_run(plan: CampaignPlan, cell: Cell, seed: int, run_id: str, error: BaseException) -> Judgement:
    """Return the judgement of a run in which the harness itself failed with `error`."""
    said = str(error) if isinstance(error, FaultlineError) else f"{type(error).__name__}: {error} ({_place(error)})"
    return Judgement(
        run_id=run_id,
        cell=cell.name,
        system=cell.system,
        workload=cell.workload,
        fault_set=cell.faults,
        planted_bugs=cell.planted_bugs,
        options=plan.options,
        seed=seed,
        world=plan.world,
        verdict=Verdict.HARNESS_ERROR,
        sentence=said,
        errors=[said],
    )


def _place(error: BaseException) -> str:
    """Return the innermost place of an exception, as module file and line, without the machine's folders."""
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
    run_again = _run_again(job, cell, judgement, record)
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


def _run_again(job: SimulationJob, cell: Cell, judgement: Judgement, record: RunRecord | None) -> str:
    """Return the command that runs the seed anew: from the plan that a run of a guided campaign keeps."""
    if job.plan.guided and record is not None:
        return replay_command(job.shown / "runs" / judgement.run_id)
    return run_command(job.plan.request(cell, judgement.seed))


def _ends_campaign(judgement: Judgement, cell: Cell) -> bool:
    """Return whether the run violates in a way that the plan does not allow."""
    return judgement.verdict is Verdict.VIOLATION and not is_expected_violation(judgement, cell.expected)


def _kind(judgement: Judgement, cell: Cell) -> str:
    """Return the kind by which violations are counted: that of the finding that represents the run."""
    finding = telling_finding(judgement.findings, cell.expected)
    return finding.signature if finding else ""


def progress_mark(verdict: str) -> bytes:
    """Return the byte that a finished run adds to the progress file of its unit."""
    return {"violation": b"V", "harness-error": b"E"}.get(verdict, b".")


def keep_run(folder: CampaignFolder, run_id: str, record: RunRecord) -> None:
    """Write the files with which a run can be examined and repeated: `run.json` and `history.jsonl`."""
    path = folder.run(run_id)
    prepare_run(path, run_id, record.plan, record.world)
    write_whole(path / "history.jsonl", record.history.to_jsonl(), durable=False)


def write_verdict(folder: CampaignFolder, judgement: Judgement) -> None:
    """Write `verdict.json`, without waiting for the disk as a single run does: a task that dies is run again."""
    path = folder.run(judgement.run_id)
    path.mkdir(parents=True, exist_ok=True)
    encoded = msgspec.json.format(msgspec.json.encode(judgement), indent=2)
    write_whole(path / "verdict.json", encoded + b"\n", durable=False)
