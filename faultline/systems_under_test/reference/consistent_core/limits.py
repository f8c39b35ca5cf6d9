"""The limits of `consistent-core`: the options and faults under which a workload's promise need not hold."""

from __future__ import annotations

from faultline.harness.promises import Asked
from faultline.systems_under_test.reference.shared.clock_faults import has_runaway_clocks

__all__ = ["not_promised"]


def not_promised(asked: Asked) -> str | None:
    """Return a clause that says why what the workload judges by need not hold; None when it must."""
    if "read" in asked.functions and asked.chose("read_mode", "stale"):
        return "with read_mode=stale any server answers reads at once, however far behind it is"
    return _because_of_disks(asked) or _because_of_clocks(asked)


def _because_of_disks(asked: Asked) -> str | None:
    if asked.chose("flush_policy", "each-append") or not asked.ends_processes:
        return None
    return f"with flush_policy={asked.options['flush_policy']} a server that ends loses what it had acknowledged"


def _because_of_clocks(asked: Asked) -> str | None:
    if not (has_runaway_clocks(asked) and asked.chose("read_mode", "leader-lease")):
        return None
    sets = "+".join(asked.faults)
    return f"with read_mode=leader-lease no leader's lease has a margin for clocks that run as {sets} lets them"
