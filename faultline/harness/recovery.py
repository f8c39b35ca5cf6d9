"""Recovery after the heal: which completions count as answers, and which operations are repeated until one comes.

A system that answers nothing after the heal may need longer than the planned operations last. So a run repeats reads
until one is answered, or RECOVERY_US_MAX have passed: silence is a finding only when the system was asked.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from faultline.harness.access import Access
from faultline.harness.history import History
from faultline.harness.outcome import CAS_MISMATCH
from faultline.harness.plan import Plan, PlannedOperation

__all__ = ["RECOVERY_US_MAX", "asked_again", "is_answered"]

RECOVERY_US_MAX = 10_000_000
"""The time after the heal within which a system must answer, unless it declares a longer one."""

_PAUSE_US = 50_000
"""The pause before clients ask again, as refusals may come at once."""


def is_answered(history: History, row: int) -> bool:
    """Return whether the system answered the operation in `row`; a compare-and-set that found another value counts."""
    outcome = history.outcome[row]
    return outcome == "ok" or (outcome == "fail" and history.error[row] == CAS_MISMATCH)


def asked_again(
    plan: Plan, access: Access, history: History, *, healed_us: int, now_us: int
) -> tuple[PlannedOperation, ...]:
    """Return the last read of each worker once more; none when the system answered or its time is over.

    Writes are not repeated, as checkers tell them apart by their values. An operation without a value is a read.
    """
    if now_us >= healed_us + RECOVERY_US_MAX or _has_recovered(history, healed_us):
        return ()
    final = [one for one in plan.operations if one.at_us >= plan.heal_us]
    last = {one.worker: one for one in final if one.f in access.reads or one.value is None}
    return tuple(replace(one, at_us=now_us + _PAUSE_US) for one in last.values())


def _has_recovered(history: History, healed_us: int) -> bool:
    since: Sequence[int] = [row for row, invoke_us in enumerate(history.invoke_us) if invoke_us >= healed_us]
    return any(is_answered(history, row) for row in since)
