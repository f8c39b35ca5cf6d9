"""The coverage of drawn universes: what runs had is counted, by value, pair, weather and role, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from faultline.campaign.conclude import conclude_folder
from faultline.campaign.coverage import coverage, coverage_sentences, covered
from faultline.campaign.engine import default_engine
from faultline.campaign.features import declared_features
from faultline.campaign.histories import write_part
from faultline.campaign.journal import Ending, Journal, read_rows, write_record
from faultline.campaign.layout import create_campaign_folder
from faultline.campaign.matrix import CampaignPlan
from faultline.campaign.planfile import plan_from_flags
from faultline.campaign.row import RUN_SCHEMA
from faultline.campaign.simulate import SimulationJob, run_unit
from faultline.harness.planning import make_plan
from faultline.harness.request import RunRequest
from faultline.harness.run import run_simulated
from faultline.harness.universe import calm_options
from faultline.registry import load_system, resolve

PLAN = CampaignPlan(systems=("quorum-register",), workloads=("read-write",), universe="drawn")


def runs(*rows: list[str], system: str = "quorum-register") -> pa.Table:
    kind = pa.list_(pa.string())
    return pa.table({"system": [system] * len(rows), "covered": pa.array(list(rows), kind)})


def test_runs_in_the_calm_universe_have_no_coverage() -> None:
    assert coverage(CampaignPlan(systems=("quorum-register",)), runs([])) == ()


def test_a_calm_run_covers_the_defaults_and_their_pairs() -> None:
    (calm,) = coverage(PLAN, runs([]))
    options = len(load_system("quorum-register").options)
    assert (calm.runs, calm.values, calm.weather) == (1, options, 0)
    assert calm.pairs == options * (options - 1) // 2
    assert calm.pairs < calm.pairs_possible and "write_back=later" in calm.never


def test_a_drawn_value_is_covered_with_its_pairs_once() -> None:
    row = ["option.write_back=later", "weather.loss=0.01", "nodes=5"]
    (one,), (two,) = coverage(PLAN, runs([])), coverage(PLAN, runs([], row, row))
    options = len(load_system("quorum-register").options)
    assert (two.values, two.weather) == (one.values + 1, 1)
    assert two.pairs == one.pairs + options - 1
    assert "write_back=later" not in two.never


def test_options_that_the_plan_gives_are_no_part_of_the_domain() -> None:
    given = CampaignPlan(systems=("quorum-register",), options={"write_back": "on"}, universe="drawn")
    (held,) = coverage(given, runs([]))
    assert not any(name.startswith("write_back=") for name in held.never)


def test_faults_are_counted_by_the_role_they_struck() -> None:
    (told,) = coverage(PLAN, runs(["struck.kill of leader"], ["struck.kill of leader", "struck.pause of follower"]))
    assert told.struck == {"kill of leader": 2, "pause of follower": 1}
    assert "Faults by role: kill of leader in 2, pause of follower in 1 runs." in list(coverage_sentences([told]))


def test_a_real_run_tells_its_universe_and_the_roles_that_were_struck() -> None:
    request = RunRequest(system="consistent-core", faults=("leadership", "kill"), seed=5, universe="drawn")
    parts = resolve(request)
    record = run_simulated(make_plan(request, parts), parts)
    told = covered(record)
    drawn = [f"{name}={value}" for name, value in (record.plan.universe or {}).items()]
    assert told[: len(drawn)] == drawn
    assert all(text.startswith("struck.") for text in told[len(drawn) :]) and len(told) > len(drawn)


def test_a_feature_that_needs_a_drawn_option_is_declared_and_is_due_with_calm_options_alone() -> None:
    cells = CampaignPlan(systems=("consistent-core",), fault_sets=(("leadership",),), universe="drawn").cells()
    request = RunRequest(system="consistent-core", universe="drawn")
    parts = resolve(request)
    options = [calm_options(request, parts)]
    calm = declared_features(cells, [parts.system], options)
    drawn = declared_features(cells, [parts.system], options, drawn=True)
    assert {each.name for each in calm} < {each.name for each in drawn}
    assert {each.name for each in drawn if each.due_in} == {each.name for each in calm if each.due_in}


def test_rows_of_a_version_that_counted_no_coverage_are_still_read(tmp_path: Path) -> None:
    folder = create_campaign_folder(tmp_path, PLAN, "old")
    write_part(folder.rows_part(0), RUN_SCHEMA.empty_table().drop_columns(["covered"]))
    rows, damaged = read_rows(folder)
    assert damaged == []
    assert rows.schema == RUN_SCHEMA


def test_a_drawn_campaign_tells_its_coverage_and_runs_that_can_be_run_again(tmp_path: Path) -> None:
    plan = plan_from_flags(systems=["quorum-register"], seeds="0..2", workloads=["read-write", "read-your-writes"])
    folder = create_campaign_folder(tmp_path, plan, "drawn")
    write_record(folder.plan, plan)
    write_record(folder.journal, Journal(master="local[1]", declared=(), ending=Ending()))
    job = SimulationJob(plan, folder, folder.root, default_engine("simulated"))
    for unit in plan.units():
        run_unit(job, unit)
    result = conclude_folder(folder.root)
    assert result.exit_code == 0
    told = " ".join(result.sentences)
    assert "Universes of quorum-register: " in told and " in 6 runs" in told and "Faults by role: " in told
    page = (folder.root / "index.html").read_text("utf-8")
    assert "values of options" in page and "Faults by role in quorum-register" in page
    runs = read_rows(folder)[0].select(["run_again", "plan_sha256", "seed"]).to_pylist()
    assert all("--universe drawn" in row["run_again"] for row in runs)
    again = plan.request(plan.cells()[0], 1)
    assert make_plan(again, resolve(again)).digest() in {row["plan_sha256"] for row in runs if row["seed"] == 1}
