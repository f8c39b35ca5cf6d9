"""What `emergent-leader` does not promise: one group that serves, when joiners give up or half the nodes are enough."""

from __future__ import annotations

from faultline.harness.promises import Asked

__all__ = ["not_promised"]


def not_promised(asked: Asked) -> str | None:
    """Why what the workload judges by need not hold, in a clause; None when it must."""
    if asked.number("join_attempts"):
        return f"a joiner gives up for good after join_attempts={asked.number('join_attempts')}"
    minimum = asked.number("minimum")
    if minimum > asked.nodes:
        return f"clients are always refused, as there are only {asked.nodes} nodes, below minimum={minimum}"
    if minimum and 2 * minimum <= asked.nodes:
        return f"with minimum={minimum} two groups of {asked.nodes} nodes may both serve"
    return None
