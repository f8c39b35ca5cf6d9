"""The limits of the promise of `gossip`: it does not say when news arrive."""

from __future__ import annotations

from faultline.harness.promises import Asked

__all__ = ["not_promised"]

_PROMISED = "metadata"
_INTERVAL_MS_MAX = 200
"""News need some rounds to reach all nodes, and reads from half a second after the heal on are judged."""


def not_promised(asked: Asked) -> str | None:
    """Return in a clause why the claim of the workload need not hold; None when it must."""
    if asked.number("gossip_interval_ms") > _INTERVAL_MS_MAX:
        return (
            f"with gossip_interval_ms={asked.options['gossip_interval_ms']} news need longer than a run waits for them"
        )
    if "read" in asked.functions and asked.workload != _PROMISED:
        return f"a node answers with what it has heard so far, and only the workload {_PROMISED} waits for the rest"
    return None
