"""A page for every violating run that was kept: each is repeated, with its messages recorded for the diagram.

The smallest run of each kind of violation is also shrunk, and its minimal run kept below it with a page of its own.

The repetition is also a test of the harness: the same seed must give the same history. Otherwise the campaign fails,
for its replay line would be a false promise."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from faultline.campaign.matrix import Cell
from faultline.campaign.simulate import SimulationJob
from faultline.campaign.tasks import on_workers
from faultline.harness.commands import replay_command
from faultline.harness.judgement import Judgement
from faultline.harness.parts import Parts
from faultline.harness.plan import Plan
from faultline.harness.store import read_run, write_judgement
from faultline.harness.untrusted import read_json
from faultline.harness.verdict import Verdict

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["explain", "explain_run"]


def explain(session: SparkSession, job: SimulationJob, runs: pa.Table, signatures: pa.Table) -> str:
    """Write the page of every violating run with a folder, and shrink the smallest run of each of the `signatures`.

    Return one sentence when a run did not repeat, else ''.
    """
    violating = pc.and_(runs["folder_kept"], pc.equal(runs["verdict"], Verdict.VIOLATION.value))
    run_ids = runs.filter(violating)["run_id"].to_pylist()
    smallest = dict(zip(signatures["run_id"].to_pylist(), signatures["signature"].to_pylist(), strict=True))
    if job.plan.world != "simulated" or not run_ids:
        return ""

    def task(number: int) -> str:
        return explain_run(job, run_ids[number], smallest.get(run_ids[number]))

    parts = min(len(run_ids), 4 * session.sparkContext.defaultParallelism)
    return " ".join(sorted(filter(None, on_workers(session, task, len(run_ids), parts)))[:3])


def explain_run(job: SimulationJob, run_id: str, shrinks_to: str | None = None) -> str:
    """Write the page of one run, shrunk first to a violation of the signature `shrinks_to` if that is given.

    Return the error as one sentence, or ''.
    """
    from faultline.reports.run_page import write_run_report

    path = job.folder.run(run_id)
    stored = read_run(path)
    judgement = read_json(path / "verdict.json", Judgement)
    parts = job.engine.resolve(job.plan.request(_cell(job, judgement), judgement.seed))
    record = job.engine.simulate(stored.file.plan, parts, True)
    if record.history.digest() != judgement.history_sha256:
        return f"Run {run_id} gave another history when it was repeated, so its world is not deterministic."
    try:
        if shrinks_to is not None and job.engine.minimize is not None:
            _keep_minimal(job, path, stored.file.plan, judgement, parts, shrinks_to)
        write_run_report(path, record, judgement)
    except Exception as error:
        return f"The page of run {run_id} could not be written ({type(error).__name__}: {error})."
    return ""


def _keep_minimal(
    job: SimulationJob, path: Path, plan: Plan, judgement: Judgement, parts: Parts, signature: str
) -> None:
    """Keep the minimal run below `path`, with its page, and note it in the judgement and in `verdict.json`."""
    from faultline.reports.run_page import write_run_report

    assert job.engine.minimize is not None

    def replay_of(kept: Path) -> str:
        return replay_command(job.shown / kept.relative_to(job.folder.root))

    minimal, record, smallest = job.engine.minimize(path, plan, judgement, parts, replay_of, signature)
    write_run_report(path / "minimal", record, smallest)
    judgement.detail["minimal"] = msgspec.to_builtins(minimal)
    write_judgement(path, judgement)


def _cell(job: SimulationJob, judgement: Judgement) -> Cell:
    return next(cell for cell in job.plan.cells() if cell.name == judgement.cell)
