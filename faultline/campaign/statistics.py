"""The true rate of violations, as far as a count of them shows it.

The Wilson score interval (Wilson 1927; Agresti & Coull 1998 on why not the textbook interval) behaves at rates near 0
and with few runs, where campaigns live. When no violation was seen, the rule of three gives a memorable bound:
with 95 % confidence the rate is below 3/n (Hanley & Lippman-Hand 1983).
"""

from __future__ import annotations

import math

__all__ = ["Z_95", "rule_of_three", "wilson_interval"]

Z_95 = 1.959963984540054
"""The two-sided 95 % quantile of the standard normal distribution."""


def wilson_interval(hits: int, runs: int, z: float = Z_95) -> tuple[float, float]:
    """Return the interval of the true rate for `hits` in `runs`; (0, 1) when there were no runs."""
    if runs == 0:
        return 0.0, 1.0
    rate, spread = hits / runs, z * z / runs
    centre = (rate + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(rate * (1 - rate) / runs + spread / (4 * runs))
    low = 0.0 if hits == 0 else centre - half
    high = 1.0 if hits == runs else centre + half
    return low, high


def rule_of_three(runs: int) -> float:
    """Return the rate that 0 hits in `runs` exclude with 95 % confidence, at most 1."""
    return min(1.0, 3 / runs) if runs else 1.0
