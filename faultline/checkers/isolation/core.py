"""The few transactions that suffice to show that no order is possible.

Leaving out a transaction, together with all reads of its writes, never makes a possible history impossible: an order of
the whole is an order of the rest. So transactions are taken away, half of them at a time, then ever smaller parts, as
long as the rest stays impossible (delta debugging: Zeller & Hildebrandt, 2002), until none can be, or the budget
ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["smallest_core"]


def smallest_core(members: Sequence[int], is_impossible: Callable[[Sequence[int]], bool]) -> list[int]:
    """Return members of which none can go without `is_impossible` becoming False, as it does when its budget is
    spent."""
    core = list(members)
    size = max(1, len(core) // 2)
    while True:
        shrunk = False
        place = 0
        while place < len(core) and len(core) > 1:
            rest = core[:place] + core[place + size :]
            if rest and is_impossible(rest):
                core, shrunk = rest, True
            else:
                place += size
        if size == 1 and not shrunk:
            return core
        size = max(1, size // 2)
