"""Fail when runs or tests have left namespaces, links, control groups, loop devices or folders of Faultline behind.

`make test` runs it last. It ignores a set of hosts that another process uses.
"""

from __future__ import annotations

import sys
import time

from faultline.harness.world.hosts.machines.leftovers import leftovers_here

__all__ = ["main"]

PATIENCE_S = 10.0


def main() -> int:
    """Print leftovers; return 1 when there are any. The kernel takes a moment to remove a network namespace."""
    deadline_s = time.monotonic() + PATIENCE_S
    while (left := [leftover.what for leftover in leftovers_here()]) and time.monotonic() < deadline_s:
        time.sleep(0.1)
    for what in left:
        print(f"left behind: {what}; `faultline doctor --clean` removes it", file=sys.stderr)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
