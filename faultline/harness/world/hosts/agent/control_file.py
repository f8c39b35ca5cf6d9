"""The control file of libfaketime: one line that says how the clocks of a member go wrong.

A program that has libfaketime loaded asks it for the time, and libfaketime (0.9.10, Debian's package) reads this file
anew each time. With `+OFFSET xRATE` in it, it answers

    start + OFFSET + (true time - start) * RATE

where `start` is the same moment for all processes of a member, since we tell them (`preload.py`). So a drift that
begins later must be written as the one that would have begun at `start`, with the offset that makes the clock go on
where it stands; and the rate is always written, since libfaketime keeps the last one when a line has none. The number
at the end means nothing to libfaketime. It tells our lines apart, so that one finds out in the memory of a process
which of them it has read.
"""

from __future__ import annotations

from faultline.harness.world.hosts.agent.clock_code import Skew

__all__ = ["control_line"]

_NS = 1_000_000_000
_PARTS = 1_000_000


def control_line(skew: Skew, start_ns: int, serial: int) -> str:
    """Return the line, without its end, for clocks that are off by `skew` when they began to count at `start_ns`."""
    offset_ns, rate = skew.at(start_ns), _PARTS + skew.rate_ppm
    seconds = f"{'-' if offset_ns < 0 else '+'}{abs(offset_ns) // _NS}.{abs(offset_ns) % _NS:09d}"
    return f"{seconds} x{rate // _PARTS}.{rate % _PARTS:06d} {serial}"
