"""The check that a plan from a file can be carried out, beyond the check of its types.

A plan that the planner has just made fits its parts. One from a folder may be of another version, or damaged.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from faultline.harness.conditions import contradictions
from faultline.harness.errors import UsageError
from faultline.harness.options import effective_options
from faultline.harness.parts import Parts
from faultline.harness.plan import Plan, answers_needed

__all__ = ["fit_plan"]

_AFTER_THE_HEAL_US_MAX = 600_000_000


def fit_plan(plan: Plan, parts: Parts, source: str) -> Plan:
    """Return `plan`, which was read from `source`, with the options that the system has today.

    Raise `UsageError`, with the key, when `parts` cannot carry it out.
    """
    for complaint in _complaints(plan):
        raise UsageError(f"{source}: {complaint}.", "It was written by another version, or damaged.")
    options = effective_options(parts.system, plan.options, plan.planted_bugs)
    return msgspec.structs.replace(plan, options=options)


def _complaints(plan: Plan) -> Iterator[str]:
    if len(set(plan.nodes)) < len(plan.nodes):
        yield "nodes has a name twice"
    if plan.racks and sorted(node for rack in plan.racks.values() for node in rack) != sorted(plan.nodes):
        yield "racks does not name each of the nodes once"
    if not plan.heal_us <= plan.end_us <= plan.heal_us + _AFTER_THE_HEAL_US_MAX:
        yield f"end_us is {plan.end_us}, which is not within ten minutes after heal_us, {plan.heal_us}"
    yield from contradictions(plan.weather)
    worker = max((operation.worker for operation in plan.operations), default=0)
    if worker >= plan.workers:
        yield f"an operation is of worker {worker}, but the {plan.workers} workers are counted from 0"
    for asked in answers_needed(plan):
        if not 0 <= asked.worker < plan.workers:
            yield f"an operation needs an answer of worker {asked.worker}, but there are only {plan.workers}"
