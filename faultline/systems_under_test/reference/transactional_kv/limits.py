"""The limits of what `transactional-kv` promises: less isolation, and reads of the past, give strictness up."""

from __future__ import annotations

from faultline.harness.promises import Asked
from faultline.systems_under_test.reference.shared.clock_faults import has_runaway_clocks

__all__ = ["not_promised"]

_STRICT = frozenset({"txn-append", "txn-register", "write-skew"})
_SERIALIZABLE = _STRICT | {"booking"}


def not_promised(asked: Asked) -> str | None:
    """Return a clause that says why the workload's checks need not hold; None when they must."""
    if asked.chose("isolation", "snapshot") and asked.workload in _SERIALIZABLE:
        return "with isolation=snapshot two transactions may each miss what the other writes"
    if asked.chose("read_only", "snapshot") and asked.workload in _STRICT and not asked.chose("clock", "oracle"):
        return "with read_only=snapshot a read at the time of a slow clock misses what is newest, unless clock=oracle"
    if has_runaway_clocks(asked) and not asked.chose("replication_factor", "1"):
        return f"no leader's lease has a margin for clocks that run as {'+'.join(asked.faults)} lets them"
    return None
