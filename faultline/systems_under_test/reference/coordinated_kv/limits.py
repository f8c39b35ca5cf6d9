"""What `coordinated-kv` does not promise: leases have a margin for clocks, and no more."""

from __future__ import annotations

from faultline.harness.promises import Asked
from faultline.systems_under_test.reference.shared.clock_faults import has_runaway_clocks

__all__ = ["not_promised"]

_DRIFT_MARGIN_PERCENT = 19
"""What an owner must leave unused of a lease when its clock and the leader's differ by a tenth, each its own way."""


def not_promised(asked: Asked) -> str | None:
    """Why what the workload judges by need not hold, in a clause; None when it must."""
    if has_runaway_clocks(asked):
        return f"no lease has a margin for clocks that run as {'+'.join(asked.faults)} lets them"
    margin = asked.number("lease_margin_percent")
    if "clock-drift" in asked.fault_kinds and margin < _DRIFT_MARGIN_PERCENT:
        return f"a margin of lease_margin_percent={margin} is too small for clocks that drift by a tenth"
    return None
