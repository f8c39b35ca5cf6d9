"""Recovery after the heal: which completions count as answers, and which operations are repeated until one comes.

A system that answers nothing after the heal may need longer than the planned operations last. So a run repeats reads
until one is answered, or RECOVERY_US_MAX have passed: silence is a finding only when the system was asked. A part of a
system may need longer than the rest. So a run then repeats the final reads of each object that holds an acknowledged
write and was not read: what was lost there would go unseen.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from faultline.harness.access import Access
from faultline.harness.exposure import unread_after
from faultline.harness.history import History
from faultline.harness.outcome import CAS_MISMATCH
from faultline.harness.plan import Plan, PlannedOperation

__all__ = ["RECOVERY_US_MAX", "asked_again", "is_answered"]

RECOVERY_US_MAX = 10_000_000
"""The time after the heal within which a system must answer, unless it declares a longer one."""

_PAUSE_US = 50_000
"""The pause before clients ask again, as refusals may come at once."""

_PAUSE_FOR_OBJECTS_US = 500_000
"""The pause before objects are read again. Longer, as the refusals count among the operations of a run that works."""


def is_answered(history: History, row: int) -> bool:
    """Return whether the system answered the operation in `row`; a compare-and-set that found another value counts."""
    outcome = history.outcome[row]
    return outcome == "ok" or (outcome == "fail" and history.error[row] == CAS_MISMATCH)


def asked_again(
    plan: Plan, access: Access, history: History, *, healed_us: int, now_us: int
) -> tuple[PlannedOperation, ...]:
    """Return the last read of each worker once more, or the last read of each written object that was not read yet.

    Return none when all of these were read, or the system's time is over. Writes are not repeated, as checkers tell
    them apart by their values. An operation without a value is a read.
    """
    if now_us >= healed_us + RECOVERY_US_MAX:
        return ()
    final = [one for one in plan.operations if one.at_us >= plan.heal_us]
    if not _has_recovered(history, healed_us):
        last = {one.worker: one for one in final if one.f in access.reads or one.value is None}
        return tuple(replace(one, at_us=now_us + _PAUSE_US) for one in last.values())
    unread = unread_after(history, access, healed_us)
    again = _last_reads(final, access, unread) if unread else ()
    return tuple(replace(one, at_us=now_us + _PAUSE_FOR_OBJECTS_US) for one in again)


def _last_reads(
    final: Sequence[PlannedOperation], access: Access, objects: Sequence[str | None]
) -> Sequence[PlannedOperation]:
    """Return the last of the `final` operations that reads each of `objects` and writes nothing.

    A transaction that reads several of them is returned once.
    """
    last: dict[str | None, int] = {}
    for number, one in enumerate(final):
        if not tuple(access.write_set(one.f, one.key, one.value)):
            last.update(dict.fromkeys(access.read_set(one.f, one.key, one.value), number))
    return [final[number] for number in sorted({last[each] for each in objects if each in last})]


def _has_recovered(history: History, healed_us: int) -> bool:
    since: Sequence[int] = [row for row, invoke_us in enumerate(history.invoke_us) if invoke_us >= healed_us]
    return any(is_answered(history, row) for row in since)
