"""Sentences about a bounded exploration: its counts, and exactly what it proved."""

from __future__ import annotations

from faultline.harness.explore import Bounds, Exploration
from faultline.harness.plan import Plan
from faultline.harness.verdict import Verdict

__all__ = ["exploration_lines"]

_ENDINGS = {
    Verdict.UNKNOWN: "Not proved: a check of some schedule has no answer.",
    Verdict.HARNESS_ERROR: "Not proved: the harness failed in some schedule.",
    Verdict.VACUOUS: "Not proved: no schedule tested enough.",
}


def exploration_lines(found: Exploration, plan: Plan) -> list[str]:
    """Return the result of the exploration of `plan`, as lines: the counts, and then what is proved."""
    verdicts = ", ".join(f"{count:,} {name}" for name, count in found.verdicts.items())
    counts = (
        f"{found.schedules:,} schedules, {found.states:,} states, {found.runs:,} runs ({verdicts or 'none judged'})."
    )
    return [counts, _proved(found, plan)]


def _proved(found: Exploration, plan: Plan) -> str:
    if found.violation is not None:
        return f"Violation: {found.sentence} The schedule has {_decisions(found.violation)}."
    scope = f"{plan.system} on {len(plan.nodes)} nodes with {len(plan.operations)} operations, seed {plan.seed}"
    if not found.complete:
        return (
            f"Not proved: the exploration of {scope} ended early, with at least {found.waiting:,} schedules left. "
            "None of those that were run violates."
        )
    if found.verdict is not Verdict.PASS:
        return f"{_ENDINGS[found.verdict]} {found.sentence}"
    return (
        f"Proved for {scope}: no schedule breaks a promise of the workload {plan.workload} or an invariant, of all "
        f"those that depart from the seed's order by {_within(found.bounds, plan)}."
    )


def _decisions(plan: Plan) -> str:
    """Return the decisions of a schedule in words."""
    late = [f"message {one.number} of {one.place} behind {one.behind}" for one in plan.late or ()]
    crashes = [f"a crash of {fault.target} before its event {fault.before_event}" for fault in plan.faults]
    return " and ".join([*late, *crashes]) or "the seed's own order"


def _within(bounds: Bounds, plan: Plan) -> str:
    late = f"{_up_to(bounds.delays, 'late message')}, each behind at most {bounds.behind} later events of its place"
    crashes = f"{_up_to(bounds.crashes, f'crash of {bounds.down_us / 1_000:g} ms')}, each before an event of its node"
    said = ", and ".join([late] * bool(bounds.delays) + [crashes] * bool(bounds.crashes)) or "nothing"
    return f"{said}, from {bounds.from_us / 1_000:g} to {plan.heal_us / 1_000:g} ms"


def _up_to(count: int, thing: str) -> str:
    """Return `at most 2 late messages`; a `thing` may go on after its first noun."""
    noun, of, rest = thing.partition(" of ")
    plural = "" if count == 1 else "es" if noun.endswith("sh") else "s"
    return f"at most {count} {noun}{plural}{of}{rest}"
