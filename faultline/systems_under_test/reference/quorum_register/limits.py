"""The limits of the promise of `quorum-register`: it needs the write-back, and quorums that overlap."""

from __future__ import annotations

from faultline.harness.promises import Asked
from faultline.systems_under_test.patterns.data_replication.quorum import majority

__all__ = ["not_promised"]

_SESSIONS = frozenset({"read-your-writes", "bounded-staleness"})
"""Workloads for which overlapping quorums suffice: all reads that begin after the end of a write see it."""


def not_promised(asked: Asked) -> str | None:
    """Return in a clause why the claim of the workload need not hold; None when it must."""
    write = asked.number("write_quorum") or majority(asked.nodes)
    read = asked.number("read_quorum") or majority(asked.nodes)
    if write + read <= asked.nodes:
        return f"{write} replicas for a write and {read} for a read, of {asked.nodes}, need not have one in common"
    if not asked.chose("write_back", "on") and asked.workload not in _SESSIONS:
        return f"with write_back={asked.options['write_back']} a read may see less than a read before it"
    return None
