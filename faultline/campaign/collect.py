"""Real runs: carried out one after the other on the driver's machine, checked per key on Spark.

Real processes cannot be spread over executors, but checking can. Each run's history becomes one Parquet file; a task
reads it by name and judges single keys; the driver then judges the run with those answers in place of the search.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from faultline.campaign.histories import history_table, read_history, write_parquet
from faultline.campaign.journal import Ending
from faultline.campaign.matrix import Cell
from faultline.campaign.row import run_row, table_of_rows
from faultline.campaign.simulate import SimulationJob, broken_run, progress_mark, write_seconds, write_verdict
from faultline.campaign.summary import Progress
from faultline.campaign.tasks import failure_sentence, on_workers
from faultline.checkers.linearizability.checker import LinearizabilityChecker
from faultline.checkers.linearizability.judgement import KeyJudgement
from faultline.checkers.porcupine import Budget
from faultline.harness.commands import replay_command, run_command
from faultline.harness.history import History
from faultline.harness.judgement import Judgement
from faultline.harness.parts import Parts
from faultline.harness.results import write_whole
from faultline.harness.run_record import RunRecord
from faultline.harness.store import prepare_run, run_id_of
from faultline.harness.verdict import Verdict
from faultline.harness.workload import Checker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["CheckedByKey", "Collected", "KeyUnit", "check_key", "check_keys", "collect"]


@dataclass(frozen=True, slots=True)
class KeyUnit:
    """One key of one run, the input of a checking task. `path` is the Parquet file with the run's history."""

    path: str
    run_id: str
    key: str | None


@dataclass(frozen=True, slots=True)
class Collected:
    """A real run that has been carried out and awaits its verdict. Without a record it never started: `broken`."""

    number: int
    run_id: str
    cell: Cell
    seed: int
    parts: Parts
    record: RunRecord | None
    broken: Judgement | None = None


class CheckedByKey(LinearizabilityChecker):
    """The checker `base`, with the judgements of tasks in place of its own search."""

    def __init__(self, base: LinearizabilityChecker, judgements: dict[str | None, KeyJudgement]) -> None:
        super().__init__(
            base.model.name,
            steps_max=base.steps_max,
            failed_cas=base.failed_cas,
            timeout_s=base.timeout_s,
            clock=base.clock,
        )
        self._judgements = judgements

    def judge_keys(self, history: History, budget: Budget) -> list[KeyJudgement]:
        """Return the judgements on all keys, in order of first use."""
        return [self.judge_key(history, key, rows, budget) for key, rows in history.rows_by_key().items()]

    def judge_key(
        self, history: History, key: str | None, rows: Sequence[int], budget: Budget | None = None
    ) -> KeyJudgement:
        """Return the judgement of the task; judge a key here when no task answered for it."""
        known = self._judgements.get(key)
        return known if known is not None else super().judge_key(history, key, rows, budget)


def collect(session: SparkSession, job: SimulationJob, show: Callable[[Progress], None]) -> Ending:
    """Carry out all runs of `job`, check and judge them, and leave their files and rows.

    Where Spark cannot check, because it failed or the user interrupted, the runs are checked here: runs of real
    processes cannot be repeated.
    """
    runs, interrupted = _carry_out(job, show)
    total = len(job.plan.cells()) * len(job.plan.seed_range())
    show(Progress(finished=len(runs), total=total, phase="checking"))
    answers: dict[tuple[str, str | None], KeyJudgement] = {}
    failure = ""
    try:
        if not interrupted:
            answers = check_keys(session, _key_units(job, runs), _searches(runs))
    except KeyboardInterrupt:
        interrupted = True
    except Exception as error:
        failure = failure_sentence(error)
    rows = [_conclude(job, run, answers) for run in runs]
    write_whole(
        job.folder.progress_part(0), b"".join(progress_mark(str(row["verdict"])) for row in rows), durable=False
    )
    write_parquet(job.folder.rows_part(0), table_of_rows(rows))
    return Ending(interrupted=interrupted, failure=failure, stopped=job.folder.stopped.exists())


def _carry_out(job: SimulationJob, show: Callable[[Progress], None]) -> tuple[list[Collected], bool]:
    """Return the runs that were carried out, and whether the user stopped them."""
    places = [(cell, seed) for seed in job.plan.seed_range() for cell in job.plan.cells()]
    runs, seconds = list[Collected](), dict[str, float]()
    for number, (cell, seed) in enumerate(places):
        show(Progress(finished=number, total=len(places), phase=f"seed {seed} of {cell.name}"))
        began_s = time.monotonic()
        try:
            runs.append(_run(job, number, cell, seed))
        except KeyboardInterrupt:
            return runs, True
        seconds[cell.name] = seconds.get(cell.name, 0.0) + time.monotonic() - began_s
        # The first block of seeds has a unit for each cell, so the number of a cell is that of a unit of it.
        write_seconds(job.folder.seconds_part(job.plan.cells().index(cell)), seconds[cell.name])
        record = runs[-1].record
        if record is not None and record.interrupted:
            return runs, True
        # Runs are judged when all have been carried out; a violation that ended one is the only one known by now.
        if record is not None and record.stopped_by is not None and not cell.expected:
            job.folder.stopped.touch()
            return runs, False
    return runs, False


def _run(job: SimulationJob, number: int, cell: Cell, seed: int) -> Collected:
    request = job.plan.request(cell, seed)
    run_id = run_id_of(request, job.plan.hosts)
    parts = job.engine.resolve(request)
    try:
        plan = job.engine.plan(request, parts)
        prepare_run(job.folder.run(run_id), run_id, plan, job.plan.world, job.plan.hosts)
        record = job.engine.collect(plan, parts, job.folder.run(run_id))
    except (Exception, SystemExit) as error:
        return Collected(number, run_id, cell, seed, parts, None, broken_run(job.plan, cell, seed, run_id, error))
    write_parquet(job.folder.history_part(number), history_table(run_id, record.history))
    return Collected(number, run_id, cell, seed, parts, record)


def _searches(runs: Sequence[Collected]) -> dict[str, LinearizabilityChecker]:
    """Return the checkers that judge key by key, by run; a run whose workload has none is judged on the
    driver alone."""
    return {
        run.run_id: checker
        for run in runs
        for checker in run.parts.checkers
        if run.record is not None and isinstance(checker, LinearizabilityChecker)
    }


def _key_units(job: SimulationJob, runs: Sequence[Collected]) -> list[KeyUnit]:
    return [
        KeyUnit(str(job.folder.history_part(run.number)), run.run_id, key)
        for run in runs
        if run.record is not None
        for key in run.record.history.rows_by_key()
    ]


def check_keys(
    session: SparkSession, units: Sequence[KeyUnit], checkers: dict[str, LinearizabilityChecker]
) -> dict[tuple[str, str | None], KeyJudgement]:
    """Judge every unit whose run has a checker, in Spark tasks; return the answers by (run, key)."""
    units = [unit for unit in units if unit.run_id in checkers]
    if not units:
        return {}

    def task(number: int) -> bytes:
        return msgspec.json.encode(check_key(units[number], checkers[units[number].run_id]))

    parts = min(len(units), 4 * session.sparkContext.defaultParallelism)
    answers = on_workers(session, task, len(units), parts)
    return {
        (unit.run_id, unit.key): msgspec.json.decode(answer, type=KeyJudgement)
        for unit, answer in zip(units, answers, strict=True)
    }


def check_key(unit: KeyUnit, checker: LinearizabilityChecker) -> KeyJudgement:
    """Judge one key of one run from the Parquet file of histories."""
    history, rows = _indexed(unit.path, unit.run_id)
    return checker.judge_key(history, unit.key, rows[unit.key])


@lru_cache(maxsize=1)
def _indexed(path: str, run_id: str) -> tuple[History, dict[str | None, list[int]]]:
    """Return a run's history and the rows of its keys; the last one is kept, because a task checks
    its keys one after another."""
    history = read_history(Path(path), run_id)
    return history, history.rows_by_key()


def _conclude(
    job: SimulationJob, run: Collected, answers: dict[tuple[str, str | None], KeyJudgement]
) -> dict[str, object]:
    judgement = run.broken or _judged(job, run, answers)
    run_again = run_command(job.plan.request(run.cell, run.seed), job.plan.hosts)
    whole = run.record is not None
    judgement.replay = replay_command(job.shown / "runs" / run.run_id, job.plan.hosts) if whole else run_again
    write_verdict(job.folder, judgement)
    if run.record is not None:
        _write_page(job, run.record, judgement)
    return run_row(judgement, run.record, expected=run.cell.expected, folder_kept=whole, run_again=run_again)


def _judged(job: SimulationJob, run: Collected, answers: dict[tuple[str, str | None], KeyJudgement]) -> Judgement:
    assert run.record is not None
    own = {key: judgement for (run_id, key), judgement in answers.items() if run_id == run.run_id}
    checkers = tuple(_with_answers(checker, own) for checker in run.parts.checkers)
    return job.engine.judge(run.record, replace(run.parts, checkers=checkers), run.run_id)


def _with_answers(checker: Checker, answers: dict[str | None, KeyJudgement]) -> Checker:
    return CheckedByKey(checker, answers) if isinstance(checker, LinearizabilityChecker) else checker


def _write_page(job: SimulationJob, record: RunRecord, judgement: Judgement) -> None:
    if judgement.verdict is Verdict.VIOLATION:
        from faultline.reports.run_page import write_run_report

        write_run_report(job.folder.run(judgement.run_id), record, judgement)
