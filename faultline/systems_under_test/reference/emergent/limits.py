"""What `emergent-leader` does not promise: one group that serves, when joiners give up or half the nodes are enough."""

from __future__ import annotations

from faultline.harness.promises import Asked
from faultline.systems_under_test.patterns.data_replication.quorum import majority

__all__ = ["not_promised"]

_JOIN_TIMEOUT_MS_MAX = 100
"""With a few such waits a cluster has formed when the faults of a simulated run begin."""


def not_promised(asked: Asked) -> str | None:
    """Why what the workload judges by need not hold, in a clause; None when it must."""
    if asked.number("join_attempts"):
        return f"a joiner gives up for good after join_attempts={asked.number('join_attempts')}"
    minimum = asked.number("minimum")
    if minimum > asked.nodes:
        return f"clients are always refused, as there are only {asked.nodes} nodes, below minimum={minimum}"
    if minimum and 2 * minimum <= asked.nodes:
        return f"with minimum={minimum} two groups of {asked.nodes} nodes may both serve"
    if not minimum and asked.fault_kinds and asked.number("join_timeout_ms") > _JOIN_TIMEOUT_MS_MAX:
        return (
            f"with join_timeout_ms={asked.options['join_timeout_ms']} faults begin before all have met, and a seed that"
            f" founds a group alone serves it, unless minimum={majority(asked.nodes)}"
        )
    return None
