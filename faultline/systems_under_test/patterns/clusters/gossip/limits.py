"""What `gossip` does not promise: when news arrive."""

from __future__ import annotations

from faultline.harness.promises import Asked

__all__ = ["not_promised"]

_PROMISED = "metadata"


def not_promised(asked: Asked) -> str | None:
    """Why what the workload judges by need not hold, in a clause; None when it must."""
    if "read" in asked.functions and asked.workload != _PROMISED:
        return f"a node answers with what it has heard so far, and only the workload {_PROMISED} waits for the rest"
    return None
