"""The features of Redis, as its servers' and sentinels' logs tell them."""

from __future__ import annotations

from faultline.harness.feature import Feature

__all__ = ["CLUSTER_FEATURES", "SENTINEL_FEATURES"]

_REPLICATION = (
    Feature("resynchronised-fully", "a replica was sent everything", log="Full resync from master: "),
    Feature(
        "resynchronised-partly",
        "a replica was sent what it had missed",
        log="Successful partial resynchronization with master",
    ),
)

SENTINEL_FEATURES = (
    Feature(
        "leader-changed",
        "a sentinel learned that there is another master",
        essential=True,
        faults=("fail-over",),
        log=r"\+switch-master ",
    ),
    Feature("master-down", "a majority of sentinels took the master for down", log=r"\+odown master "),
    Feature("fail-over-abandoned", "a sentinel gave a fail-over up", log="-failover-abort"),
    *_REPLICATION,
)
"""Of masters that sentinels watch; lines of version 5 and later."""

CLUSTER_FEATURES = (
    Feature(
        "leader-changed",
        "a replica was elected master",
        essential=True,
        faults=("fail-over",),
        log="Failover election won: I'm the new master",
    ),
    Feature("master-down", "a majority of masters took another for down", log=r"Marking node \w+ as failing"),
    Feature(
        "refused-while-incomplete",
        "a member refused requests, as slots had no master",
        log="Cluster state changed: fail",
    ),
    *_REPLICATION,
)
"""Of a cluster of masters with slots; lines of version 5 and later."""
