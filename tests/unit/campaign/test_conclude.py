"""A campaign summarised from its folder, in whatever state it was left."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from campaign_fakes import fake_engine, fake_plan

from faultline.campaign.aggregate import TABLES
from faultline.campaign.conclude import conclude_folder
from faultline.campaign.features import DeclaredFeature
from faultline.campaign.journal import Ending, Journal, write_record
from faultline.campaign.layout import CampaignFolder
from faultline.campaign.matrix import CampaignPlan
from faultline.campaign.row import RUN_SCHEMA
from faultline.campaign.simulate import SimulationJob, run_unit
from faultline.campaign.summary import CampaignSummary
from faultline.harness.errors import UsageError
from faultline.harness.verdict import Verdict

PLANTED_BUG = "fake+stale-read/register/partition"
WHOLE = Ending()


def left(
    root: Path,
    units: int | None = None,
    *,
    ending: Ending | None = None,
    features: tuple[DeclaredFeature, ...] = (),
    **changes: Any,
) -> CampaignFolder:
    """The folder of a campaign that carried out the first `units` of its units (else all) and then came to `ending`."""
    plan: CampaignPlan = fake_plan(**changes)
    folder = CampaignFolder(root)
    folder.make()
    write_record(folder.plan, plan)
    declared = (("fake", "log-truncated"), *((each.system, each.name) for each in features))
    journal = Journal(master="local[2,4]", declared=declared, features=features, ending=ending)
    write_record(folder.journal, journal)
    job = SimulationJob(plan, folder, root, fake_engine())
    for unit in plan.units()[:units]:
        run_unit(job, unit)
    return folder


def summary_of(folder: CampaignFolder) -> CampaignSummary:
    return msgspec.json.decode(folder.summary.read_bytes(), type=CampaignSummary)


def results(folder: CampaignFolder) -> dict[str, bytes]:
    """All files that tell the result."""
    files = [folder.summary, folder.junit, folder.root / "index.html", *map(folder.table, TABLES)]
    return {path.name: path.read_bytes() for path in files}


def troubles_in_junit(folder: CampaignFolder) -> str:
    root = xml.fromstring(folder.junit.read_bytes())
    return root.findtext("testsuite[@name='campaign']/testcase/error") or ""


def test_a_campaign_that_ended_is_concluded_as_it_was(tmp_path: Path) -> None:
    folder = left(tmp_path, ending=WHOLE)
    result = conclude_folder(tmp_path)
    assert (result.verdict, result.exit_code) == (Verdict.VIOLATION, 1)
    assert result.sentences[0].startswith("Campaign fake: violation. 24 runs in 2 cells")
    assert {path.name for path in folder.root.iterdir()} >= {"campaign.json", "junit.xml", "index.html", "tables"}
    assert troubles_in_junit(folder) == ""


def test_concluding_again_changes_nothing(tmp_path: Path) -> None:
    folder = left(tmp_path, 3)
    conclude_folder(tmp_path)
    before = results(folder)
    conclude_folder(tmp_path)
    assert results(folder) == before


def test_a_campaign_stops_at_its_first_violation_and_counts_what_is_there(tmp_path: Path) -> None:
    folder = left(tmp_path, ending=Ending(stopped=True), stop_at_violation=True)
    result = conclude_folder(tmp_path)
    assert (result.verdict, result.exit_code) == (Verdict.VIOLATION, 1)
    assert result.sentences[0].startswith("Campaign fake (stopped at a violation): violation. 6 of 24 runs")
    assert "stopped at its first violation: 18 runs did not begin" in troubles_in_junit(folder)
    assert [cell.counts["violation"] for cell in summary_of(folder).cells] == [0, 1]


def test_a_violation_that_the_plan_allows_does_not_stop_a_campaign(tmp_path: Path) -> None:
    folder = left(tmp_path, ending=WHOLE, stop_at_violation=True, expected={PLANTED_BUG: ("stale-read",)})
    conclude_folder(tmp_path)
    assert summary_of(folder).finished == 24
    assert not folder.stopped.exists()


def due(name: str) -> tuple[DeclaredFeature, ...]:
    return (DeclaredFeature(system="fake", name=name, summary="it happened", due_in=("fake/register/partition",)),)


def test_a_campaign_that_never_entered_what_the_promise_rests_on_is_inconclusive(tmp_path: Path) -> None:
    sound: dict[str, Any] = {"ending": WHOLE, "planted_bugs": ((),), "seeds": "100..124"}
    folder = left(tmp_path / "missed", features=due("session-expired"), **sound)
    result = conclude_folder(folder.root)
    assert (result.verdict, result.exit_code) == (Verdict.VACUOUS, 3)
    assert "in none of 25 runs of fake it happened (session-expired)" in result.warnings[0]
    assert "session-expired" in troubles_in_junit(folder)
    assert "Features of fake: 0 of 1 entered; never session-expired." in result.sentences
    excused = left(tmp_path / "excused", features=due("session-expired"), floors={"features": 0.0}, **sound)
    assert conclude_folder(excused.root).exit_code == 0
    entered = left(tmp_path / "entered", features=due("leader-changed"), **sound)
    assert conclude_folder(entered.root).exit_code == 0


def test_two_of_many_runs_are_no_pass(tmp_path: Path) -> None:
    folder = left(tmp_path, 1, planted_bugs=((),), seeds="0..1999", seeds_per_task=2)
    result = conclude_folder(tmp_path)
    assert (result.verdict, result.exit_code) == (Verdict.UNKNOWN, 3)
    assert result.sentences[0] == "Campaign fake (not finished): unknown. 2 of 2000 runs in 1 cell: 1 × inconclusive."
    assert "1998 runs did not end" in troubles_in_junit(folder)
    assert summary_of(folder).cells[0].verdict is Verdict.UNKNOWN


def test_a_violation_that_was_found_stands_however_many_runs_are_missing(tmp_path: Path) -> None:
    left(tmp_path, 1, planted_bugs=(("stale-read",),))
    result = conclude_folder(tmp_path)
    assert (result.verdict, result.exit_code) == (Verdict.VIOLATION, 1)


def test_an_expected_violation_makes_no_pass_of_a_campaign_that_has_not_ended(tmp_path: Path) -> None:
    left(tmp_path, 1, planted_bugs=(("stale-read",),), expected={"*": ("stale-read",)})
    assert conclude_folder(tmp_path).verdict is Verdict.UNKNOWN


def test_verdicts_of_an_unfinished_unit_count_and_what_they_lack_is_said(tmp_path: Path) -> None:
    folder = left(tmp_path, 2, planted_bugs=(("stale-read",),), seeds="0..9")
    folder.rows_part(0).unlink()
    folder.rows_part(1).unlink()
    result = conclude_folder(tmp_path)
    summary = summary_of(folder)
    assert (summary.finished, summary.verdicts_only) == (10, 10)
    assert summary.cells[0].counts["violation"] == 2
    assert "smallest: seed 0, 2 operations, faults not known" in summary.cells[0].sentence
    assert "Faults that took effect: not known: 10 runs left only their verdicts." in result.sentences
    assert not any("no fault" in sentence.lower() for sentence in result.sentences)


def test_every_state_of_a_dying_campaign_can_be_concluded_and_no_verdict_is_lost(tmp_path: Path) -> None:
    whole = left(tmp_path / "whole")
    files = sorted(path for path in whole.root.rglob("*") if path.is_file() and path not in (whole.plan, whole.journal))
    # A unit writes its rows after its verdicts; a file system's clock may not tell the two apart.
    order = sorted(files, key=lambda path: (path.stat().st_mtime_ns, path.parent.name == "rows", path.name))
    for number in range(0, len(order), 9):
        folder = CampaignFolder(tmp_path / str(number))
        shutil.copytree(whole.root, folder.root)
        for lost in order[number:]:
            (folder.root / lost.relative_to(whole.root)).unlink()
        conclude_folder(folder.root)
        verdicts = len(list(folder.root.glob("runs/*/verdict.json")))
        assert summary_of(folder).finished == verdicts


def test_a_damaged_file_of_rows_costs_no_verdict_and_is_named(tmp_path: Path) -> None:
    folder = left(tmp_path, ending=WHOLE)
    whole = folder.rows_part(1).read_bytes()
    for torn in (b"", whole[: len(whole) // 2], whole[:-4] + b"ROWS"):
        folder.rows_part(1).write_bytes(torn)
        result = conclude_folder(tmp_path)
        assert summary_of(folder).finished == 24
        assert any("part-00001.parquet is damaged or of another plan" in warning for warning in result.warnings)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("cell", "another/register/none"),
        ("seed", 99),
        ("seed", 1),
        ("verdict", "passed"),
        ("verdict", None),
        ("run_id", "../" * 9),
        ("run_id", "n" * 300),
        ("counts", [("ok", (1 << 63) - 1)]),
        ("latency", [{"latency_us": [1 << 60]}]),
        ("findings", [{"time_us": -(1 << 60)}]),
    ],
)
def test_rows_that_no_run_of_the_plan_left_are_damage(tmp_path: Path, column: str, value: object) -> None:
    folder = left(tmp_path, ending=WHOLE)
    rows = pq.read_table(folder.rows_part(0)).to_pylist()
    rows[0][column] = value
    pq.write_table(pa.Table.from_pylist(rows, RUN_SCHEMA), folder.rows_part(0))
    result = conclude_folder(tmp_path)
    assert summary_of(folder).finished == 24 and result.exit_code == 1
    assert any("part-00000.parquet is damaged or of another plan" in warning for warning in result.warnings)


def test_how_a_campaign_ended_is_remembered(tmp_path: Path) -> None:
    folder = left(tmp_path, 2, ending=Ending(interrupted=True))
    result = conclude_folder(tmp_path)
    assert result.sentences[0].startswith("Campaign fake (interrupted): violation. 10 of 24 runs")
    assert "The campaign was interrupted: 14 runs did not end." in troubles_in_junit(folder)


def test_a_failure_of_the_harness_stays_one(tmp_path: Path) -> None:
    said = "Run r gave another history when it was repeated, so its world is not deterministic."
    folder = left(tmp_path, ending=Ending(failure=said), planted_bugs=((),), seeds="0..5")
    assert conclude_folder(tmp_path).verdict is Verdict.HARNESS_ERROR
    assert troubles_in_junit(folder) == said


def test_runs_missing_from_a_campaign_that_ended_are_a_failure_of_the_harness(tmp_path: Path) -> None:
    folder = left(tmp_path, 1, ending=WHOLE, planted_bugs=((),), seeds="0..11")
    assert conclude_folder(tmp_path).verdict is Verdict.HARNESS_ERROR
    assert "The campaign is incomplete: 7 runs left no verdict." in troubles_in_junit(folder)


@pytest.mark.parametrize(
    "demand", [{"must_reach": ("never-reached",)}, {"strict": True, "expected": {"*": ("stale-read",)}}]
)
def test_what_the_plan_demands_and_did_not_get_is_an_error_in_junit(tmp_path: Path, demand: dict[str, Any]) -> None:
    folder = left(tmp_path, ending=WHOLE, planted_bugs=((),), seeds="0..5", **demand)
    assert conclude_folder(tmp_path).verdict is Verdict.VACUOUS
    assert troubles_in_junit(folder)


def test_times_of_finished_units_are_added_up_by_cell(tmp_path: Path) -> None:
    folder = left(tmp_path, seeds="0..9")
    for number in range(4):
        folder.seconds_part(number).write_text("1.5\n")
    conclude_folder(tmp_path)
    assert [cell.seconds for cell in summary_of(folder).cells] == [3.0, 3.0]


def test_a_folder_that_is_no_campaign_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a campaign: it has no plan.json"):
        conclude_folder(tmp_path)


@pytest.mark.parametrize("name", ["plan.json", "journal.json"])
@pytest.mark.parametrize("content", [b"", b'{"torn', b"\xff\xfe", b"[" * 100_000, b'{"schema": 2}'])
def test_a_journal_that_cannot_be_read_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    left(tmp_path, 1)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError):
        conclude_folder(tmp_path)
    assert not (tmp_path / "campaign.json").exists()


def test_verdicts_that_cannot_be_read_and_those_of_other_campaigns_are_not_counted(tmp_path: Path) -> None:
    folder = left(tmp_path, 0, planted_bugs=((),), seeds="0..1")
    other = left(tmp_path / "other", planted_bugs=(("stale-read",),), seeds="5..9")
    shutil.copytree(other.root / "runs", folder.root / "runs", dirs_exist_ok=True)
    (folder.root / "runs" / "torn").mkdir()
    (folder.root / "runs" / "torn" / "verdict.json").write_bytes(b'{"run_id": "torn"')
    (folder.root / "runs" / "a file").write_bytes(b"")
    conclude_folder(tmp_path)
    assert summary_of(folder).finished == 0


def test_a_verdict_that_no_table_can_hold_is_not_counted_and_costs_no_other(tmp_path: Path) -> None:
    folder = left(tmp_path, 1, planted_bugs=((),), seeds="0..4")
    folder.rows_part(0).unlink()
    paths = sorted(folder.runs.glob("*/verdict.json"))
    for path, (field, value) in zip(
        paths,
        [("counts", {"ok": (1 << 64) - 1}), ("marks", {"m": 1 << 63}), ("counts", {"ok": (1 << 63) - 1})],
        strict=False,
    ):
        path.write_bytes(msgspec.json.encode(msgspec.json.decode(path.read_bytes()) | {field: value}))
    conclude_folder(tmp_path)
    assert summary_of(folder).finished == 2


def test_tables_have_the_types_of_finished_campaigns_even_without_a_run(tmp_path: Path) -> None:
    empty, full = left(tmp_path / "empty", 0), left(tmp_path / "full")
    conclude_folder(empty.root)
    conclude_folder(full.root)
    for name in TABLES:
        assert pq.read_schema(empty.table(name)).equals(pq.read_schema(full.table(name))), name


def test_tables_that_were_lost_are_made_again(tmp_path: Path) -> None:
    folder = left(tmp_path, ending=WHOLE)
    shutil.rmtree(folder.tables)
    assert conclude_folder(tmp_path).exit_code == 1
    assert all(folder.table(name).is_file() for name in TABLES)


def test_a_folder_without_its_runs_is_no_campaign(tmp_path: Path) -> None:
    folder = left(tmp_path, ending=WHOLE)
    shutil.rmtree(folder.runs)
    with pytest.raises(UsageError, match="is not a whole campaign: it has no folder runs/"):
        conclude_folder(tmp_path)
