"""A whole campaign: plan → run or collect → check → aggregate → tables and reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from faultline.campaign.aggregate import aggregate, choose_kept, open_rows
from faultline.campaign.collect import collect
from faultline.campaign.engine import Engine, default_engine
from faultline.campaign.explain import explain
from faultline.campaign.histories import write_parquet
from faultline.campaign.java import find_java
from faultline.campaign.junit import junit_xml
from faultline.campaign.layout import CampaignFolder, create_campaign_folder
from faultline.campaign.matrix import CampaignPlan
from faultline.campaign.progress import read_progress
from faultline.campaign.prune import prune
from faultline.campaign.row import table_of_rows
from faultline.campaign.salvage import salvage
from faultline.campaign.simulate import SimulationJob, simulate
from faultline.campaign.spark import DEFAULT_MASTER, refuse_unusable_master, spark_session
from faultline.campaign.summarise import Ending, summarise
from faultline.campaign.summary import CampaignResult, CampaignSummary, Progress
from faultline.campaign.watch import watch
from faultline.harness.results import write_whole

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["CampaignResult", "Progress", "Show", "run_campaign"]

Show = Callable[[Progress], None]


def run_campaign(
    plan: CampaignPlan,
    *,
    store: Path,
    master: str = DEFAULT_MASTER,
    name: str | None = None,
    progress: Show | None = None,
    session: SparkSession | None = None,
    engine: Engine | None = None,
) -> CampaignResult:
    """Carry out `plan` on the Spark `master`, keep everything in a new folder below `store`, and say what was found.

    `name` is the folder's name, `progress` is called now and then from this thread. A `session` that is given is used
    and left running; `engine` replaces the steps of a run. Ctrl-C once ends the runs, and what there is is aggregated
    with `interrupted` set. Raises UsageError before anything is written when the plan cannot be used, HarnessError when
    the store cannot be written, there is no Java, or Spark does not start.
    """
    engine = engine or default_engine(plan.world, plan.hosts)
    show = progress or _silent
    declared = _refuse_unusable(plan, engine)
    if session is None:
        refuse_unusable_master(master)
        find_java()
    folder = create_campaign_folder(store.absolute(), plan, name)
    job = SimulationJob(plan, folder, store / "campaigns" / folder.root.name, engine)
    write_whole(folder.plan, _pretty(plan))
    with ExitStack() as closing:
        show(Progress(finished=0, total=_total(plan), phase="starting Spark"))
        spark = session or closing.enter_context(spark_session(master, folder.work))
        ending = _run(spark, job, show)
        summary = _conclude(spark, job, ending, declared, master, show)
    folder.clean()
    return _finish(folder, job.shown, summary)


def _silent(_progress: Progress) -> None:
    return None


def _total(plan: CampaignPlan) -> int:
    return len(plan.cells()) * len(plan.seed_range())


def _refuse_unusable(plan: CampaignPlan, engine: Engine) -> list[tuple[str, str]]:
    """Resolve and plan one run of each cell, so that a wrong name is told before anything is written.

    Returns the `sometimes` marks known by name, each with the system that is to reach it: those the plan demands of
    every system, and those a system declares.
    """
    declared: list[tuple[str, str]] = []
    requests = [plan.request(cell, plan.seed_range().start) for cell in plan.cells()]
    resolved = [engine.resolve(request) for request in requests]
    if plan.host_options:
        from faultline.hosts.host_options import refuse_without_effect

        refuse_without_effect(plan.host_options, resolved)
    for request, parts in zip(requests, resolved, strict=True):
        engine.refuse(engine.plan(request, parts), parts)
        marks: Iterable[str] = getattr(parts.system, "marks", ())
        declared += [(request.system, mark) for mark in (*plan.must_reach, *marks)]
    return list(dict.fromkeys(declared))


def _run(spark: SparkSession, job: SimulationJob, show: Show) -> Ending:
    """All runs of the campaign, wherever they happen; afterwards every finished run has left its row."""
    if job.plan.world != "simulated":
        return collect(spark, job, show)
    ending = watch(spark, lambda: simulate(spark, job).collect(), job.folder.progress, _total(job.plan), show)
    if ending.interrupted or ending.failure:
        salvage(job.plan, job.folder)
    return ending


def _conclude(
    spark: SparkSession, job: SimulationJob, ending: Ending, declared: list[tuple[str, str]], master: str, show: Show
) -> CampaignSummary:
    folder, total = job.folder, _total(job.plan)
    show(read_progress(folder.progress, total, "aggregating"))
    write_parquet(folder.rows / "part-none.parquet", table_of_rows([]))
    open_rows(spark, sorted(str(path) for path in folder.rows.glob("part-*.parquet")))
    kept = choose_kept(spark, job.plan.keep_per_signature if job.plan.world == "simulated" else total)
    prune(spark, folder, kept)
    tables = aggregate(spark, folder, kept, declared)
    show(read_progress(folder.progress, total, "explaining violations"))
    told = explain(spark, job, tables["runs"], tables["signatures"])
    failure = " ".join(filter(None, [ending.failure, told]))
    return summarise(job.plan, folder, tables, Ending(ending.interrupted, failure), master)


def _finish(folder: CampaignFolder, shown: Path, summary: CampaignSummary) -> CampaignResult:
    write_whole(folder.junit, junit_xml(summary))
    write_whole(folder.summary, _pretty(summary))
    report, problem = _report(folder, shown)
    return CampaignResult(
        folder=shown,
        verdict=summary.verdict,
        exit_code=summary.exit_code,
        sentences=summary.sentences,
        warnings=(*summary.warnings, *problem),
        cells=summary.cells,
        signatures=summary.signatures,
        report=report,
        interrupted=summary.interrupted,
    )


def _report(folder: CampaignFolder, shown: Path) -> tuple[Path | None, list[str]]:
    """Write the page; a verdict must not be lost because its page cannot be written."""
    from faultline.reports.campaign_page import write_campaign_report

    try:
        return shown / write_campaign_report(folder.root).name, []
    except Exception as error:
        return None, [f"The campaign's page could not be written ({type(error).__name__}: {error})."]


def _pretty(record: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"
