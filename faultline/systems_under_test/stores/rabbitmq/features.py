"""The features of RabbitMQ, as its members' logs tell them."""

from __future__ import annotations

from faultline.harness.feature import Feature

__all__ = ["FEATURES"]

FEATURES = (
    Feature("leader-changed", "a member became leader of a queue", log=r"candidate -> leader in term: \d+"),
    Feature(
        "leader-stepped-down",
        "a leader of a queue learned that there is a later one",
        log="leader -> follower in term",
    ),
    Feature("member-lost", "a member took another for down", log="rabbit on node '.*' down"),
    Feature("partition-noticed", "members noticed that not all see the same ones", log="Partial partition detected"),
    Feature(
        "paused-in-minority",
        "a member paused, as it saw too few others",
        needs={"partition_handling": "pause_minority"},
        log="Cluster minority/secondary status detected",
    ),
)
"""Lines of version 3.9 and later."""
