"""Shrinking of a failing plan: fewest faults, then fewest operations, under the calmest conditions, that still fail in
the same way.

Because operations and faults stand at absolute times and the weather is a pure function of (seed, stream, time), taking
one thing out of a plan changes nothing else, and plain delta debugging (Zeller and Hildebrandt 2002, `ddmin`) gets to a
handful of operations in a few hundred re-runs. The caller's test keeps the class of the failure fixed, so that the
search does not wander off to another bug."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from faultline.harness.calmer import Test, calm_values, earlier_events, fewer_nodes_and_workers, shorter_faults
from faultline.harness.errors import UsageError
from faultline.harness.judge import judge
from faultline.harness.parts import Parts
from faultline.harness.plan import Plan
from faultline.harness.run import run_simulated
from faultline.harness.system import NodeSystem
from faultline.harness.verdict import Verdict

__all__ = ["Shrunk", "minimize", "same_violation", "shrink"]

_Item = TypeVar("_Item")

SIZE_RUNS_MAX = 40
"""The re-runs for fewer nodes and workers, shorter faults and earlier events: of the smallest plan, so short."""


class Shrunk(msgspec.Struct, frozen=True, kw_only=True):
    """A plan that still fails, and the cost of finding it; `complete` means that no single part can be taken out, and
    no value of its weather or options be made calm. `steps` are the plans that failed on the way, from the first."""

    plan: Plan
    runs: int
    complete: bool
    steps: tuple[Plan, ...] = ()


class _Budget:
    """A counter of re-runs that knows when they are used up, the answers so far, and the plans that failed."""

    def __init__(self, test: Test, runs_max: int) -> None:
        self._test = test
        self._runs_max = runs_max
        self._answers: dict[str, bool] = {}
        self.runs = 0
        self.failed: list[Plan] = []

    @property
    def is_spent(self) -> bool:
        return self.runs >= self._runs_max

    def still_fails(self, plan: Plan) -> bool:
        digest = plan.digest()
        if digest not in self._answers:
            if self.is_spent:
                return False
            self.runs += 1
            self._answers[digest] = self._test(plan)
            if self._answers[digest]:
                self.failed.append(plan)
        return self._answers[digest]


def shrink(plan: Plan, still_fails: Test, *, system: NodeSystem | None = None, runs_max: int = 2_000) -> Shrunk:
    """Return the smallest plan found from `plan`, which itself must fail; with its `system`, the calmest.

    `still_fails(plan)` runs a candidate and says whether it fails in the same way; at most `runs_max` calls are made,
    SIZE_RUNS_MAX of them for fewer nodes and workers, shorter faults and earlier events.
    """
    budget = _Budget(still_fails, runs_max)
    budget.failed.append(plan)
    sizes = _Budget(budget.still_fails, SIZE_RUNS_MAX)
    while True:
        before = plan
        plan = _shrink_faults(plan, budget)
        plan = _shrink_operations(plan, budget)
        if system is not None:
            plan = calm_values(plan, system, budget.still_fails)
            plan = fewer_nodes_and_workers(plan, system, sizes.still_fails)
            plan = shorter_faults(plan, sizes.still_fails)
            plan = earlier_events(plan, sizes.still_fails)
        if plan == before or budget.is_spent:
            complete = not budget.is_spent
            return Shrunk(plan=plan, runs=budget.runs, complete=complete, steps=tuple(budget.failed))


def same_violation(parts: Parts, signature: str, *, any_finding: bool = False) -> Test:
    """Return a test for `shrink`: the plan still violates, and the most important finding is of the same kind.

    With `any_finding`, any finding may be of that kind: the caller asked for one that was not the most important. A
    plan whose nodes refuse their options, as they may when some are calm and others are not, does not violate.
    Ctrl-C in a run ends the whole search.
    """

    def test(plan: Plan) -> bool:
        try:
            judgement = judge(run_simulated(plan, parts).whole(), parts, run_id="shrinking")
        except UsageError:
            return False
        told_by = judgement.findings if any_finding else judgement.findings[:1]
        return judgement.verdict is Verdict.VIOLATION and signature in [finding.signature for finding in told_by]

    return test


def minimize(items: Sequence[_Item], still_fails: Callable[[tuple[_Item, ...]], bool]) -> tuple[_Item, ...]:
    """Return a subsequence of `items` that still fails and from which no single item can be taken out (1-minimal).

    `items` itself must fail. Blocks are tried from large to small, late ones first, because what comes after the
    failure goes at once.
    """
    kept = tuple(items)
    size = max(1, len(kept) // 2)
    # The loop ends only after a whole pass with single items that removed none: each item was then tried alone, as
    # 1-minimal asks. Taking one item out can make another superfluous, so a pass that removed some is repeated.
    while kept:
        end = len(kept)
        removed = False
        while end > 0:
            start = max(0, end - size)
            candidate = kept[:start] + kept[end:]
            if still_fails(candidate):
                kept, removed = candidate, True
            end = start
        if size == 1 and not removed:
            return kept
        size = max(1, size // 2)
    return kept


def _shrink_faults(plan: Plan, budget: _Budget) -> Plan:
    kept = minimize(plan.faults, lambda faults: budget.still_fails(msgspec.structs.replace(plan, faults=faults)))
    return msgspec.structs.replace(plan, faults=kept)


def _shrink_operations(plan: Plan, budget: _Budget) -> Plan:
    kept = minimize(
        plan.operations, lambda operations: budget.still_fails(msgspec.structs.replace(plan, operations=operations))
    )
    return msgspec.structs.replace(plan, operations=kept)
