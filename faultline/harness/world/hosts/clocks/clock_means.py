"""The means of clock faults on the programs of a store on a host, chosen by the abilities of its agent there.

Best is the vDSO, which moves wall clocks and monotonic clocks of any program; libfaketime moves the wall clocks of
programs that ask the C library, which is what is left on other machines than x86-64. The real clock of a host is struck
only where its host file says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["CLOCK_FAULTS", "PROCESS_CLOCKS", "ClockMeans", "chosen_means"]

CLOCK_FAULTS = frozenset({"clock-step", "clock-drift"})
"""The capabilities that take a means."""

PROCESS_CLOCKS = ("vdso", "libfaketime")
"""The means that strike process by process, the better one first."""
_REAL = "real"


class ClockMeans(NamedTuple):
    """The name of the means; or none, and why."""

    name: str
    refusal: str = ""


def chosen_means(asked: str, examined: Mapping[str, str]) -> ClockMeans:
    """Return the means to use. `asked` is a means or `auto`; `examined` has an agent's reason against each means."""
    candidates = PROCESS_CLOCKS if asked == "auto" else (asked,)
    if asked == "auto" and examined["kind"] == _REAL:
        candidates = (_REAL,)
    for name in candidates:
        if not examined[name]:
            return ClockMeans(name)
    return ClockMeans("", "; ".join(f"{name}: {examined[name]}" for name in candidates))
