"""A sample of the random campaign over correct systems: nothing is told of them, and every run can be repeated."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

import pytest

from faultline.harness.verdict import Verdict
from faultline.registry import systems

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from random_clean_runs import draw, main, run_number

SAMPLE = 5
"""Runs of each system; `make random-runs` carries out thousands of all."""


@pytest.mark.slow
@pytest.mark.parametrize("system", sorted(systems()))
def test_no_violation_and_no_harness_error_comes_of_a_correct_system(system: str) -> None:
    ran = [run_number(1, number, system) for number in range(SAMPLE)]
    wrong = [one for one in ran if one.verdict in (Verdict.VIOLATION, Verdict.HARNESS_ERROR)]
    assert wrong == [], "\n".join(f"{one.sentence}\n{one.command}" for one in wrong)


def test_a_draw_follows_from_its_seed_alone() -> None:
    assert draw(Random("1/7/0")) == draw(Random("1/7/0"))
    assert draw(Random("1/7/0")) != draw(Random("1/8/0"))


@pytest.mark.slow
def test_an_option_is_set_in_every_run_of_its_system() -> None:
    ran = [run_number(1, number, "gossip", options={"detector": "lifeguard"}) for number in range(2)]
    assert all("--option detector=lifeguard" in one.command and one.verdict is Verdict.PASS for one in ran)


def test_options_without_a_system_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["random_clean_runs.py", "--option", "detector=lifeguard"])
    with pytest.raises(SystemExit):
        main()
    assert "--option needs --system" in capsys.readouterr().err


@pytest.mark.slow
def test_the_record_ends_with_what_came_of_all_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / "record.jsonl"
    arguments = ["random_clean_runs.py", "--runs", "3", "--system", "paxos-kv", "--record", str(record)]
    monkeypatch.setattr(sys, "argv", arguments)
    assert main() == 0
    assert record.read_text().splitlines()[-1].startswith('{"seed":1,"first":0,"runs":3,')
    assert "3 runs, seed 1" in capsys.readouterr().out
