"""Small campaigns whose answer is known, without Spark: their units are run one after another, and then concluded.

They are those of the fake world (`tests/unit/campaign/campaign_fakes.py`): twelve seeds of the correct system and of
one with a planted bug, which violates with the seeds 0, 5 and 10; seed 7 breaks the harness in both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

import msgspec
import pyarrow.parquet as pq
from campaign_fakes import BROKEN_SEED, fake_engine, fake_plan, simulate
from known_answers import faultline, verdict_in

from faultline.campaign.conclude import conclude_folder
from faultline.campaign.duckdb_rows import DuckdbRows
from faultline.campaign.engine import default_engine
from faultline.campaign.explain import explain_run
from faultline.campaign.journal import Ending, Journal, read_rows, write_record
from faultline.campaign.layout import CampaignFolder, create_campaign_folder
from faultline.campaign.matrix import CampaignPlan
from faultline.campaign.outcome import RunCounts, campaign_exit_code, campaign_verdict, remaining, standing
from faultline.campaign.progress import read_progress
from faultline.campaign.prune import prune
from faultline.campaign.simulate import SimulationJob, run_unit
from faultline.campaign.tasks import give_up
from faultline.harness.errors import UsageError
from faultline.harness.judgement import Judgement
from faultline.harness.store import run_id_of
from faultline.harness.verdict import Verdict

__all__ = [
    "a_campaign_that_died_tells_what_it_lacks",
    "a_finished_campaign_tells_what_its_runs_came_to",
    "a_real_system_is_run_judged_and_shrunk",
    "a_run_is_told_by_its_gravest_verdict",
    "every_seed_leaves_a_verdict_and_a_row",
    "folders_that_are_not_kept_leave_their_verdict",
    "only_what_a_plan_allows_is_expected",
    "the_worst_run_of_a_cell_speaks",
]

CORRECT, PLANTED_BUG = "fake/register/partition", "fake+stale-read/register/partition"
PASS, VACUOUS, UNKNOWN, BROKEN, VIOLATION = Verdict


def _job(root: Path, engine: Any = None, **changes: Any) -> SimulationJob:
    folder = CampaignFolder(root)
    folder.make()
    plan = fake_plan(**changes)
    write_record(folder.plan, plan)
    return SimulationJob(plan, folder, root, engine or fake_engine())


def _concluded(job: SimulationJob, ending: Ending | None) -> Any:
    """Conclude the campaign as if it had come to `ending`; the result, and what `campaign.json` says."""
    declared = (("fake", "leader-changed"), ("fake", "log-truncated"))
    write_record(job.folder.journal, Journal(master="local[1]", declared=declared, ending=ending))
    result = conclude_folder(job.folder.root)
    return result, json.loads(job.folder.summary.read_bytes())


def _run(job: SimulationJob, units: Iterable[int] | None = None) -> None:
    for unit in job.plan.units():
        if units is None or unit.number in units:
            run_unit(job, unit)


def _verdicts(job: SimulationJob, cell: int) -> dict[int, str]:
    """The verdict that each run of a cell left, by seed."""
    chosen = job.plan.cells()[cell]
    paths = {seed: job.folder.run(run_id_of(job.plan.request(chosen, seed))) for seed in job.plan.seed_range()}
    return {seed: verdict_in(path)["verdict"] for seed, path in paths.items() if path.is_dir()}


def every_seed_leaves_a_verdict_and_a_row(folder: Path) -> None:
    """Units of five, five and two seeds: what each run, and each unit, has left when they are done."""
    job = _job(folder / "c")
    assert [(unit.cell, unit.first_seed, unit.last_seed) for unit in job.plan.units()] == [
        *((0, 0, 4), (1, 0, 4), (0, 5, 9), (1, 5, 9), (0, 10, 11), (1, 10, 11)),
    ]
    _run(job)
    correct, planted_bug = _verdicts(job, 0), _verdicts(job, 1)
    assert correct == {seed: "harness-error" if seed == BROKEN_SEED else "pass" for seed in range(12)}
    assert planted_bug == correct | dict.fromkeys((0, 5, 10), "violation")
    table, damaged = read_rows(job.folder)
    rows = {(row["cell"], row["seed"]): row for row in table.to_pylist()}
    assert len(rows) == table.num_rows == 24 and damaged == []
    assert {seed: rows[PLANTED_BUG, seed]["verdict"] for seed in range(12)} == planted_bug
    whole = [seed for seed in range(12) if rows[PLANTED_BUG, seed]["folder_kept"]]
    assert whole == [0, 5, 10]
    for seed in range(12):
        path = job.folder.run(rows[PLANTED_BUG, seed]["run_id"])
        assert (path / "history.jsonl").is_file() is (path / "run.json").is_file() is (seed in whole)
        assert ("replay" in rows[PLANTED_BUG, seed]["replay"].split()) is (seed in whole)
    sound = rows[CORRECT, 3]
    assert dict(sound["counts"]) == {"invoked": 6, "ok": 6, "fail": 0, "info": 0}
    (fault,) = sound["faults"]
    assert (fault["injections"], fault["not_applied"], fault["active_us"]) == (1, 0, 20_000)
    assert fault["operations_in_flight"] == 2
    assert [(part["during_fault"], len(part["latency_us"])) for part in sound["latency"]] == [(False, 4), (True, 2)]
    assert rows[PLANTED_BUG, 10]["counterexample_operations"] == 3 and rows[PLANTED_BUG, 0]["anomaly"] == "stale-read"
    assert rows[PLANTED_BUG, 0]["counterexample_faults"] == []
    told = read_progress(job.folder.progress, 24, "running")
    assert (told.finished, told.violations, told.harness_errors) == (24, 3, 2)
    runs = [set(pq.read_table(job.folder.history_part(number))["run_id"].to_pylist()) for number in range(6)]
    assert [len(each) for each in runs] == [5, 5, 4, 4, 2, 2] and len(set.union(*runs)) == 22

    def leaving(plan: Any, parts: Any, record_messages: bool) -> Any:
        if plan.seed == 3:
            raise SystemExit(0)
        return simulate(plan, parts, record_messages)

    rude = _job(folder / "rude", replace(fake_engine(), simulate=leaving), keep_per_signature=1)
    _run(rude)
    assert _verdicts(rude, 0)[3] == "harness-error" and len(_verdicts(rude, 1)) == 12
    kept = [row["seed"] for row in read_rows(rude.folder)[0].to_pylist() if row["folder_kept"]]
    assert kept == [0, 5, 10], "one of each unit"
    single = _job(folder / "single", keep_per_signature=2, seeds_per_task=12)
    _run(single)
    assert [row["seed"] for row in read_rows(single.folder)[0].to_pylist() if row["folder_kept"]] == [0, 5]


def a_finished_campaign_tells_what_its_runs_came_to(folder: Path) -> None:
    """All results of a campaign that came to its end: verdict, figures, files, and the codes of the command."""
    job = _job(folder / "c")
    _run(job)
    result, told = _concluded(job, Ending())
    assert (result.verdict, result.exit_code, told["verdict"], told["exit_code"]) == (VIOLATION, 1, "violation", 1)
    assert (told["scheduled"], told["finished"], told["interrupted"]) == (24, 24, False)
    cells = {cell["cell"]: cell for cell in told["cells"]}
    counts = {"pass": 11, "violation": 0, "unknown": 0, "vacuous": 0, "harness-error": 1}
    assert cells[CORRECT]["counts"] == counts
    assert cells[PLANTED_BUG]["counts"] == counts | {"pass": 8, "violation": 3}
    assert cells[CORRECT]["standing"] == "harness error" and cells[PLANTED_BUG]["standing"] == "unexpected violation"
    assert cells[PLANTED_BUG]["failing_seeds"] == [0, 5, 10] and cells[CORRECT]["failing_seeds"] == []
    assert cells[CORRECT]["operations"] == {"ok": 66, "fail": 0, "info": 0}
    assert "seed seven" in cells[CORRECT]["first_error"]
    (signature,) = told["signatures"]
    assert (signature["signature"], signature["count"], signature["judged"]) == ("linearizability/stale-read", 3, 11)
    assert (signature["first_seed"], signature["seed"], signature["operations"]) == (0, 0, 2)
    assert told["marks"] == {"leader-changed": 22} and told["marks_missing"] == ["log-truncated"]
    assert told["overlap"] == {"partition": 44}
    cases = _cases(job)
    assert cases == {CORRECT: "error", PLANTED_BUG: "failure", "campaign": None}
    assert faultline("campaign", "conclude", job.folder.root)[0] == 1
    demanding = _job(folder / "marks", seeds="0..4", planted_bugs=((),), must_reach=("leader-changed", "log-truncated"))
    _run(demanding)
    result, told = _concluded(demanding, Ending())
    assert (result.verdict, result.exit_code) == (VACUOUS, 3) and "log-truncated" in told["warnings"][0]
    assert _cases(demanding) == {CORRECT: None, "campaign": "error"}
    immune = _job(folder / "immune", replace(fake_engine(), simulate=_without_effect), seeds="0..4", planted_bugs=((),))
    _run(immune)
    assert f"{CORRECT}: 5 of 5 partition faults did not take effect." in _concluded(immune, Ending())[1]["warnings"]
    sound = _job(folder / "sound", seeds="0..4", planted_bugs=((),))
    _run(sound)
    result, _ = _concluded(sound, Ending())
    assert (result.verdict, result.exit_code) == (PASS, 0) and _cases(sound) == {CORRECT: None, "campaign": None}
    assert faultline("campaign", "conclude", sound.folder.root)[0] == 0


def _without_effect(plan: Any, parts: Any, record_messages: bool) -> Any:
    """The run of the fake world, whose fault does not bite."""
    record = simulate(plan, parts, record_messages)
    record.faults = [msgspec.structs.replace(fault, applied="it is immune") for fault in record.faults]
    return record


def _cases(job: SimulationJob) -> dict[str | None, str | None]:
    """Return the outcome of each test case of the JUnit file, None for a pass; assert that its totals are right."""
    root = xml.parse(job.folder.junit).getroot()
    kinds = ("failure", "error", "skipped")
    cases = {
        case.get("name"): next((child.tag for child in case if child.tag in kinds), None)
        for case in root.iter("testcase")
    }
    assert int(root.get("tests", "")) == len(cases)
    assert int(root.get("failures", "")) == list(cases.values()).count("failure")
    assert int(root.get("errors", "")) == list(cases.values()).count("error")
    return cases


def only_what_a_plan_allows_is_expected(folder: Path) -> None:
    """The same violations: allowed, another one allowed, allowed elsewhere, allowed and not seen, and that strictly."""
    stale = "linearizability/stale-read"
    cases: list[tuple[dict[str, Any], str, bool, Verdict, str]] = [
        ({"*+stale-read/*": (stale,)}, "0..5", False, PASS, "as expected"),
        ({"*+stale-read/*": ("stale-read",)}, "0..5", False, PASS, "as expected"),
        ({"*+stale-read/*": ("lost-write",)}, "0..5", False, VIOLATION, "unexpected violation"),
        ({"*/kill": (stale,)}, "0..5", False, VIOLATION, "unexpected violation"),
        ({"*+stale-read/*": (stale,)}, "1..4", False, PASS, "expected violation not seen"),
        ({"*+stale-read/*": (stale,)}, "1..4", True, VACUOUS, "expected violation not seen"),
        ({"*+stale-read/*": (stale,)}, "5..8", False, BROKEN, "harness error"),
    ]
    for number, (expected, seeds, strict, verdict, words) in enumerate(cases):
        job = _job(folder / str(number), expected=expected, seeds=seeds, strict=strict)
        _run(job)
        result, told = _concluded(job, Ending())
        assert (result.verdict, told["cells"][1]["standing"]) == (verdict, words), expected
    both = _job(folder / "both", planted_bugs=(("stale-read",), ("stale-read", "other")), seeds="0..0")
    first = msgspec.structs.replace(both.plan, expected={"fake+stale-read/*": (stale,)})
    write_record(both.folder.plan, first)
    _run(replace(both, plan=first))
    result, told = _concluded(both, Ending())
    assert result.verdict is VIOLATION
    assert [cell["standing"] for cell in told["cells"]] == ["as expected", "unexpected violation"]
    assert [cell["failing_seeds"] for cell in told["cells"]] == [[], [0]]


def a_campaign_that_died_tells_what_it_lacks(folder: Path) -> None:
    """Units that are missing, a unit without its rows, damaged rows, a torn verdict; and each way of ending early."""
    job = _job(folder / "c", planted_bugs=((),), seeds="0..11")
    _run(job, [0, 1])
    _, second, _ = job.plan.units()
    job.folder.rows_part(second.number).unlink()
    torn = job.folder.run(run_id_of(job.plan.request(job.plan.cells()[0], 9))) / "verdict.json"
    whole = torn.read_bytes()
    torn.write_bytes(whole[:100])
    endings: list[tuple[Ending | None, Verdict, int]] = [
        (None, BROKEN, 4),
        (Ending(interrupted=True), BROKEN, 130),
        (Ending(failure="A worker died."), BROKEN, 4),
    ]
    for ending, verdict, code in endings:
        result, told = _concluded(job, ending)
        assert (result.verdict, result.exit_code, told["finished"]) == (verdict, code, 9), ending
        assert told["cells"][0]["counts"]["pass"] == 8 and _cases(job)["campaign"] == "error"
    sound = _job(folder / "sound", planted_bugs=((),), seeds="0..6")
    _run(sound, [0])
    for ending, verdict, code in [
        (None, UNKNOWN, 3),
        (Ending(interrupted=True), UNKNOWN, 130),
        (Ending(failure="A worker died."), BROKEN, 4),
        (Ending(), BROKEN, 4),
    ]:
        result, told = _concluded(sound, ending)
        assert (result.verdict, result.exit_code, told["finished"]) == (verdict, code, 5), ending
        assert told["cells"][0]["standing"] == "inconclusive"
    violating = _job(folder / "violating", planted_bugs=(("stale-read",),), seeds="0..6")
    _run(violating, [0])
    result, _ = _concluded(violating, Ending(interrupted=True))
    assert (result.verdict, result.exit_code) == (VIOLATION, 1)
    part = violating.folder.rows_part(0)
    part.write_bytes(part.read_bytes()[:-20])
    result, told = _concluded(violating, None)
    assert (result.verdict, told["finished"]) == (VIOLATION, 5) and "damaged" in told["warnings"][0]
    assert told["cells"][0]["counts"]["violation"] == 1
    for unit in violating.plan.units():
        assert give_up(violating, unit, "failed 4 times").endswith("failed 4 times")
    assert _verdicts(violating, 0)[6] == "harness-error" and _verdicts(violating, 0)[0] == "violation"


def a_run_is_told_by_its_gravest_verdict(folder: Path) -> None:
    """A seed with two verdicts, as its unit was tried twice; runs of other cells and seeds; a name that is taken."""
    job = _job(folder / "c", planted_bugs=((),), seeds="0..4")
    _run(job)
    job.folder.rows_part(0).unlink()
    first = job.folder.run(run_id_of(job.plan.request(job.plan.cells()[0], 3)))
    told = msgspec.json.decode((first / "verdict.json").read_bytes(), type=Judgement)
    for name, seed, cell in (("a", 3, CORRECT), ("z", 9, CORRECT), ("y", 2, "other/register/calm")):
        other = job.folder.run(name)
        other.mkdir()
        changes = {"verdict": VIOLATION, "run_id": name, "seed": seed, "cell": cell}
        (other / "verdict.json").write_bytes(msgspec.json.encode(msgspec.structs.replace(told, **changes)))
    result, summary = _concluded(job, None)
    assert (result.verdict, summary["finished"]) == (VIOLATION, 5)
    assert summary["cells"][0]["counts"]["violation"] == 1
    named = create_campaign_folder(folder, job.plan, "nightly")
    (named.root / "campaign.json").write_text("kept")
    try:
        create_campaign_folder(folder, job.plan, "nightly")
    except UsageError:
        pass
    else:
        raise AssertionError("a campaign was begun in the folder of another")
    plain = [create_campaign_folder(folder, job.plan, None).root for _ in range(2)]
    assert plain[0] != plain[1]


def a_real_system_is_run_judged_and_shrunk(folder: Path) -> None:
    """One seed of a planted bug of a system and of its correct twin, by the engine of ordinary campaigns."""
    changes = {"systems": ("consistent-core",), "fault_sets": (("leadership",),), "seeds": "7..7"}
    job = _job(folder / "c", default_engine("simulated"), **changes)
    _run(job)
    result, told = _concluded(job, Ending())
    assert (result.verdict, result.exit_code) == (VIOLATION, 1)
    assert [cell["counts"] for cell in told["cells"]] == [_only("pass"), _only("violation")]
    (signature,) = told["signatures"]
    assert explain_run(job, signature["run_id"], signature["signature"]) == ""
    run = job.folder.run(signature["run_id"])
    assert verdict_in(run)["detail"]["minimal"]["operations"] < 10
    assert verdict_in(run / "minimal")["signature"] == signature["signature"]
    assert (run / "report.html").is_file() and (run / "minimal" / "report.html").is_file()


def _only(verdict: str) -> dict[str, int]:
    return {each.value: int(each.value == verdict) for each in Verdict}


def folders_that_are_not_kept_leave_their_verdict(folder: Path) -> None:
    """Thinning out, and the repetition for a page: what is kept, what is lost, and a run that does not repeat."""
    job = _job(folder / "c", planted_bugs=(("stale-read",),))
    _run(job)
    table, _ = read_rows(job.folder)
    ids = {row["seed"]: row["run_id"] for row in table.to_pylist()}
    prune(DuckdbRows(table), job.folder, {ids[5]})
    whole = [seed for seed, run_id in ids.items() if (job.folder.run(run_id) / "history.jsonl").is_file()]
    assert whole == [5]
    assert "--seed 0" in verdict_in(job.folder.run(ids[0]))["replay"]
    assert verdict_in(job.folder.run(ids[5]))["replay"].startswith("faultline replay ")
    assert explain_run(job, ids[5]) == ""
    path = job.folder.run(ids[5]) / "verdict.json"
    path.write_text(path.read_text().replace('"history_sha256": "', '"history_sha256": "0'))
    assert "not deterministic" in explain_run(job, ids[5])


def the_worst_run_of_a_cell_speaks(_folder: Path) -> None:
    """Counts of runs, what they come to, what is left of that once expectations are taken off, and exit codes."""
    cases = [
        (RunCounts(passed=9), PASS),
        (RunCounts(passed=9, violations=1, harness_errors=1, unknown=1), VIOLATION),
        (RunCounts(passed=9, harness_errors=1, unknown=1), BROKEN),
        (RunCounts(passed=9, unknown=1), UNKNOWN),
        (RunCounts(passed=9, missing=1), UNKNOWN),
        (RunCounts(passed=2, vacuous=2), VACUOUS),
        (RunCounts(passed=3, vacuous=2), PASS),
        (RunCounts(), VACUOUS),
    ]
    for counts, verdict in cases:
        assert counts.verdict is verdict, counts
        assert remaining((), counts, strict=False) is verdict
    allowed = RunCounts(passed=3, violations=2, expected=2)
    assert remaining(("odd",), allowed, strict=True) is PASS and standing(("odd",), allowed) == "as expected"
    more = RunCounts(passed=3, violations=3, expected=2)
    assert remaining(("odd",), more, strict=False) is VIOLATION and standing(("odd",), more) == "unexpected violation"
    broken = RunCounts(violations=2, expected=2, harness_errors=1)
    assert remaining(("odd",), broken, strict=False) is BROKEN
    assert remaining(("odd",), RunCounts(passed=3), strict=True) is VACUOUS
    assert campaign_verdict([PASS, VIOLATION, PASS], finished=True, failed=True) is VIOLATION
    assert campaign_verdict([PASS, PASS], finished=False, failed=False) is UNKNOWN
    assert campaign_verdict([PASS, PASS], finished=True, failed=True) is BROKEN
    assert campaign_verdict([PASS, PASS], finished=True, failed=False) is PASS
    codes = [campaign_exit_code(verdict, interrupted=interrupted) for verdict in Verdict for interrupted in (0, 1)]
    assert codes == [0, 130, 3, 130, 3, 130, 4, 130, 1, 1]
    assert CampaignPlan().digest() != CampaignPlan(seeds="0..1").digest()
