"""The report on a campaign, read back without JavaScript."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from page_reader import Page
from report_samples import REPLAY, campaign_summary, cell

from faultline.campaign.coverage import Coverage, coverage_sentences
from faultline.campaign.features import FeaturesEntered
from faultline.harness.errors import UsageError
from faultline.reports.campaign_page import blocks, write_campaign_report
from faultline.reports.campaign_summary import read_summary, reconciliation, wilson_interval


def page_of(folder: Path, summary: dict[str, Any]) -> Page:
    (folder / "runs" / "r-8").mkdir(parents=True, exist_ok=True)
    (folder / "runs" / "r-8" / "report.html").write_text("a report")
    (folder / "campaign.json").write_text(json.dumps(summary))
    return Page(write_campaign_report(folder).read_text("utf-8"))


@pytest.fixture
def page(tmp_path: Path) -> Page:
    return page_of(tmp_path, campaign_summary())


def test_the_first_line_is_the_campaign_sentence(page: Page) -> None:
    assert page.headings[0].startswith("✖ Campaign demo: 6 cells × 50 seeds = 300 runs")


def test_the_numbers_reconcile_even_when_runs_are_missing(page: Page) -> None:
    line = page.section("reconciliation")
    assert line == (
        "300 runs scheduled = 269 passed + 3 violated + 14 expected + 2 unknown + 1 vacuous "
        "+ 2 harness error + 9 not run"
    )
    scheduled, *terms = (int(number) for number in re.findall(r"\d+", line))
    assert scheduled == sum(terms)


def test_the_cells_of_the_matrix_add_up_to_the_reconciliation(page: Page) -> None:
    fractions = re.findall(r"(\d+)/50", page.section("matrix"))
    others = re.findall(
        r"[✔✖≈?∅!·] (?:pass|not run|harness error|unknown|vacuous|violation) (\d+)(?![\d/])", page.section("matrix")
    )
    assert sum(map(int, fractions + others)) == 300


def test_too_many_runs_are_told_as_incomplete_records() -> None:
    campaign = read_summary({"scheduled": 10, "cells": [cell("", (), [], {"pass": 50})]})
    assert not campaign.reconciles
    assert "add up to 50: this campaign's records are incomplete" in reconciliation(campaign)


def test_each_cell_shows_sign_word_counts_and_interval(page: Page) -> None:
    matrix = page.section("matrix")
    assert "✔ pass 50/50" in matrix
    assert "≈ expected violation 14/50" in matrix
    assert "28 % violate" in matrix
    assert "17 % to 42 %" in matrix
    assert "✖ violation 3/50" in matrix
    assert "! harness error 2" in matrix
    assert "✔ pass 45" in matrix
    assert "? unknown 2/50" in matrix
    assert "∅ vacuous 1/50" in matrix
    assert "· not run 9" in matrix


def test_an_expected_violation_that_was_not_seen_is_a_change_worth_telling(page: Page) -> None:
    assert "! expected and not seen: stale-read" in page.section("matrix")
    assert "consistent-core+stale-read/register/kill+pause: no stale-read in 50 runs" in page.section("coverage")
    assert "below 7.1 %" in page.section("coverage")


def test_the_matrix_has_one_block_per_system_and_its_planted_bugs() -> None:
    shown = blocks(read_summary(campaign_summary()).cells)
    assert [block.system for block in shown] == ["consistent-core", "consistent-core+stale-read"]
    assert [block.fault_sets for block in shown] == [("calm", "partition", "kill+pause")] * 2
    assert all(cell is not None for block in shown for _, row in block.rows for cell in row)


def test_a_cell_that_was_not_planned_is_shown_as_such(tmp_path: Path) -> None:
    summary = {"cells": [cell("", (), [], {"pass": 50}), cell("", ("kill",), [], {"pass": 50}, "append")]}
    assert page_of(tmp_path, summary).section("matrix").count("· not planned") == 2


def test_each_distinct_violation_has_its_rate_its_replay_line_and_its_report(page: Page) -> None:
    section = page.section("violations")
    assert "1. ✖ lost-write" in section
    assert "2. ≈ stale-read (expected here)" in section
    assert "Seen in 14 runs" in section
    assert "95 % interval 17 % to 42 %" in section
    assert "first with seed 17" in section
    assert page.by_id["replay-1"] == REPLAY == page.by_id["replay-2"]
    assert page.links == ["#violation-1", "#violation-2", "runs/r-8/report.html"]


@pytest.mark.parametrize("address", ["javascript:alert(1)", "https://example.org/", "../../etc/passwd", "/etc/passwd"])
def test_a_report_address_that_leaves_the_campaign_is_no_link(tmp_path: Path, address: str) -> None:
    summary = campaign_summary()
    for entry in summary["signatures"]:
        entry["report"] = address
    assert page_of(tmp_path, summary).links == ["#violation-1", "#violation-2"]


def test_of_a_run_that_left_only_its_verdict_no_fault_is_denied(tmp_path: Path) -> None:
    summary = campaign_summary()
    for entry in summary["signatures"]:
        entry |= {"fault_kinds": [], "faults_known": False}
    told = page_of(tmp_path, summary).section("violations")
    assert "faults not known" in told
    assert "faults none" not in told


def test_marks_never_reached_stand_out(page: Page) -> None:
    section = page.section("coverage")
    assert "Never reached: entries-truncated." in section
    assert "leader-changed 812" in section
    assert "partition 4,120" in section


def test_what_drawn_universes_met_and_never_met_is_told_as_on_the_terminal(tmp_path: Path) -> None:
    never = tuple(f"batch_size={number}" for number in range(8))
    met = Coverage(
        system="store", runs=1_200, values=12, values_possible=20, pairs=1_034, pairs_possible=2_000, weather=9,
        weather_possible=17, never=never, struck={"kill of leader": 1_100, "pause of follower": 7},
    )  # fmt: skip
    page = page_of(tmp_path, campaign_summary() | {"coverage": msgspec.to_builtins([met])})
    assert "store 1,200 12 of 20 1,034 of 2,000 9 of 17" in page.section("universes")
    (told, by_role) = coverage_sentences([met])
    assert "12 of 20 values of options, 1,034 of 2,000 pairs of them and 9 of 17 values of weather in 1,200" in told
    assert f"8 values of options that no run of store had {', '.join(never)}" in page.section("universes")
    assert "kill of leader in 1,100, pause of follower in 7" in by_role
    assert "kill of leader 1,100 pause of follower 7" in page.section("universes")


def test_features_that_no_run_entered_are_named_beside_the_number_entered(tmp_path: Path) -> None:
    entered = FeaturesEntered(system="store", entered=1, declared=3, never=("snapshot-taken", "log-cut"))
    page = page_of(tmp_path, campaign_summary() | {"features": msgspec.to_builtins([entered])})
    assert "store 1 of 3 snapshot-taken, log-cut" in page.section("coverage")


def test_a_long_list_of_values_never_met_is_whole(tmp_path: Path) -> None:
    never = [f"a_setting_with_a_long_name={number}" for number in range(500)]
    page = page_of(tmp_path, campaign_summary() | {"coverage": [{"system": "store", "never": never}]})
    assert never[-1] in page.section("universes")


def test_a_campaign_without_universes_and_features_tells_of_none(page: Page) -> None:
    assert "Drawn universes" not in page.headings
    assert "Features" not in page.headings


def test_latency_has_a_finding_and_a_table(page: Page) -> None:
    section = page.section("latency")
    assert "the slowest hundredth of successful read operations took 50.8 times as long" in section
    assert "read ok inside 3,000 2.40 ms 90.0 ms 310 ms 990 ms" in section
    assert "read info inside 12 – – – –" in section


def test_warnings_and_environment_are_shown(page: Page) -> None:
    assert "the campaign says nothing about log truncation" in page.section("warnings")
    assert "local[*]" in page.section("settings")
    assert "4.0.0" in page.section("settings")


def test_a_campaign_whose_violations_were_all_expected_shows_no_red_cross(tmp_path: Path) -> None:
    summary = campaign_summary()
    summary["cells"] = [cell("stale-read", ("partition",), ["stale-read"], {"violation": 14, "pass": 36})]
    assert page_of(tmp_path, summary).headings[0].startswith("≈ ")


def test_an_empty_summary_still_makes_a_page(tmp_path: Path) -> None:
    page = page_of(tmp_path, {})
    assert page.headings[0].startswith("? ")
    assert "This campaign has no cells." in page.text
    assert "None was seen." in page.text


def test_the_same_campaign_gives_the_same_bytes(tmp_path: Path) -> None:
    first = page_of(tmp_path, campaign_summary()).html
    assert page_of(tmp_path, campaign_summary()).html == first


@pytest.mark.parametrize("content", [None, b"{", b"[]"])
def test_a_folder_without_a_campaign_is_a_usage_error_with_a_next_step(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "campaign.json").write_bytes(content)
    with pytest.raises(UsageError) as raised:
        write_campaign_report(tmp_path)
    assert "campaign.json" in raised.value.message
    assert raised.value.next_step
    assert not (tmp_path / "index.html").exists()


def test_a_clean_cell_tells_the_bound_that_the_terminal_tells() -> None:
    clean, broken = (
        read_summary({"cells": [cell("", (), [], counts)]}).cells[0]
        for counts in ({"pass": 96, "unknown": 4}, {"pass": 99, "violation": 1})
    )
    assert clean.interval == "below 3.1 %, 95 % sure"
    assert broken.interval.startswith("95 % interval ")


def test_the_wilson_interval_agrees_with_the_published_example() -> None:
    """15 of 148: 0.0624 to 0.1605 (Newcombe, Statistics in Medicine 17, 1998, table I, method 3)."""
    assert wilson_interval(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert wilson_interval(0, 0) == (0.0, 1.0)


def test_a_large_campaign_stays_small(tmp_path: Path) -> None:
    cells = [cell(f"bug-{number}", ("partition",), "pass", {"pass": 50}) for number in range(500)]
    assert len(page_of(tmp_path, {"cells": cells}).html.encode()) < 1_500_000


def test_unexpected_signatures_come_first_then_those_seen_most_often() -> None:
    summary = campaign_summary()
    rare, expected = summary["signatures"]
    often = rare | {"signature": "linearizability:often", "count": 30}
    summary["signatures"] = [expected, rare, often]
    shown = [entry.signature for entry in read_summary(summary).signatures]
    assert shown == [often["signature"], rare["signature"], expected["signature"]]


def test_a_link_inside_the_page_leads_somewhere(page: Page) -> None:
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
