"""`faultline check` of a campaign's folder: each run by its workload's checkers, with every stored verdict."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from faultline.campaign.engine import default_engine
from faultline.campaign.layout import CampaignFolder
from faultline.campaign.matrix import CampaignPlan
from faultline.campaign.simulate import SimulationJob, run_unit
from faultline.cli.main import main

LOSING = CampaignPlan(
    name="losing",
    fault_sets=(("leadership",),),
    planted_bugs=(("acknowledge-last-index",),),
    seeds="6..13",
    seeds_per_task=4,
    keep_per_signature=1,
)
"""A bug whose losses only invariants see: clients read what they wrote."""

CLEAN = msgspec.structs.replace(LOSING, name="clean", planted_bugs=((),), seeds="0..3", seeds_per_task=2)

OF_THE_TEST = ("stats", "availability", "vacuity", "invariants")

Check = Callable[..., "Answer"]


class Answer(NamedTuple):
    """The exit code of the command, and the objects that it printed."""

    code: int
    told: list[dict[str, Any]]

    @property
    def runs(self) -> list[dict[str, Any]]:
        """The objects about single runs, without the one about the campaign."""
        return [each for each in self.told if "#" in each["file"]]

    @property
    def verdicts(self) -> list[str]:
        """The verdict of each run, in order of the alphabet."""
        return sorted(each["verdict"] for each in self.runs)

    @property
    def last(self) -> dict[str, Any]:
        """The object about the campaign as a whole."""
        return self.told[-1]

    def of(self, verdict: str) -> dict[str, Any]:
        """The one run with this verdict."""
        [run] = [each for each in self.runs if each["verdict"] == verdict]
        return run


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str]) -> Check:
    def run(*paths: Path) -> Answer:
        with pytest.raises(SystemExit) as ended:
            main(["check", *map(str, paths), "--json"])
        return Answer(int(ended.value.code or 0), list(map(json.loads, capsys.readouterr().out.splitlines())))

    return run


def carried_out(plan: CampaignPlan, root: Path) -> None:
    """Fill the folder of the campaign `plan` as its tasks do, without Spark."""
    folder = CampaignFolder(root)
    folder.make()
    folder.plan.write_bytes(msgspec.json.encode(plan))
    job = SimulationJob(plan, folder, root, default_engine("simulated"))
    for unit in plan.units():
        run_unit(job, unit)
    folder.clean()


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("campaigns")
    for plan in (LOSING, CLEAN):
        carried_out(plan, store / plan.name)
    return store


@pytest.fixture
def losing(stored: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stored / "losing", tmp_path / "losing"))


@pytest.fixture
def clean(stored: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stored / "clean", tmp_path / "clean"))


def then(root: Path) -> dict[str, str]:
    """The verdicts that the runs of the campaign were given, by their names."""
    return {path.parent.name: json.loads(path.read_text())["verdict"] for path in root.glob("runs/*/verdict.json")}


def verdict_of(root: Path, seed: int) -> Path:
    [path] = root.glob(f"runs/*.{seed}.*/verdict.json")
    return path


def changed(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def without_histories(root: Path) -> None:
    for part in root.glob("histories/*"):
        part.unlink()


# -- what the campaign found ------------------------------------------------------------------------------------------


def test_a_check_finds_what_the_campaign_found_also_what_only_invariants_saw(losing: Path, check: Check) -> None:
    answer = check(losing)
    assert {each["file"].rsplit("#", 1)[1]: each["verdict"] for each in answer.runs} == then(losing)
    assert (answer.code, set(answer.verdicts)) == (1, {"pass", "violation"})
    only_inside = [each for each in answer.runs if {f["checker"] for f in each["findings"]} == {"invariants"}]
    assert only_inside
    assert (answer.last["verdict"], answer.last["sentence"]) == ("pass", "The plan has 8 runs, and all are present.")


@pytest.mark.parametrize(("part", "runs"), [("histories", 8), ("histories/part-00001.parquet", 4)])
def test_the_histories_of_a_campaign_are_judged_as_the_campaign_is(
    part: str, runs: int, losing: Path, check: Check
) -> None:
    answer = check(losing / part)
    assert (answer.code, len(answer.told)) == (1, runs)


def test_a_clean_campaign_passes_run_by_run_and_check_by_check(clean: Path, check: Check) -> None:
    answer = check(clean)
    assert (answer.code, answer.verdicts) == (0, ["pass"] * 4)
    assert [check["checker"] for check in answer.told[0]["checks"]] == ["linearizability", *OF_THE_TEST]


def test_what_the_plan_allows_stays_a_violation_and_is_said_to_be_allowed(losing: Path, check: Check) -> None:
    found = [json.loads(path.read_text())["findings"] for path in losing.glob("runs/*/verdict.json")]
    names = sorted({finding["anomaly"] for findings in found for finding in findings})
    plan = msgspec.structs.replace(LOSING, expected={"*": tuple(names)})
    (losing / "plan.json").write_bytes(msgspec.json.encode(plan))
    answer = check(losing)
    assert answer.code == 1
    for each in answer.runs:
        is_told = any("The campaign's plan allows this" in note for note in each["notes"])
        assert is_told is (each["verdict"] == "violation")


def test_the_graver_of_two_campaigns_decides(clean: Path, losing: Path, check: Check) -> None:
    assert check(clean, losing).code == check(losing, clean).code == 1


def test_a_campaign_inside_a_folder_is_found_also_before_its_first_unit_ended(losing: Path, check: Check) -> None:
    without_histories(losing)
    assert check(losing.parent).code == 1


# -- what is missing --------------------------------------------------------------------------------------------------


def test_verdicts_of_units_that_did_not_come_to_their_end_count(losing: Path, check: Check) -> None:
    without_histories(losing)
    answer = check(losing)
    assert (answer.code, answer.verdicts) == (1, sorted(then(losing).values()))


def test_runs_that_left_nothing_are_unknown_and_counted(clean: Path, check: Check) -> None:
    without_histories(clean)
    for seed in (1, 3):
        shutil.rmtree(verdict_of(clean, seed).parent)
    answer = check(clean)
    assert (answer.code, answer.verdicts) == (3, ["pass", "pass"])
    assert answer.last["verdict"] == "unknown"
    assert "2 of the 4 runs of the plan are missing" in answer.last["sentence"]


@pytest.mark.parametrize("damage", [None, "{", '{"schema": 1}', "\x00"])
def test_without_its_verdict_each_check_that_needs_it_is_unknown(damage: str | None, clean: Path, check: Check) -> None:
    path = verdict_of(clean, 2)
    path.unlink()
    if damage is not None:
        path.write_text(damage)
    answer = check(clean)
    assert (answer.code, answer.verdicts) == (3, ["pass", "pass", "pass", "unknown"])
    verdicts = {each["checker"]: each["verdict"] for each in answer.of("unknown")["checks"]}
    assert verdicts == {"linearizability": "pass", **dict.fromkeys(OF_THE_TEST, "unknown")}


def test_the_verdict_of_another_run_is_none_of_this_one(clean: Path, check: Check) -> None:
    shutil.copy(verdict_of(clean, 0), verdict_of(clean, 1))
    answer = check(clean)
    assert (answer.code, answer.verdicts) == (3, ["pass", "pass", "pass", "unknown"])


def test_a_verdict_that_counted_other_operations_is_none_of_this_run(clean: Path, check: Check) -> None:
    changed(verdict_of(clean, 1), counts={"invoked": 7, "ok": 7, "fail": 0, "info": 0})
    answer = check(clean)
    assert (answer.code, answer.verdicts) == (3, ["pass", "pass", "pass", "unknown"])
    assert "it judged another history" in answer.of("unknown")["sentence"]


def test_a_campaign_whose_plan_cannot_be_read_keeps_its_violations_and_passes_nothing(
    clean: Path, losing: Path, check: Check
) -> None:
    for folder in (clean, losing):
        (folder / "plan.json").write_text("{")
    assert (check(clean).code, check(losing).code) == (3, 1)
    assert "plan.json cannot be read" in check(clean).last["sentence"]


def test_a_damaged_file_of_histories_costs_no_run_its_verdict(losing: Path, check: Check) -> None:
    (losing / "histories" / "part-00000.parquet").write_bytes(b"PAR1 and then nothing")
    answer = check(losing)
    assert (answer.code, answer.verdicts) == (1, sorted(then(losing).values()))
    assert "part-00000.parquet cannot be read" in answer.last["error"]


def test_what_another_version_planned_differently_is_unknown_unless_it_violated(
    losing: Path, clean: Path, check: Check
) -> None:
    for folder in (losing, clean):
        for whole in folder.glob("runs/*/run.json"):
            whole.unlink()
        for path in folder.glob("runs/*/verdict.json"):
            changed(path, plan_sha256="0" * 64)
    assert check(losing).verdicts.count("violation") == list(then(losing).values()).count("violation")
    answer = check(clean)
    assert (answer.code, answer.verdicts) == (3, ["unknown"] * 4)
    assert "plans the run differently" in answer.told[0]["sentence"]


# -- when the two disagree --------------------------------------------------------------------------------------------


def test_a_violation_then_that_the_checkers_deny_now_is_a_harness_error(clean: Path, check: Check) -> None:
    path = verdict_of(clean, 1)
    checks = json.loads(path.read_text())["checks"]
    checks[0] |= {"verdict": "violation", "sentence": "A read was stale."}
    changed(path, verdict="violation", checks=checks, sentence="A read was stale.")
    answer = check(clean)
    assert (answer.code, answer.verdicts) == (4, ["harness-error", "pass", "pass", "pass"])
    told = answer.of("harness-error")["sentence"]
    assert "verdict.json says violation and linearizability now: pass" in told
    assert "A read was stale." in told


def test_a_violation_then_of_no_check_that_is_known_is_denied_by_all_of_them(clean: Path, check: Check) -> None:
    changed(verdict_of(clean, 1), verdict="violation", sentence="A read was stale.")
    answer = check(clean)
    assert (answer.code, answer.verdicts) == (4, ["harness-error", "pass", "pass", "pass"])


def test_a_violation_now_that_was_a_pass_then_is_one_and_the_disagreement_is_told(clean: Path, check: Check) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    part = clean / "histories" / "part-00000.parquet"
    table = pq.read_table(part)
    ended = zip(table["f"].to_pylist(), table["outcome"].to_pylist(), strict=True)
    results = table["result"].to_pylist()
    results[list(ended).index(("read", "ok"))] = "987654"
    place = table.column_names.index("result")
    pq.write_table(table.set_column(place, "result", pa.array(results)), part)
    answer = check(clean)
    assert (answer.code, answer.verdicts) == (1, ["pass", "pass", "pass", "violation"])
    notes = answer.of("violation")["notes"]
    assert any(note.startswith("They disagree: verdict.json says pass") for note in notes)


def test_an_error_of_the_harness_then_stays_one(clean: Path, check: Check) -> None:
    changed(verdict_of(clean, 1), verdict="harness-error", errors=["Healing failed: no."])
    answer = check(clean)
    assert (answer.code, answer.verdicts) == (4, ["harness-error", "pass", "pass", "pass"])
