"""Whole campaigns on a real Spark session, with a world of a few operations."""

from __future__ import annotations

import dataclasses
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import campaign_fakes
import msgspec
import pyarrow.parquet as pq
import pytest
from campaign_fakes import fake_engine, fake_plan
from guided_campaigns import carried_out, guided_plan
from process_table import descendants_of, processes_with

from faultline.campaign.aggregate import TABLES
from faultline.campaign.conclude import conclude_folder
from faultline.campaign.guided.signal import read_signals
from faultline.campaign.guided.waves import decided_units
from faultline.campaign.layout import CampaignFolder
from faultline.campaign.pipeline import run_campaign
from faultline.campaign.spark import spark_session
from faultline.campaign.summary import CampaignResult, CampaignSummary, CellSummary, Progress
from faultline.harness.store import run_id_of
from faultline.harness.verdict import Verdict

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CORRECT = "fake/register/partition"
PLANTED_BUG = "fake+stale-read/register/partition"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(campaign_fakes)
    with spark_session("local[2,4]", tmp_path_factory.mktemp("spark")) as running:
        yield running
    cloudpickle.unregister_pickle_by_value(campaign_fakes)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def seen() -> list[Progress]:
    return []


@pytest.fixture(scope="module")
def finished(session: Any, store: Path, seen: list[Progress]) -> CampaignResult:
    """One campaign that most tests look at: 24 runs, three of which violate and two of which break."""
    plan = fake_plan(keep_per_signature=1)
    return run_campaign(
        plan, store=store, master="local[2]", name="one", session=session, engine=fake_engine(), progress=seen.append
    )


def planted_bug_run(seed: int, **changes: Any) -> str:
    """The id of a run of the system with the planted bug."""
    plan = fake_plan(**changes)
    return run_id_of(plan.request(plan.cells()[1], seed))


def summary_of(result: CampaignResult) -> CampaignSummary:
    return msgspec.json.decode((result.folder / "campaign.json").read_bytes(), type=CampaignSummary)


def without_replay(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows without the command that names the campaign's folder."""
    return [{name: value for name, value in row.items() if name != "replay"} for row in rows]


def workers_of_spark() -> list[int]:
    """The Python workers of this process's Spark: what PySpark's daemon has forked."""
    daemons = frozenset(processes_with("pyspark.daemon")) & frozenset(descendants_of(os.getpid()))
    return sorted({worker for daemon in daemons for worker in descendants_of(daemon)})


def table(result: CampaignResult, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(result.folder / "tables" / f"{name}.parquet").to_pylist()
    return rows


def test_processes_of_spark_prove_a_secret_of_the_session(session: Any) -> None:
    assert session.sparkContext.getConf().get("spark.authenticate") == "true"


def test_every_run_is_counted_once_in_its_cell(finished: CampaignResult) -> None:
    counts = {cell.cell: {verdict: count for verdict, count in cell.counts.items() if count} for cell in finished.cells}
    assert counts == {
        CORRECT: {"pass": 11, "harness-error": 1},
        PLANTED_BUG: {"pass": 8, "violation": 3, "harness-error": 1},
    }
    assert finished.verdict is Verdict.VIOLATION
    assert finished.exit_code == 1


def test_the_violation_is_told_with_rate_smallest_example_and_replay_line(finished: CampaignResult) -> None:
    sentences = "\n".join(finished.sentences)
    assert f"{PLANTED_BUG}: 3 of 11 runs violate linearizability (27.3 %, 95 % interval 9.7–56.6 %)" in sentences
    assert (
        "linearizability/stale-read in 3 of 11 runs, first at seed 0. Seed 0: Seed 0 read a stale value." in sentences
    )
    assert f"  faultline replay {finished.folder}/runs/{planted_bug_run(0)}" in sentences
    assert "Faults that took effect: partition 22 times." in sentences
    assert "Reached in 24 runs: leader-changed in 22." in sentences


def test_of_each_kind_only_as_many_folders_stay_as_asked_for(finished: CampaignResult) -> None:
    kept = sorted(path.parent.name for path in finished.folder.glob("runs/*/history.jsonl"))
    verdicts = list(finished.folder.glob("runs/*/verdict.json"))
    assert kept == [planted_bug_run(0)]
    assert len(verdicts) == 24
    reduced = [row for row in table(finished, "runs") if row["cell"] == PLANTED_BUG and row["seed"] == 5]
    assert [(row["verdict"], row["folder_kept"], row["replay"][:13]) for row in reduced] == [
        ("violation", False, "faultline run")
    ]
    assert any("1 of 3 runs with linearizability/stale-read kept" in warning for warning in finished.warnings)


def test_a_kept_violation_has_a_page_and_the_summary_points_at_it(finished: CampaignResult) -> None:
    (signature,) = summary_of(finished).signatures
    assert (finished.folder / signature.report).is_file()
    assert (signature.count, signature.seed, signature.operations, signature.fault_kinds) == (3, 0, 2, ())


def test_all_tables_are_written_and_agree_with_the_runs(finished: CampaignResult) -> None:
    rows = {name: table(finished, name) for name in TABLES}
    assert len(rows["runs"]) == 24
    assert len(rows["findings"]) == 3
    assert sum(row["runs"] for row in rows["cells"]) == 24
    assert {row["operations_in_flight"] > 0 for row in rows["faults"]} == {True}
    assert sum(row["count"] for row in rows["latency"]) == 22 * 6
    assert [row["sentence"] for row in rows["cells"] if "sentence" in row] == []


def test_latencies_are_quantiles_inside_and_outside_fault_windows(finished: CampaignResult) -> None:
    rows = {row["window"]: row for row in table(finished, "latency") if row["cell"] == CORRECT}
    assert {window: row["count"] for window, row in rows.items()} == {"inside": 22, "outside": 44}
    # Seed S answers in 1000 + S microseconds, binned by ten; seed 7 broke.
    assert (rows["inside"]["p50_us"], rows["inside"]["max_us"]) == (1_010, 1_011)


def test_features_that_were_declared_but_never_entered_are_reported(finished: CampaignResult) -> None:
    marks = {(row["cell"], row["mark"]): (row["runs"], row["times"]) for row in table(finished, "marks")}
    assert marks[CORRECT, "leader-changed"] == (11, 22)
    assert marks[CORRECT, "log-truncated"] == (0, 0)
    assert "Features of fake: 1 of 2 entered; never log-truncated." in finished.sentences


def test_all_histories_are_there_to_be_checked_again(finished: CampaignResult) -> None:
    histories = pq.read_table(finished.folder / "histories")
    assert histories.num_rows == 22 * 6
    assert len(set(histories["run_id"].to_pylist())) == 22


def test_progress_ends_with_all_runs_and_scratch_files_are_gone(finished: CampaignResult, seen: list[Progress]) -> None:
    assert seen[0].phase == "starting Spark"
    running = [progress for progress in seen if progress.phase == "running"]
    assert (running[-1].finished, running[-1].violations, running[-1].harness_errors) == (24, 3, 2)
    assert not (finished.folder / "work").exists()
    assert {path.name for path in finished.folder.iterdir()} == {
        *("plan.json", "journal.json", "campaign.json", "junit.xml", "index.html"),
        *("runs", "rows", "histories", "tables"),
    }


def test_the_same_plan_gives_the_same_tables(finished: CampaignResult, session: Any, store: Path) -> None:
    plan = fake_plan(keep_per_signature=1, seeds_per_task=12)
    other = run_campaign(plan, store=store, master="local[2]", name="two", session=session, engine=fake_engine())
    for name in TABLES:
        first, second = table(finished, name), table(other, name)
        assert without_replay(first) == without_replay(second), name


def test_an_expected_violation_that_was_seen_is_as_good_as_a_pass(session: Any, store: Path) -> None:
    plan = fake_plan(planted_bugs=(("stale-read",),), expected={"*+stale-read/*": ("stale-read",)}, seeds="0..5")
    result = run_campaign(plan, store=store, master="local[2]", session=session, engine=fake_engine())
    assert (result.verdict, result.exit_code) == (Verdict.PASS, 0)
    assert [cell.standing for cell in result.cells] == ["as expected"]


def test_a_campaign_that_missed_a_demanded_mark_is_inconclusive(session: Any, store: Path) -> None:
    plan = fake_plan(planted_bugs=((),), seeds="0..1", must_reach=("leader-changed", "log-truncated"))
    result = run_campaign(plan, store=store, master="local[2]", session=session, engine=fake_engine())
    assert (result.verdict, result.exit_code) == (Verdict.VACUOUS, 3)
    assert "No run reached log-truncated, which the plan demands" in result.warnings[0]


def test_what_one_system_marks_is_nothing_that_another_has_missed(session: Any, store: Path) -> None:
    plan = fake_plan(systems=("fake", "other"), planted_bugs=((),), seeds="0..1", must_reach=("quorum-asked",))
    result = run_campaign(plan, store=store, master="local[2]", session=session, engine=fake_engine())
    missed = [warning for warning in result.warnings if "never reached" in warning]
    assert missed == [f"{CORRECT}: never reached quorum-asked."]


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C counts, also where a shell started the tests in the background, and had them ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_campaign_keeps_and_counts_what_was_finished(session: Any, store: Path) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.phase == "running" and progress.finished:
            os.kill(os.getpid(), signal.SIGINT)

    plan = fake_plan(seeds="0..4999", planted_bugs=((),), seeds_per_task=50)
    result = run_campaign(
        plan, store=store, master="local[2]", session=session, engine=fake_engine(), progress=interrupt
    )
    summary = summary_of(result)
    assert (result.exit_code, result.interrupted) == (130, True)
    assert 0 < summary.finished < summary.scheduled == 5_000
    assert sum(result.cells[0].counts.values()) == summary.finished == len(table(result, "runs"))
    assert result.report is not None
    assert result.report.is_file()


@pytest.mark.parametrize("phase", ["aggregating", "explaining violations"])
@pytest.mark.usefixtures("interruptible")
def test_a_campaign_that_is_interrupted_after_its_runs_has_lost_none(session: Any, store: Path, phase: str) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.phase == phase:
            os.kill(os.getpid(), signal.SIGINT)

    result = run_campaign(fake_plan(), store=store, session=session, engine=fake_engine(), progress=interrupt)
    assert (result.interrupted, result.exit_code, summary_of(result).finished) == (True, 1, 24)


@pytest.mark.parametrize("phase", ["aggregating", "explaining violations"])
def test_what_goes_wrong_after_the_runs_loses_none_of_them(session: Any, store: Path, phase: str) -> None:
    def fail(progress: Progress) -> None:
        if progress.phase == phase:
            raise OSError("the pipe is closed")

    plan = fake_plan(planted_bugs=((),), seeds="0..5")
    result = run_campaign(plan, store=store, session=session, engine=fake_engine(), progress=fail)
    summary = summary_of(result)
    assert (result.verdict, summary.finished) == (Verdict.HARNESS_ERROR, 6)
    assert summary.cells[0].verdict is Verdict.PASS
    assert summary.troubles == ("The campaign broke off with OSError: the pipe is closed.",)


def test_a_run_that_ends_its_worker_each_time_costs_its_own_unit_only(session: Any, store: Path) -> None:
    engine = dataclasses.replace(fake_engine(), simulate=campaign_fakes.simulate_or_die)
    plan = fake_plan(planted_bugs=((),), seeds="0..19")
    result = run_campaign(plan, store=store, session=session, engine=engine)
    rows = {row["seed"]: row["verdict"] for row in table(result, "runs")}
    assert [seed for seed, verdict in rows.items() if verdict == "harness-error"] == [7, 8, 9]
    assert len(rows) == 20
    assert result.verdict is Verdict.HARNESS_ERROR
    (trouble,) = summary_of(result).troubles
    assert trouble.startswith(f"The worker that ran seeds 5..9 of {CORRECT} failed ")
    assert trouble.endswith("Python worker exited unexpectedly (crashed).")
    assert (
        "Faults that took effect: partition 15 times; not known: 5 runs left only their verdicts." in result.sentences
    )


@pytest.mark.real
def test_a_killed_worker_costs_no_run_and_changes_no_result(session: Any, store: Path) -> None:
    def kill_a_worker(progress: Progress) -> None:
        if progress.phase == "running" and progress.finished and not killed:
            for worker in workers_of_spark():
                killed.append(worker)
                os.kill(worker, signal.SIGKILL)
                return

    killed: list[int] = []
    plan = fake_plan(seeds="0..1999", seeds_per_task=50, keep_per_signature=1)
    calm = run_campaign(plan, store=store, session=session, engine=fake_engine())
    struck = run_campaign(plan, store=store, session=session, engine=fake_engine(), progress=kill_a_worker)
    assert killed
    assert summary_of(struck).troubles == ()
    for name in TABLES:
        assert without_replay(table(struck, name)) == without_replay(table(calm, name)), name


def test_real_runs_are_collected_on_the_driver_and_judged(session: Any, store: Path) -> None:
    plan = fake_plan(world="local", seeds="5..7")
    result = run_campaign(plan, store=store, master="local[2]", session=session, engine=fake_engine())
    kept = {path.parent.name.split(".")[3] for path in result.folder.glob("runs/*/history.jsonl")}
    assert kept == {"5", "6"}
    assert {cell.cell: cell.counts["violation"] for cell in result.cells} == {CORRECT: 0, PLANTED_BUG: 1}
    assert [cell.counts["harness-error"] for cell in result.cells] == [1, 1]
    assert result.exit_code == 1
    assert (result.folder / "runs" / planted_bug_run(5, world="local") / "report.html").is_file()


def test_a_guided_campaign_is_the_same_on_spark_as_in_one_process(session: Any, store: Path, tmp_path: Path) -> None:
    plan = guided_plan()
    result = run_campaign(plan, store=store, master="local[2]", name="guided", session=session)
    ours = carried_out(tmp_path, plan)
    there, here = CampaignFolder(result.folder), ours
    assert decided_units(there) == decided_units(here)
    paths = [[folder.signals_part(unit.number) for unit in decided_units(here)] for folder in (there, here)]
    assert read_signals(paths[0]) == read_signals(paths[1])
    conclude_folder(here.root)
    assert (result.verdict, result.exit_code) == (Verdict.PASS, 0)
    one, other = (
        msgspec.json.decode((folder.root / "campaign.json").read_bytes(), type=CampaignSummary)
        for folder in (there, here)
    )
    assert (one.cells, one.guided) == (_timed_as(one, other.cells), other.guided)
    columns = ["run_id", "seed", "verdict", "history_sha256", "plan_sha256"]
    tables = [pq.read_table(folder.table("runs"), columns=columns) for folder in (there, here)]
    assert tables[0].equals(tables[1])


def _timed_as(summary: CampaignSummary, cells: tuple[CellSummary, ...]) -> tuple[CellSummary, ...]:
    """The `cells` with the times of those of `summary`: all else must be equal."""
    return tuple(
        msgspec.structs.replace(cell, seconds=timed.seconds) for cell, timed in zip(cells, summary.cells, strict=True)
    )


def test_a_campaign_may_have_a_name_that_looks_like_a_pattern(session: Any, store: Path) -> None:
    name = "night[1]{a,b}*?\\d"
    result = run_campaign(
        fake_plan(seeds="0..4"), store=store, master="local[2]", name=name, session=session, engine=fake_engine()
    )
    assert (result.exit_code, result.warnings) == (1, ())
    assert pq.read_table(result.folder / "tables" / "runs.parquet").num_rows == 10
