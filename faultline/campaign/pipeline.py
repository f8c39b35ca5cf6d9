"""A whole campaign: plan → run or collect → check → aggregate → tables and reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import msgspec

from faultline.campaign.aggregate import aggregate, choose_kept
from faultline.campaign.collect import collect
from faultline.campaign.conclude import conclude, write_results
from faultline.campaign.engine import Engine, default_engine
from faultline.campaign.explain import explain
from faultline.campaign.features import DeclaredFeature, declared_features
from faultline.campaign.guided.waves import units_of
from faultline.campaign.histories import write_parquet
from faultline.campaign.java import find_java
from faultline.campaign.journal import Ending, Journal, read_rows, seconds_by_cell, write_record
from faultline.campaign.layout import create_campaign_folder
from faultline.campaign.matrix import CampaignPlan
from faultline.campaign.progress import read_progress
from faultline.campaign.prune import prune
from faultline.campaign.row import RUN_SCHEMA
from faultline.campaign.salvage import salvage
from faultline.campaign.simulate import SimulationJob
from faultline.campaign.spark import DEFAULT_MASTER, refuse_unusable_master, spark_session
from faultline.campaign.spark_rows import SparkRows
from faultline.campaign.summarise import summarise
from faultline.campaign.summary import CampaignResult, Progress
from faultline.campaign.tasks import failure_sentence, simulate
from faultline.campaign.watch import watch
from faultline.harness.results import writable
from faultline.harness.universe import calm_options

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

__all__ = ["CampaignResult", "Progress", "Show", "run_campaign"]

Show = Callable[[Progress], None]
Declared = tuple[tuple[str, str], ...]


def run_campaign(
    plan: CampaignPlan,
    *,
    store: Path,
    master: str = DEFAULT_MASTER,
    name: str | None = None,
    progress: Show | None = None,
    session: SparkSession | None = None,
    engine: Engine | None = None,
    begun: Callable[[Path], object] | None = None,
) -> CampaignResult:
    """Carry out `plan` on the Spark `master`, keep everything in a new folder below `store`, and return the result.

    `name` is the folder's name, `progress` is called now and then from this thread. A given `session` is used and left
    running; `engine` replaces the steps of a run; `begun` gets the folder as soon as that can be concluded from
    outside. The first Ctrl-C ends the runs and Spark with them, and finished units are summarised with `interrupted`
    set; any other error after the runs have begun does the same and is told in the summary. Raise UsageError before
    anything is written when the plan cannot be used, HarnessError when the store cannot be written, there is no Java,
    or Spark does not start.
    """
    engine = engine or default_engine(plan.world, plan.hosts)
    show = progress or _silent
    features = _refuse_unusable(plan, engine)
    if session is None:
        refuse_unusable_master(master)
        find_java()
    folder = create_campaign_folder(store.absolute(), plan, name)
    job = SimulationJob(plan, folder, store / "campaigns" / folder.root.name, engine)
    journal = Journal(master=master, declared=_declared(plan, features), features=features)
    with writable(folder.root):
        write_record(folder.plan, plan)
        write_record(folder.journal, journal)
    if begun is not None:
        begun(folder.root)
    journal, tables = _carry_out(job, journal, session, show)
    try:
        write_record(folder.journal, journal)
    except OSError as error:
        journal = _ended_with(journal, f"The journal could not be written: {error.strerror or error}.")
    if tables is None:
        result = conclude(plan, folder, journal, job.shown)
    else:
        result = write_results(folder, job.shown, summarise(plan, folder, tables, journal), tables)
    folder.clean()
    return result


def _carry_out(
    job: SimulationJob, journal: Journal, session: SparkSession | None, show: Show
) -> tuple[Journal, dict[str, pa.Table] | None]:
    """Do all work that needs Spark; return the journal with its ending, and the result tables, None if there are none.

    An error is raised only when no run can have begun; later errors become the ending of the journal.
    """
    ending, tables, spark = Ending(), None, session
    try:
        with ExitStack() as closing:
            show(Progress(finished=0, total=job.plan.runs(), phase="starting Spark"))
            spark = spark or closing.enter_context(spark_session(journal.master, job.folder.work))
            ending = _run(spark, job, show)
            if not ending.interrupted:
                # A unit that stops has rows of the runs that it began itself, none of those of an attempt that died.
                all_have_rows = not (ending.failure or ending.stopped)
                tables, told = _tables(spark, job, journal.declared, show, all_have_rows=all_have_rows)
                ending = _failed(ending, told)
    except KeyboardInterrupt:
        ending = msgspec.structs.replace(ending, interrupted=True)
    except Exception as error:
        if spark is None:
            raise
        ending = _failed(ending, failure_sentence(error))
    if session is not None and (ending.interrupted or tables is None):
        _cancel(session)
    seconds = seconds_by_cell(job.plan, job.folder, units_of(job.plan, job.folder))
    return msgspec.structs.replace(journal, ending=ending, seconds=seconds), tables


def _ended_with(journal: Journal, told: str) -> Journal:
    return msgspec.structs.replace(journal, ending=_failed(journal.ending or Ending(), told))


def _failed(ending: Ending, told: str) -> Ending:
    return msgspec.structs.replace(ending, failure=" ".join(filter(None, [ending.failure, told])))


def _cancel(session: SparkSession) -> None:
    """Cancel the jobs of a session that the caller owns, without waiting: the cancelling may never complete."""
    Thread(target=session.sparkContext.cancelAllJobs, name="faultline-cancel", daemon=True).start()


def _silent(_progress: Progress) -> None:
    return None


def _refuse_unusable(plan: CampaignPlan, engine: Engine) -> tuple[DeclaredFeature, ...]:
    """Resolve and plan one run of each cell, so that a wrong name is reported before anything is written.

    Return the features that the systems declare.
    """
    requests = [plan.request(cell, plan.seed_range().start) for cell in plan.cells()]
    resolved = [engine.resolve(request) for request in requests]
    if plan.host_options:
        from faultline.harness.world.hosts.machines.host_options import refuse_without_effect

        refuse_without_effect(plan.host_options, resolved)
    plans = [engine.plan(request, parts) for request, parts in zip(requests, resolved, strict=True)]
    for planned, parts in zip(plans, resolved, strict=True):
        engine.refuse(planned, parts)
    options = [each.options for each in plans]
    if plan.universe:
        options = [calm_options(request, parts) for request, parts in zip(requests, resolved, strict=True)]
    systems = [parts.system for parts in resolved]
    return declared_features(plan.cells(), systems, options, drawn=bool(plan.universe))


def _declared(plan: CampaignPlan, features: Iterable[DeclaredFeature]) -> Declared:
    """Return the marks known by name, each with the system that should reach it: those the plan demands,
    and the features."""
    demanded = [(system, mark) for system in plan.systems for mark in plan.must_reach]
    return tuple(dict.fromkeys([*demanded, *((each.system, each.name) for each in features)]))


def _run(spark: SparkSession, job: SimulationJob, show: Show) -> Ending:
    """Carry out all runs of the campaign, in whatever world."""
    if job.plan.world != "simulated":
        return collect(spark, job, show)
    given_up = watch(lambda: simulate(spark, job), job.folder.progress, job.plan.runs(), show)
    return Ending(failure=" ".join(given_up), stopped=job.folder.stopped.exists())


def _tables(
    spark: SparkSession, job: SimulationJob, declared: Declared, show: Show, *, all_have_rows: bool
) -> tuple[dict[str, pa.Table], str]:
    """Thin out the folders and write the pages of violations; return the result tables and any trouble.

    Spark reads the files of rows; units that were given up have left verdicts, whose rows are added.
    """
    folder, total = job.folder, job.plan.runs()
    show(read_progress(folder.progress, total, "aggregating"))
    others = RUN_SCHEMA.empty_table() if all_have_rows else salvage(job.plan, folder, read_rows(folder)[0])
    write_parquet(folder.work / "verdicts.parquet", others)
    rows = SparkRows(spark, [*folder.rows_parts(), folder.work / "verdicts.parquet"])
    kept = choose_kept(rows, job.plan.keep_per_signature if job.plan.world == "simulated" else total)
    prune(rows, folder, kept, keeps_plans=bool(job.plan.guided))
    tables = aggregate(rows, kept, declared)
    show(read_progress(folder.progress, total, "explaining violations"))
    return tables, explain(spark, job, tables["runs"], tables["signatures"])
