"""A violation tells the promise that was broken, and a run with a planted bug the mistake that it has."""

from __future__ import annotations

from pathlib import Path

from faultline.harness.judge import judge
from faultline.harness.judgement import Judgement
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.run_record import RunRecord
from faultline.registry import resolve
from faultline.reports.run_page import write_run_report
from faultline.reports.terminal import run_lines

VOTES_ONCE = "A server votes for at most one candidate in a generation."


def judged(seed: int, *planted_bugs: str) -> tuple[RunRecord, Judgement]:
    request = RunRequest(
        system="consistent-core", workload="register", faults=("leadership",), seed=seed, planted_bugs=planted_bugs
    )
    parts = resolve(request)
    record = run_simulated(make_plan(request, parts), parts)
    return record, judge(record, parts, run_id="run")


def test_a_broken_invariant_is_told_by_its_statement(tmp_path: Path) -> None:
    record, judgement = judged(13, "vote-twice")
    assert judgement.statements == {"LDR-I2": VOTES_ONCE}
    assert run_lines(record, judgement)[1] == f"  LDR-I2: {VOTES_ONCE}"
    page = write_run_report(tmp_path, record, judgement).read_text(encoding="utf-8")
    assert f"<b>LDR-I2</b>: {VOTES_ONCE}" in page


def test_a_planted_bug_is_told_with_its_pattern_and_its_rows(tmp_path: Path) -> None:
    page = write_run_report(tmp_path, *judged(13, "vote-twice")).read_text(encoding="utf-8")
    assert "Planted bug <b>vote-twice</b>: a server gives the vote of a generation away again (generation-clock" in page


def test_an_anomaly_that_is_called_as_a_bug_is_not_told_by_the_bug() -> None:
    record, judgement = judged(7, "stale-read")
    assert judgement.findings[0].anomaly == "stale-read"
    assert not judgement.statements
    assert run_lines(record, judgement)[1].startswith("  Counterexample")


def test_a_pass_without_a_planted_bug_tells_neither(tmp_path: Path) -> None:
    record, judgement = judged(1)
    assert not judgement.statements
    assert not judgement.summaries
    assert "Planted bug" not in write_run_report(tmp_path, record, judgement).read_text(encoding="utf-8")
