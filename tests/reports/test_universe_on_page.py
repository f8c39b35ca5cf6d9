"""The drawn universe on the page of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from page_reader import Page, run_page
from report_samples import REPLAY, judgement, passing_run, plan, violating_run

from faultline.harness.verdict import Verdict

UNIVERSE = {"nodes": "5", "workers": "5", "weather.loss": "0.05", "option.batch": "7"}
CALM = {"nodes": "3", "workers": "5", "weather.loss": "0.0", "option.batch": "<64>"}


def drawn_page(folder: Path, universe: dict[str, str], **judged: Any) -> Page:
    record, _ = passing_run()
    record.plan = plan(universe=universe)
    return run_page(folder, record, judgement([], verdict=Verdict.PASS, sentence="It held.", **judged))


def test_drawn_values_that_are_not_calm_come_first_and_the_others_are_folded(tmp_path: Path) -> None:
    page = drawn_page(tmp_path, UNIVERSE, universe_calm=CALM)
    assert "Universe drawn: nodes=5, weather.loss=0.05 · 3 values differ from the calm universe" in page.text
    table, folded = page.section("universe").split("Drawn as in the calm universe (1)")
    assert "nodes 5 3 weather.loss 0.05 0.0 option.batch 7 <64>" in table
    assert folded.startswith(" workers 5")
    assert page.links == ["#universe"]


def test_a_universe_that_is_calm_throughout_is_folded_whole(tmp_path: Path) -> None:
    page = drawn_page(tmp_path, CALM, universe_calm=CALM)
    assert "0 values differ from the calm universe" in page.text
    assert "No drawn value differs from the calm one. Drawn as in the calm universe (4)" in page.section("universe")


def test_a_stored_verdict_without_calm_values_shows_all_drawn_values_and_compares_none(tmp_path: Path) -> None:
    page = drawn_page(tmp_path, UNIVERSE)
    assert "workers=5, weather.loss=0.05 · all drawn values" in page.text
    assert "nodes 5 not known workers 5 not known" in page.section("universe")
    assert "as in the calm universe" not in page.section("universe")


def test_a_run_that_drew_no_universe_shows_none(tmp_path: Path) -> None:
    page = run_page(tmp_path, *violating_run())
    assert "universe" not in page.ids
    assert "Universe" not in page.text


@pytest.mark.parametrize(("left", "told"), [({}, "Universe: all calm."), ({"nodes": "5"}, "Universe: nodes=5.")])
def test_what_a_violation_needs_of_its_universe_stands_beside_the_minimal_run(
    tmp_path: Path, left: dict[str, str], told: str
) -> None:
    size = {"operations": 4, "operations_before": 200, "faults": 1, "faults_before": 9, "runs": 70, "complete": True}
    page = drawn_page(tmp_path, UNIVERSE, detail={"minimal": size | {"replay": REPLAY, "universe": left}})
    assert told in page.section("replay")
