"""The limits of what `partitioned-kv` promises: it does not serve before it has enough members."""

from __future__ import annotations

from faultline.harness.promises import Asked

__all__ = ["not_promised"]


def not_promised(asked: Asked) -> str | None:
    """Return a clause that says why the workload's checks need not hold; None when they must."""
    late, least = asked.number("late_nodes"), asked.number("minimum_cluster_size")
    if late and asked.nodes - late < least:
        return f"with late_nodes={late} of {asked.nodes} fewer than minimum_cluster_size={least} are there at first"
    return None
