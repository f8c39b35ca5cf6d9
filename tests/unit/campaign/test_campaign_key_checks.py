"""Checking real histories key by key, from Parquet, gives what checking the whole run gives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import campaign_fakes as fakes
import msgspec
import pyarrow.parquet as pq

from faultline.campaign.collect import CheckedByKey, KeyUnit, check_key, collect
from faultline.campaign.histories import history_table, write_parquet
from faultline.campaign.journal import Ending
from faultline.campaign.layout import CampaignFolder
from faultline.campaign.simulate import SimulationJob
from faultline.checkers.linearizability.checker import LinearizabilityChecker
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import ok
from faultline.harness.parts import Parts
from faultline.harness.plan import Plan
from faultline.harness.run_record import CertainViolation, RunRecord
from faultline.harness.verdict import Verdict


def history_with_a_stale_read() -> History:
    history = History()
    steps = [("a", "write", 1), ("b", "write", 7), ("a", "write", 2), ("a", "read", 1), ("b", "read", 7)]
    for number, (key, f, value) in enumerate(steps):
        argument = value if f == "write" else None
        row = history.invoke(Operation(0, f, key, argument), 1_000 * number, 0, "athens")
        history.complete(row, ok(value if f == "read" else None), 1_000 * number + 500)
    return history


def test_a_key_checked_from_parquet_has_the_verdict_and_the_rows_of_the_whole_history(tmp_path: Path) -> None:
    history, path = history_with_a_stale_read(), tmp_path / "part.parquet"
    write_parquet(path, history_table("run", history))
    checker = LinearizabilityChecker()
    answers = {key: check_key(KeyUnit(str(path), "run", key), checker) for key in ("a", "b")}
    assert [answers[key].verdict for key in ("a", "b")] == [Verdict.VIOLATION, Verdict.PASS]
    whole = checker.check(history)
    merged = CheckedByKey(checker, answers).check(history)
    assert merged == whole
    assert {history.key[row] for row in merged.findings[0].operations} == {"a"}


def test_an_answer_replaces_the_search_and_a_key_without_one_is_searched(tmp_path: Path) -> None:
    history = history_with_a_stale_read()
    checker = LinearizabilityChecker()
    passing = checker.judge_key(history, "b", history.rows_by_key()["b"])
    assert CheckedByKey(checker, {"a": passing}).check(history).verdict is Verdict.PASS
    assert CheckedByKey(checker, {"b": passing}).check(history).verdict is Verdict.VIOLATION


def test_real_runs_stop_after_the_first_that_a_violation_ended(tmp_path: Path) -> None:
    def stops_at_seed_three(plan: Plan, parts: Parts, folder: Path) -> RunRecord:
        certain = CertainViolation(checker="linearizability", rows=(2,), time_us=9) if plan.seed == 3 else None
        return msgspec.structs.replace(fakes.collect(plan, parts, folder), stopped_by=certain)

    folder = CampaignFolder(tmp_path)
    folder.make()
    plan = fakes.fake_plan(world="local", planted_bugs=(("stale-read",),), stop_at_violation=True)
    engine = replace(fakes.fake_engine(), collect=stops_at_seed_three)
    session: Any = None  # The checker of these runs is none that Spark asks key by key.
    ending = collect(session, SimulationJob(plan, folder, tmp_path, engine), lambda _progress: None)
    assert ending == Ending(stopped=True)
    assert pq.read_table(folder.rows_part(0))["seed"].to_pylist() == [0, 1, 2, 3]
