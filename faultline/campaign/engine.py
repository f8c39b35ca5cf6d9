"""The steps of one run as a campaign needs them: resolve, plan, run, judge.

A campaign does not care which world carries out a plan. It is given an engine, and tests give it another one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from faultline.harness.judge import judge
from faultline.harness.judgement import Judgement
from faultline.harness.parts import Parts
from faultline.harness.plan import Plan
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.run_record import RunRecord

__all__ = ["Engine", "simulated_engine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """`resolve` names to parts once per cell, then for each seed `plan`, `run` and `judge`."""

    resolve: Callable[[RunRequest], Parts]
    plan: Callable[[RunRequest, Parts], Plan]
    run: Callable[[Plan, Parts], RunRecord]
    judge: Callable[[RunRecord, Parts, str], Judgement]


def simulated_engine() -> Engine:
    """The engine of simulated campaigns."""
    from faultline.registry import resolve

    return Engine(resolve=resolve, plan=make_plan, run=_run_simulated, judge=_judge)


def _run_simulated(plan: Plan, parts: Parts) -> RunRecord:
    return run_simulated(plan, parts)


def _judge(record: RunRecord, parts: Parts, run_id: str) -> Judgement:
    return judge(record, parts, run_id=run_id)
