"""What `gossip` does not promise: when news arrive."""

from __future__ import annotations

from faultline.harness.promises import Asked

__all__ = ["not_promised"]

_PROMISED = "metadata"
_INTERVAL_MS_MAX = 200
"""News need some rounds to be everywhere, and what is read half a second after the heal is judged."""


def not_promised(asked: Asked) -> str | None:
    """Why what the workload judges by need not hold, in a clause; None when it must."""
    if asked.number("gossip_interval_ms") > _INTERVAL_MS_MAX:
        return (
            f"with gossip_interval_ms={asked.options['gossip_interval_ms']} news need longer than a run waits for them"
        )
    if "read" in asked.functions and asked.workload != _PROMISED:
        return f"a node answers with what it has heard so far, and only the workload {_PROMISED} waits for the rest"
    return None
