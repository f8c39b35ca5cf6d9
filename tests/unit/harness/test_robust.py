"""Robust plans: the share of other seeds is counted, and a robust plan on the way to the smallest one is found."""

from __future__ import annotations

from typing import Any

import pytest
from toy_plans import toy_plan

from faultline.harness.plan import Plan
from faultline.harness.robust import COST_MAX, ENOUGH_SEEDS, OTHER_SEEDS, RUN_COST, failing_seeds, robust_plan
from faultline.reports.sentences import other_seeds_sentence


@pytest.mark.parametrize("failing", [0, 7, 12])
def test_the_share_is_that_of_the_twelve_seeds_that_follow(failing: int) -> None:
    seeds: list[int] = []

    def still_fails(plan: Plan) -> bool:
        seeds.append(plan.seed)
        return plan.seed <= 100 + failing

    assert failing_seeds(toy_plan(3), still_fails) == failing
    assert seeds == list(range(101, 113))


def test_of_the_plans_on_the_way_the_smallest_tried_that_is_robust_is_taken() -> None:
    steps = [toy_plan(size) for size in (20, 10, 9, 8, 7, 6, 5, 4)]
    found = robust_plan(steps, lambda plan: len(plan.operations) >= 7 and plan.seed != 101)
    assert found is not None
    assert (len(found.plan.operations), found.plan.seed, found.failing_seeds) == (7, 100, 11)


def test_nine_of_twelve_are_not_enough_and_ten_are() -> None:
    assert robust_plan([toy_plan(3)], lambda plan: plan.seed > 100 + OTHER_SEEDS - ENOUGH_SEEDS) is not None
    assert robust_plan([toy_plan(3)], lambda plan: plan.seed > 101 + OTHER_SEEDS - ENOUGH_SEEDS) is None


def test_the_search_costs_no_more_than_it_may() -> None:
    costs: list[int] = []

    def still_fails(plan: Plan) -> bool:
        costs.append(RUN_COST + len(plan.operations))
        return plan.seed % 4 > 0

    assert robust_plan([toy_plan(size) for size in range(800, 0, -1)], still_fails) is None
    assert sum(costs) <= COST_MAX


def test_the_share_is_told_either_way() -> None:
    assert other_seeds_sentence({"operations": 3}) == ""
    told: dict[str, Any] = {"other_seeds": 12, "failing_seeds": 11}
    assert other_seeds_sentence(told) == "It fails in 11 of 12 other seeds."
    told = {"other_seeds": 12, "failing_seeds": 7, "robust": None}
    assert other_seeds_sentence(told) == "It fails in 7 of 12 other seeds; no plan that fails in 10 was found."
    robust = {"operations": 15, "faults": 1, "failing_seeds": 12}
    told = {"other_seeds": 12, "failing_seeds": 7, "robust": robust}
    assert other_seeds_sentence(told) == (
        "It fails in 7 of 12 other seeds. Robust: 15 operations and 1 fault fail in 12 of 12."
    )
