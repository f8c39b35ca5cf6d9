"""The limits of the promise of `timestamped-kv`: reads are the newest only with a wait and within its bound."""

from __future__ import annotations

from faultline.harness.promises import Asked
from faultline.systems_under_test.reference.shared.clock_faults import has_wrong_clocks

__all__ = ["not_promised"]

_SKEW_MS = 100
"""The farthest that shipped fault sets with small skews put a clock from the true time."""


def not_promised(asked: Asked) -> str | None:
    """Return in a clause why the claim of the workload need not hold; None when it must."""
    if asked.chose("wait", "none"):
        # Stamps that clients carry order cause and effect. A wait promises the order of real time as well (CBW-I1).
        if asked.workload == "causal-pairs":
            return None
        return (
            "with wait=none no write waits for clocks to agree, and a reader with a slow clock misses the newest value"
        )
    if has_wrong_clocks(asked):
        return f"{'+'.join(asked.faults)} puts clocks further apart than any wait allows for"
    option, least = ("error_bound_ms", _SKEW_MS) if asked.chose("wait", "commit") else ("max_offset_ms", 2 * _SKEW_MS)
    if asked.number(option) < least and not asked.fault_kinds.isdisjoint({"clock-step", "clock-strobe", "clock-drift"}):
        return f"{option}={asked.options[option]} is too short for clocks as {'+'.join(asked.faults)} sets them"
    return None
