"""The limits of `coordination-service`: the options and faults under which a workload's promise need not hold."""

from __future__ import annotations

from faultline.harness.promises import Asked
from faultline.systems_under_test.reference.shared.clock_faults import has_runaway_clocks

__all__ = ["not_promised"]

_OF_LEASES = frozenset({"acquire", "attach"})

_DRIFT_MARGIN_PERCENT = 19
"""The part of a lease that an owner must leave unused when its clock and the leader's drift apart by a tenth each."""


def not_promised(asked: Asked) -> str | None:
    """Return a clause that says why what the workload judges by need not hold; None when it must."""
    if has_runaway_clocks(asked) and not _OF_LEASES.isdisjoint(asked.functions):
        return f"no lease has a margin for clocks that run as {'+'.join(asked.faults)} lets them"
    if asked.workload != "locks":
        return None
    if asked.chose("fencing", "off"):
        return "with fencing=off a guarded resource takes the writes of former owners"
    margin = asked.number("lease_margin_percent")
    if "clock-drift" in asked.fault_kinds and margin < _DRIFT_MARGIN_PERCENT:
        return f"a margin of lease_margin_percent={margin} is too small for clocks that drift by a tenth"
    return None
