"""What `partitioned-kv` does not promise: to serve before enough members are there."""

from __future__ import annotations

from faultline.harness.promises import Asked

__all__ = ["not_promised"]


def not_promised(asked: Asked) -> str | None:
    """Why what the workload judges by need not hold, in a clause; None when it must."""
    late, least = asked.number("late_nodes"), asked.number("minimum_cluster_size")
    if late and asked.nodes - late < least:
        return f"with late_nodes={late} of {asked.nodes} fewer than minimum_cluster_size={least} are there at first"
    return None
