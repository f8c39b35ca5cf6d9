"""The matrix: cells, expectations, seeds and units."""

from __future__ import annotations

import msgspec
import pytest
from campaign_fakes import fake_plan, make_plan, resolve

from faultline.campaign.matrix import CampaignPlan, parse_seeds
from faultline.harness.commands import run_command
from faultline.harness.errors import UsageError


def test_the_cells_are_the_product_of_all_dimensions() -> None:
    plan = CampaignPlan(fault_sets=((), ("kill", "pause")), planted_bugs=((), ("stale-read",)))
    assert [cell.name for cell in plan.cells()] == [
        "consistent-core/register/calm",
        "consistent-core+stale-read/register/calm",
        "consistent-core/register/kill+pause",
        "consistent-core+stale-read/register/kill+pause",
    ]


def test_a_cell_is_named_as_the_plans_of_its_runs_name_it() -> None:
    plan = fake_plan(fault_sets=((), ("kill", "pause")))
    for cell in plan.cells():
        request = plan.request(cell, 3)
        assert make_plan(request, resolve(request)).cell == cell.name


def test_include_narrows_the_product_and_a_cell_named_twice_is_there_once() -> None:
    plan = CampaignPlan(fault_sets=(("kill",), ("pause",), ("kill",)), include=("*/kill",))
    assert [cell.name for cell in plan.cells()] == ["consistent-core/register/kill"]


def test_an_include_that_leaves_nothing_is_refused_with_the_cells_there_are() -> None:
    with pytest.raises(UsageError, match="consistent-core/register/calm"):
        CampaignPlan(include=("nothing*",)).cells()


def test_the_first_expectation_that_matches_counts_and_nothing_is_allowed_elsewhere() -> None:
    expected: dict[str, str | tuple[str, ...]] = {"*/kill": "pass", "*+stale-read/*": ("stale-read", "LDR-I2")}
    plan = CampaignPlan(fault_sets=(("kill",), ("pause",)), planted_bugs=((), ("stale-read",)), expected=expected)
    assert [cell.expected for cell in plan.cells()] == [(), (), (), ("stale-read", "LDR-I2")]


@pytest.mark.parametrize(("seeds", "block"), [("0..0", 25), ("3..10", 4), ("0..99", 7), ("5", 1)])
def test_units_hold_every_seed_of_every_cell_exactly_once(seeds: str, block: int) -> None:
    plan = fake_plan(seeds=seeds, seeds_per_task=block)
    units = plan.units()
    held = [(unit.cell, seed) for unit in units for seed in unit.seeds]
    assert sorted(held) == [(cell, seed) for cell in (0, 1) for seed in plan.seed_range()]
    assert [unit.number for unit in units] == list(range(len(units)))
    assert max(len(unit.seeds) for unit in units) <= block


def test_the_first_units_touch_every_cell() -> None:
    assert {unit.cell for unit in fake_plan().units()[:2]} == {0, 1}


def test_seeds_are_a_range_with_both_ends_or_a_single_seed() -> None:
    assert parse_seeds("0..3") == range(4)
    assert parse_seeds(" 7 ") == range(7, 8)


@pytest.mark.parametrize("text", ["", "a..b", "-1..3", "1..", "..4", "1...4", "0.5", "9..3", "1,2"])
def test_seeds_that_are_no_range_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_seeds(text)
    assert ".." in raised.value.next_step
    assert raised.value.exit_code == 2


def test_the_digest_depends_on_every_value_of_the_plan() -> None:
    assert fake_plan().digest() == fake_plan().digest()
    assert fake_plan().digest() != fake_plan(operations=201).digest()


def test_only_a_plan_that_stops_at_violations_says_so_in_its_file_and_its_requests() -> None:
    plain, stopping = fake_plan(), fake_plan(stop_at_violation=True)
    assert b"stop_at_violation" not in msgspec.json.encode([plain, plain.request(plain.cells()[0], 0)])
    assert stopping.digest() != plain.digest()
    assert "--stop-at-violation" in run_command(stopping.request(stopping.cells()[0], 0))
