"""Work units as Spark tasks: one partition is one unit, and only a receipt goes back to the driver.

Spark retries a task on another worker when its worker dies. A unit that fails every time – its run needs too much
memory, or ends the process – becomes harness errors of its own runs; all other units go on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from faultline.campaign.guided.units import run_guided_unit
from faultline.campaign.guided.waves import GuidedUnit, carry_out_waves
from faultline.campaign.matrix import Unit, WorkUnit
from faultline.campaign.salvage import stored_verdicts
from faultline.campaign.simulate import SimulationJob, broken_run, run_unit, write_verdict
from faultline.harness.errors import FaultlineError, HarnessError
from faultline.harness.store import run_id_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["failure_sentence", "give_up", "on_workers", "simulate", "told_by_spark"]

T = TypeVar("T")
AnyUnit: TypeAlias = WorkUnit | GuidedUnit

_FAILED_FOR_GOOD = re.compile(
    r"Task (\d+) in stage \S+ failed (\d+) times, most recent failure: [^:]*: (.*)", re.DOTALL
)
_MOST_UNITS_GIVEN_UP = 3
"""The number of failed units above which the fault is not theirs: the disk is full, or the cluster is broken."""


def simulate(session: SparkSession, job: SimulationJob) -> list[str]:
    """Carry out all runs of `job`; return one sentence for each unit that was given up.

    Raise the error of Spark when Spark itself failed, and not single units.
    """
    if job.plan.guided:
        return carry_out_waves(job, lambda units: _carry_out(session, job, units))
    return _carry_out(session, job, job.plan.units())


def _carry_out(session: SparkSession, job: SimulationJob, units: Sequence[AnyUnit]) -> list[str]:
    left, given_up = list(units), list[str]()
    while left:
        try:
            _run_tasks(session, job, left)
            return given_up
        except Exception as error:
            failed = _FAILED_FOR_GOOD.search(told_by_spark(error))
            if failed is None or len(given_up) == _MOST_UNITS_GIVEN_UP:
                raise
            unit = left[int(failed[1])]
            given_up.append(give_up(job, unit, f"failed {failed[2]} times: {_cause(failed[3])}"))
            left = [each for each in left if each != unit and not job.folder.rows_part(each.number).exists()]
    return given_up


def _run_tasks(session: SparkSession, job: SimulationJob, units: Sequence[AnyUnit]) -> None:
    on_workers(session, lambda place: _run(job, units[place]), len(units), len(units))


def _run(job: SimulationJob, unit: AnyUnit) -> int:
    return run_guided_unit(job, unit) if isinstance(unit, GuidedUnit) else run_unit(job, unit)


def on_workers(session: SparkSession, task: Callable[[int], T], count: int, partitions: int) -> list[T]:
    """Return the results of `task` for each number below `count`, in order, from as many Spark tasks as partitions.

    It uses RDDs, as a task is a number and an answer: data frames would only add dependencies.
    """
    return session.sparkContext.parallelize(range(count), partitions).map(task).collect()


def give_up(job: SimulationJob, unit: Unit, why: str) -> str:
    """Write a harness error as the verdict of every run of `unit` that has none; return one sentence about it."""
    cell = job.plan.cells()[unit.cell]
    said = f"The worker that ran seeds {unit.seeds[0]}..{unit.seeds[-1]} of {cell.name} {why}"
    own = {judgement.seed for _, judgement in stored_verdicts(job.folder) if judgement.cell == cell.name}
    for seed in unit.seeds:
        if seed not in own:
            run_id = run_id_of(job.plan.request(cell, seed), job.plan.hosts)
            write_verdict(job.folder, broken_run(job.plan, cell, seed, run_id, HarnessError(said)))
    return said


def told_by_spark(error: BaseException) -> str:
    """Return Spark's message of `error`; it is in the Java process, and lost when that has ended."""
    try:
        # The first line of an error from Java names the call of the bridge, which does not help a user.
        return str(error).split("\n: ", 1)[-1]
    except Exception:
        return f"{type(error).__name__}: the Java process is gone"


def failure_sentence(error: BaseException) -> str:
    """Return one sentence about `error`, which ended the work on Spark."""
    if isinstance(error, FaultlineError):
        return error.message
    first = next(iter(told_by_spark(error).splitlines()), "no message").rstrip(".")
    if type(error).__module__.startswith(("pyspark", "py4j")):
        return f"Spark failed: {first}."
    return f"The campaign broke off with {type(error).__name__}: {first}."


def _cause(text: str) -> str:
    """Return the cause in the text of a failure: the last line of a Python traceback, else the first sentence."""
    lines = [line.strip() for line in text.partition("\n\tat ")[0].splitlines() if line.strip()]
    if "Traceback" in text and lines:
        return lines[-1].rstrip(".") + "."
    return next(iter(lines), "").removeprefix("org.apache.spark.SparkException: ").partition(". ")[0].rstrip(".") + "."
