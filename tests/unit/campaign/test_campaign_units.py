"""A task and its unit of work, without Spark: files, receipts, broken seeds, runs that are kept or salvaged."""

from __future__ import annotations

import multiprocessing
import threading
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from campaign_fakes import BROKEN_SEED, fake_engine, fake_plan

from faultline.campaign import histories, tasks
from faultline.campaign.engine import default_engine
from faultline.campaign.explain import explain_run
from faultline.campaign.journal import read_rows
from faultline.campaign.layout import CampaignFolder
from faultline.campaign.matrix import CampaignPlan
from faultline.campaign.progress import read_progress
from faultline.campaign.salvage import salvage
from faultline.campaign.simulate import SimulationJob, run_unit, write_verdict
from faultline.harness.judgement import Judgement
from faultline.harness.store import read_run, run_id_of
from faultline.harness.verdict import Verdict


def job_in(root: Path, **changes: Any) -> SimulationJob:
    folder = CampaignFolder(root)
    folder.make()
    return SimulationJob(fake_plan(**changes), folder, Path("faultline-results/campaigns/c"), fake_engine())


def run_id(job: SimulationJob, seed: int) -> str:
    """The id of a run of the system with the planted bug."""
    return run_id_of(job.plan.request(job.plan.cells()[1], seed))


def run_folder(job: SimulationJob, seed: int) -> Path:
    return job.folder.run(run_id(job, seed))


def verdict(job: SimulationJob, seed: int) -> Judgement:
    return msgspec.json.decode((run_folder(job, seed) / "verdict.json").read_bytes(), type=Judgement)


def planted_bug_unit(job: SimulationJob) -> int:
    """The number of the unit that holds all seeds of the cell with the planted bug."""
    return next(unit.number for unit in job.plan.units() if unit.cell == 1)


@pytest.fixture
def job(tmp_path: Path) -> SimulationJob:
    return job_in(tmp_path / "campaign", seeds_per_task=25)


def contents(job: SimulationJob) -> dict[Path, bytes]:
    """All files of the campaign; how long a unit took is no result, and differs."""
    files = (path for path in job.folder.root.rglob("*") if path.is_file() and path.parent != job.folder.seconds)
    return {path: path.read_bytes() for path in files}


def run_planted_bugs(job: SimulationJob) -> list[dict[str, Any]]:
    number = planted_bug_unit(job)
    assert run_unit(job, job.plan.units()[number]) == 12
    return pq.read_table(job.folder.rows_part(number)).to_pylist()


def test_every_run_leaves_a_verdict_and_a_row(job: SimulationJob) -> None:
    rows = run_planted_bugs(job)
    assert [row["seed"] for row in rows] == list(range(12))
    assert [row["verdict"] for row in rows] == [verdict(job, seed).verdict.value for seed in range(12)]


def test_a_seed_that_breaks_is_a_harness_error_of_that_seed_alone(job: SimulationJob) -> None:
    rows = run_planted_bugs(job)
    broken = [row["seed"] for row in rows if row["verdict"] == "harness-error"]
    assert broken == [BROKEN_SEED]
    assert rows[BROKEN_SEED]["sentence"].startswith("ZeroDivisionError: seed seven (campaign_fakes.py:")
    assert "--seed 7" in rows[BROKEN_SEED]["replay"]


def test_a_violating_run_keeps_its_whole_folder_and_is_told_how_to_be_replayed(job: SimulationJob) -> None:
    run_planted_bugs(job)
    stored = read_run(run_folder(job, 5))
    assert stored.file.plan.seed == 5
    assert stored.history().digest() == verdict(job, 5).history_sha256
    assert verdict(job, 5).replay == f"faultline replay faultline-results/campaigns/c/runs/{run_id(job, 5)}"


def test_a_passing_run_keeps_its_verdict_and_the_command_that_runs_it_anew(job: SimulationJob) -> None:
    run_planted_bugs(job)
    path = run_folder(job, 1)
    assert [file.name for file in path.iterdir()] == ["verdict.json"]
    assert verdict(job, 1).replay == (
        "faultline run --system fake --workload register --faults partition --planted-bug stale-read --nodes 3 --seed 1"
    )


def test_all_histories_of_a_unit_are_in_one_parquet_file(job: SimulationJob) -> None:
    run_planted_bugs(job)
    table = pq.read_table(job.folder.history_part(planted_bug_unit(job)))
    assert len(set(table["run_id"].to_pylist())) == 11
    assert table.num_rows == 11 * 6


def test_only_the_first_runs_of_a_kind_keep_their_folder(tmp_path: Path) -> None:
    job = job_in(tmp_path / "campaign", seeds_per_task=25, keep_per_signature=2)
    rows = run_planted_bugs(job)
    assert [row["seed"] for row in rows if row["verdict"] == "violation"] == [0, 5, 10]
    assert [row["seed"] for row in rows if row["folder_kept"]] == [0, 5]


def test_a_unit_that_is_run_twice_leaves_the_same_bytes(job: SimulationJob) -> None:
    run_planted_bugs(job)
    before = contents(job)
    run_planted_bugs(job)
    assert contents(job) == before


def test_progress_counts_runs_violations_and_harness_errors(job: SimulationJob) -> None:
    run_planted_bugs(job)
    progress = read_progress(job.folder.progress, 24, "running")
    assert (progress.finished, progress.total, progress.violations, progress.harness_errors) == (12, 24, 3, 1)


def test_the_verdicts_of_an_unfinished_unit_are_salvaged(job: SimulationJob) -> None:
    run_planted_bugs(job)
    whole = pq.read_table(job.folder.rows_part(planted_bug_unit(job))).to_pylist()
    job.folder.rows_part(planted_bug_unit(job)).unlink()
    (run_folder(job, 11) / "verdict.json").write_bytes(b'{"torn')
    rows = salvage(job.plan, job.folder, read_rows(job.folder)[0])
    saved = sorted(rows.to_pylist(), key=lambda row: row["seed"])
    same = ("run_id", "verdict", "signature", "findings", "marks", "folder_kept", "replay", "run_again")
    assert [[row[name] for name in same] for row in saved] == [[row[name] for name in same] for row in whole[:11]]
    assert {row["verdict_only"] for row in saved} == {True}
    assert not job.folder.rows_part(planted_bug_unit(job)).exists()


def test_nothing_is_salvaged_from_units_that_finished(job: SimulationJob) -> None:
    run_planted_bugs(job)
    assert salvage(job.plan, job.folder, read_rows(job.folder)[0]).num_rows == 0


def test_a_run_with_two_verdicts_is_counted_once_and_by_the_graver(job: SimulationJob) -> None:
    run_planted_bugs(job)
    job.folder.rows_part(planted_bug_unit(job)).unlink()
    for seed in (0, 1):
        judgement = verdict(job, seed)
        judgement.verdict, judgement.run_id = Verdict.HARNESS_ERROR, f"another.{seed}"
        write_verdict(job.folder, judgement)
    rows = {row["seed"]: row["verdict"] for row in salvage(job.plan, job.folder, read_rows(job.folder)[0]).to_pylist()}
    assert len(rows) == 12
    assert (rows[0], rows[1]) == ("violation", "harness-error")


def test_a_run_that_has_a_row_is_not_salvaged_under_another_name(job: SimulationJob) -> None:
    run_planted_bugs(job)
    judgement = verdict(job, 1)
    judgement.run_id = "another.1"
    write_verdict(job.folder, judgement)
    assert salvage(job.plan, job.folder, read_rows(job.folder)[0]).num_rows == 0


def test_explaining_a_run_writes_its_page(job: SimulationJob) -> None:
    run_planted_bugs(job)
    assert explain_run(job, run_id(job, 5)) == ""
    page = (run_folder(job, 5) / "report.html").read_text("utf-8")
    assert "Seed 5 read a stale value" in page


def test_a_run_that_does_not_repeat_is_reported(job: SimulationJob) -> None:
    run_planted_bugs(job)
    path = run_folder(job, 5) / "verdict.json"
    judgement = verdict(job, 5)
    judgement.history_sha256 = "0" * 64
    path.write_bytes(msgspec.json.encode(judgement))
    assert "not deterministic" in explain_run(job, run_id(job, 5))


def test_a_verdict_says_what_the_row_says(job: SimulationJob) -> None:
    rows = run_planted_bugs(job)
    assert verdict(job, 5).verdict is Verdict.VIOLATION
    assert (rows[5]["anomaly"], rows[5]["checker"]) == ("stale-read", "linearizability")


def test_a_second_attempt_leaves_the_rows_of_the_first_to_their_readers(job: SimulationJob) -> None:
    run_planted_bugs(job)
    part = job.folder.rows_part(planted_bug_unit(job))
    first = part.stat()
    run_planted_bugs(job)
    assert (part.stat().st_ino, part.stat().st_mtime_ns) == (first.st_ino, first.st_mtime_ns)
    assert [path.name for path in part.parent.iterdir()] == [part.name]


def test_where_there_are_no_hard_links_a_part_is_kept_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_self: Path, _target: Path) -> None:
        raise OSError("no hard links here")

    monkeypatch.setattr(Path, "hardlink_to", refused)
    path = tmp_path / "part.parquet"
    for number in (1, 2):
        histories.write_part(path, pa.table({"number": [number]}))
    assert pq.read_table(path).to_pylist() == [{"number": 1}]
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_task_and_its_salvage_that_write_one_part_at_once_do_not_mix_their_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, write_table = tmp_path / "part.parquet", pq.write_table
    other = threading.Thread(target=histories.write_part, args=(path, pa.table({"number": [2]})))

    def interleaved(table: pa.Table, where: Path, **options: Any) -> None:
        write_table(table, where, **options)
        if threading.current_thread() is threading.main_thread():
            other.start()
            other.join()

    monkeypatch.setattr(histories.pq, "write_table", interleaved)
    histories.write_part(path, pa.table({"number": [1]}))
    assert pq.read_table(path).to_pylist() == [{"number": 2}]
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


ABORTED = "An error occurred while calling o67.collect.\n: org.apache.spark.SparkException: Job aborted: "


class Gone(Exception):
    """An error whose text was in a Java process that is gone, as Py4JJavaError has it."""

    def __str__(self) -> str:
        raise ConnectionError


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        (
            "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed). Consider this.\n\tat x",
            "failed 4 times: Python worker exited unexpectedly (crashed).",
        ),
        (
            "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
            '  File "x.py", line 1\nOSError: [Errno 28] No space left on device\n\n\tat org.apache',
            "failed 4 times: OSError: [Errno 28] No space left on device.",
        ),
    ],
)
def test_a_unit_whose_task_failed_for_good_is_given_up_and_the_others_go_on(
    job: SimulationJob, monkeypatch: pytest.MonkeyPatch, lost: str, said: str
) -> None:
    asked: list[list[int]] = []

    def run_tasks(_session: Any, job: SimulationJob, units: Any) -> None:
        asked.append([unit.number for unit in units])
        if len(asked) == 1:
            raise RuntimeError(
                f"{ABORTED}Task 1 in stage 0.0 failed 4 times, most recent failure: "
                f"Lost task 1.3 in stage 0.0 (TID 4) (10.0.0.1 executor 3): {lost}"
            )
        for unit in units:
            run_unit(job, unit)

    monkeypatch.setattr(tasks, "_run_tasks", run_tasks)
    nothing: Any = None
    (told,) = tasks.simulate(nothing, job)
    assert told == f"The worker that ran seeds 0..11 of fake+stale-read/register/partition {said}"
    assert asked == [[0, 1], [0]]
    assert {verdict(job, seed).verdict for seed in range(12)} == {Verdict.HARNESS_ERROR}
    assert verdict(job, 3).sentence == told


@pytest.mark.parametrize("error", [RuntimeError("the cluster is gone"), Gone()])
def test_what_is_no_failure_of_a_unit_ends_the_campaign(
    job: SimulationJob, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def run_tasks(_session: Any, _job: SimulationJob, _units: Any) -> None:
        raise error

    monkeypatch.setattr(tasks, "_run_tasks", run_tasks)
    nothing: Any = None
    with pytest.raises(type(error)):
        tasks.simulate(nothing, job)
    assert tasks.failure_sentence(error).startswith("The campaign broke off with ")


def test_a_given_up_unit_keeps_the_verdicts_that_its_runs_left(job: SimulationJob) -> None:
    run_planted_bugs(job)
    (run_folder(job, 11) / "verdict.json").unlink()
    tasks.give_up(job, job.plan.units()[planted_bug_unit(job)], "failed 4 times: it crashed.")
    assert verdict(job, 10).verdict is Verdict.VIOLATION
    assert verdict(job, 11).verdict is Verdict.HARNESS_ERROR


@pytest.mark.slow
def test_two_attempts_at_every_unit_at_once_write_what_one_writes(tmp_path: Path) -> None:
    plan = CampaignPlan(
        name="twice", fault_sets=(("leadership",),), planted_bugs=(("stale-read",),), seeds="0..39", seeds_per_task=1
    )
    jobs = [
        SimulationJob(plan, CampaignFolder(tmp_path / name), Path("shown"), default_engine("simulated"))
        for name in ("once", "twice")
    ]
    for job in jobs:
        job.folder.make()
    for unit in plan.units():
        run_unit(jobs[0], unit)
    workers = multiprocessing.get_context("forkserver")
    gate = workers.Barrier(2)
    attempts = [workers.Process(target=attempt, args=(jobs[1], gate)) for _ in range(2)]
    for each in attempts:
        each.start()
    for each in attempts:
        each.join()
    assert [each.exitcode for each in attempts] == [0, 0]
    once, twice = (
        {path.relative_to(job.folder.root): content for path, content in contents(job).items()} for job in jobs
    )
    assert twice == once
    assert read_progress(jobs[1].folder.progress, 40, "running").finished == 40


def attempt(job: SimulationJob, gate: Any) -> None:
    """Run all units, each at the same moment as the other attempt."""
    for unit in job.plan.units():
        gate.wait(60)
        run_unit(job, unit)
