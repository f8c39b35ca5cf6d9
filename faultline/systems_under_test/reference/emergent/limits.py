"""The limits of the promise of `emergent-leader`: joiners that give up, and a minimum of half the nodes."""

from __future__ import annotations

from faultline.harness.promises import Asked
from faultline.systems_under_test.patterns.data_replication.quorum import majority

__all__ = ["not_promised"]

_ROUND_MS_MAX = 100
"""The longest round of a seed's questions with which a cluster has formed when faults begin."""


def not_promised(asked: Asked) -> str | None:
    """Return in a clause why the claim of the workload need not hold; None when it must."""
    if asked.number("join_attempts"):
        return f"a joiner gives up for good after join_attempts={asked.number('join_attempts')}"
    minimum = asked.number("minimum")
    if minimum > asked.nodes:
        return f"clients are always refused, as there are only {asked.nodes} nodes, below minimum={minimum}"
    if minimum and 2 * minimum <= asked.nodes:
        return f"with minimum={minimum} two groups of {asked.nodes} nodes may both serve"
    others = max(1, min(asked.number("seeds"), asked.nodes) - 1)
    if not minimum and asked.fault_kinds and others * asked.number("join_timeout_ms") > _ROUND_MS_MAX:
        return (
            f"with join_timeout_ms={asked.options['join_timeout_ms']} and seeds={asked.options['seeds']} faults begin"
            " before all have met, and a seed that founds a group alone serves it, unless"
            f" minimum={majority(asked.nodes)}"
        )
    return None
