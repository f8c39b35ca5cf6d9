"""The limits of `follower-reads`: the options and faults under which a workload's promise need not hold."""

from __future__ import annotations

from faultline.harness.promises import Asked
from faultline.systems_under_test.reference.shared.clock_faults import has_runaway_clocks

__all__ = ["not_promised"]

_OF_SESSIONS = frozenset({"follower-reads", "read-your-writes", "causal-writes", "moved-sessions"})

_ENOUGH_FOR = {
    "plain": frozenset[str](),
    "bounded": frozenset({"bounded-staleness"}),
    "stamped": frozenset({"read-your-writes"}),
    "session": _OF_SESSIONS,
    "at-stamp": frozenset({"follower-reads", "read-your-writes"}),
    "no-wait": _OF_SESSIONS,
    "closed": _OF_SESSIONS,
}
"""The workloads for which reads from followers are enough, by the option `follower_reads`; `read-index` is for all."""


def not_promised(asked: Asked) -> str | None:
    """Return a clause that says why what the workload judges by need not hold; None when it must."""
    return _because_of_reads(asked) or _because_of_clocks(asked)


def _because_of_reads(asked: Asked) -> str | None:
    if "read" not in asked.functions or asked.chose("read_from", "leader"):
        return None
    mode = asked.options["follower_reads"]
    if mode == "read-index" or asked.workload in _ENOUGH_FOR[mode]:
        return None
    return f"with read_from={asked.options['read_from']} and follower_reads={mode} followers answer, and may be behind"


def _because_of_clocks(asked: Asked) -> str | None:
    if not (has_runaway_clocks(asked) and asked.chose("follower_reads", "bounded")):
        return None
    return (
        "with follower_reads=bounded no bound on the age of an answer has a margin for clocks that run as"
        f" {'+'.join(asked.faults)} lets them"
    )
