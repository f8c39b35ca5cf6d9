"""Fails when runs or tests have left namespaces, links, control groups, loop devices or folders of ours behind.

`make test` asks it last. What belongs to a set of hosts that is in use by somebody else is none of its business.
"""

from __future__ import annotations

import sys
import time

from faultline.harness.world.hosts.machines.leftovers import leftovers_here

__all__ = ["main"]

PATIENCE_S = 10.0


def main() -> int:
    """Name what is left; 1 when there is anything. The kernel takes a moment to clear a network namespace away."""
    deadline_s = time.monotonic() + PATIENCE_S
    while (left := [leftover.what for leftover in leftovers_here()]) and time.monotonic() < deadline_s:
        time.sleep(0.1)
    for what in left:
        print(f"left behind: {what}; `faultline doctor --clean` removes it", file=sys.stderr)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
