"""Robust violations: how many other seeds show the violation of the same plan.

The seed of a plan that is fixed decides its weather, the places of clients, the drift of clocks, and the nodes that a
fault strikes where its target leaves a choice. A violation that needs one seed may go with any change of the code. The
smallest plan is often such a one, while a larger one that was met on the way to it fails with most seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from faultline.harness.plan import Plan

__all__ = ["COST_MAX", "ENOUGH_SEEDS", "OTHER_SEEDS", "RUN_COST", "RobustPlan", "failing_seeds", "robust_plan"]

OTHER_SEEDS = 12
"""The number of other seeds with which a plan is tried."""

ENOUGH_SEEDS = 10
"""The least number of other seeds with which a robust plan fails."""

COST_MAX = 2_000
"""The operations that the search for a robust plan may run, each run counted as RUN_COST operations more."""

RUN_COST = 50
"""The operations that take as long as a run without any."""


class RobustPlan(NamedTuple):
    """A plan, and the number of the other seeds with which it fails."""

    plan: Plan
    failing_seeds: int


def failing_seeds(plan: Plan, still_fails: Callable[[Plan], bool]) -> int:
    """Return the number of seeds, of the OTHER_SEEDS that follow its own, with which `plan` fails."""
    return sum(still_fails(_with_other_seed(plan, more)) for more in range(1, OTHER_SEEDS + 1))


def robust_plan(steps: Sequence[Plan], still_fails: Callable[[Plan], bool]) -> RobustPlan | None:
    """Return the first robust plan found among `steps`, which go from the largest to the smallest; None if none was.

    The last, the second last, the fourth last and so on are tried, each until it cannot be robust any more. The search
    ends before it costs more than COST_MAX.
    """
    cost, back = 0, 1
    while back <= len(steps):
        plan, passing, more = steps[-back], 0, 0
        while more < OTHER_SEEDS and passing <= OTHER_SEEDS - ENOUGH_SEEDS:
            cost += RUN_COST + len(plan.operations)
            if cost > COST_MAX:
                return None
            more += 1
            passing += not still_fails(_with_other_seed(plan, more))
        if passing <= OTHER_SEEDS - ENOUGH_SEEDS:
            return RobustPlan(plan, OTHER_SEEDS - passing)
        back *= 2
    return None


def _with_other_seed(plan: Plan, more: int) -> Plan:
    return replace(plan, seed=plan.seed_of_chances + more, chance_seed=UNSET)
