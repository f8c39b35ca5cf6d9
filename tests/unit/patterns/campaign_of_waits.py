"""Runs of a campaign of `timestamped-kv`, and the errors that its clients met, by function."""

from __future__ import annotations

from typing import Any

import msgspec

from faultline.campaign.planfile import load_plan
from faultline.harness.judge import judge
from faultline.harness.planning import make_plan
from faultline.harness.run import run_simulated
from faultline.harness.verdict import Verdict
from faultline.registry import resolve

__all__ = ["Errors", "outcomes"]


class Errors(dict[str, set[Any]]):
    """Function to errors; and how many reads were restarted, and what was violated."""

    restarts = 0

    def __init__(self) -> None:
        super().__init__(read=set(), write=set())
        self.violations: list[str] = []


def outcomes(campaign: str, seeds: int, **options: str) -> Errors:
    """The errors in the first `seeds` seeds of each cell."""
    errors, plan = Errors(), load_plan(campaign)
    for seed in range(seeds):
        for cell in plan.cells():
            request = msgspec.structs.replace(plan.request(cell, seed), options={**plan.options, **options})
            parts = resolve(request)
            record = run_simulated(make_plan(request, parts), parts)
            judgement = judge(record, parts, run_id="")
            errors.restarts += record.marks.get("read-restarted", 0)
            errors.violations += [judgement.sentence] if judgement.verdict is Verdict.VIOLATION else []
            for f, error in zip(record.history.f, record.history.error, strict=True):
                errors[f].add(error)
    return errors
