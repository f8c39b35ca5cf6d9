"""The limits of `consistent-core`: the options and faults under which a workload's promise need not hold."""

from __future__ import annotations

from faultline.harness.promises import Asked
from faultline.systems_under_test.reference.shared.clock_faults import has_runaway_clocks

__all__ = ["not_promised"]

_READ_FROM_FOLLOWERS = {
    "plain": frozenset[str](),
    "bounded": frozenset({"bounded-staleness"}),
    "stamped": frozenset({"read-your-writes"}),
    "session": frozenset({"follower-reads", "read-your-writes"}),
    "at-stamp": frozenset({"follower-reads", "read-your-writes"}),
    "no-wait": frozenset({"follower-reads", "read-your-writes"}),
}
"""The workloads for which reads from followers suffice, by the option `follower_reads`; `read-index` is for all."""

_DRIFT_MARGIN_PERCENT = 19
"""The share of a lease that an owner must leave unused when its clock and the leader's are a tenth off, each its own
way."""


def not_promised(asked: Asked) -> str | None:
    """Why what the workload judges by need not hold, in a clause; None when it must."""
    return _because_of_reads(asked) or _because_of_disks(asked) or _because_of_clocks(asked) or _because_of_locks(asked)


def _because_of_reads(asked: Asked) -> str | None:
    if "read" not in asked.functions:
        return None
    if asked.chose("read_mode", "stale"):
        return "with read_mode=stale any server answers reads at once, however far behind it is"
    if asked.chose("read_from", "leader"):
        return None
    mode = asked.options["follower_reads"]
    if mode == "read-index" or asked.workload in _READ_FROM_FOLLOWERS[mode]:
        return None
    return f"with read_from={asked.options['read_from']} and follower_reads={mode} followers answer, and may be behind"


def _because_of_disks(asked: Asked) -> str | None:
    if asked.chose("flush_policy", "each-append") or asked.fault_kinds.isdisjoint({"kill", "power-off"}):
        return None
    return f"with flush_policy={asked.options['flush_policy']} a server that is killed loses what it had acknowledged"


def _because_of_clocks(asked: Asked) -> str | None:
    if not has_runaway_clocks(asked):
        return None
    for option, value, what in (
        ("read_mode", "leader-lease", "leader's lease"),
        ("services", "on", "lease"),
        ("follower_reads", "bounded", "bound on the age of an answer"),
    ):
        if asked.chose(option, value):
            return f"with {option}={value} no {what} has a margin for clocks that run as {_sets(asked)} lets them"
    return None


def _sets(asked: Asked) -> str:
    return "+".join(asked.faults)


def _because_of_locks(asked: Asked) -> str | None:
    if asked.workload != "locks":
        return None
    if asked.chose("fencing", "off"):
        return "with fencing=off a guarded resource takes the writes of former owners"
    margin = asked.number("lease_margin_percent")
    if "clock-drift" in asked.fault_kinds and margin < _DRIFT_MARGIN_PERCENT:
        return f"a margin of lease_margin_percent={margin} is too small for clocks that drift by a tenth"
    return None
