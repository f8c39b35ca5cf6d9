"""Estimates of what a campaign has not seen yet, from how often it saw what it did.

Species that were met once tell of those that were not met (Good, "The population frequencies of species and the
estimation of population parameters", Biometrika 1953). Runs are sampling units, and a pair of events is a species that
a run has or lacks (Böhme, "STADS: Software testing as species discovery", TOSEM 2018).

The estimates suppose that runs are drawn independently. Those of a guided campaign are not: later ones follow what was
new. They say where the curve stands, not what is proved.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

__all__ = ["Unseen", "unseen"]


class Unseen(msgspec.Struct, frozen=True, kw_only=True):
    """The things that `runs` runs met, and an estimate of the rest.

    `seen` things were met, `once` of them in a single run. `next_run` is the expected number of new ones in the next
    run, `unseen_min` a lower bound of those that were never met (Chao, "Estimating the population size for
    capture-recapture data with unequal catchability", Biometrics 1987, corrected for bias).
    """

    runs: int
    seen: int
    once: int
    next_run: float
    unseen_min: float


def unseen(counts: Mapping[str, int], runs: int) -> Unseen:
    """Return the estimate for things that were met in so many of `runs` runs each."""
    once = sum(count == 1 for count in counts.values())
    twice = sum(count == 2 for count in counts.values())
    share = (runs - 1) / runs if runs else 0.0
    return Unseen(
        runs=runs,
        seen=len(counts),
        once=once,
        next_run=round(once / runs, 4) if runs else 0.0,
        unseen_min=round(share * once * (once - 1) / (2 * (twice + 1)), 1),
    )
