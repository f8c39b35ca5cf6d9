"""The features of PostgreSQL, alone and under Patroni, as their logs tell them."""

from __future__ import annotations

from faultline.harness.feature import Feature

__all__ = ["FEATURES", "PATRONI_FEATURES"]

FEATURES = (
    Feature("recovered-after-crash", "a server replayed its log, as it had not been shut down", log="redo starts at "),
    Feature("replication-resumed", "a standby followed its primary again", log="started streaming WAL from primary"),
)
"""Of a primary whose standbys are never promoted."""

PATRONI_FEATURES = (
    Feature(
        "leader-changed",
        "a server became primary",
        essential=True,
        faults=("fail-over",),
        log="promoted self to leader",
    ),
    Feature("leader-demoted", "a primary gave its role up", log="INFO: demot(?:ing|ed) self"),
    Feature("timeline-switched", "a standby followed a new primary's timeline", log=r"new target timeline is \d+"),
    Feature("rewound", "a former primary undid what the new one does not have", log="running pg_rewind from "),
    *FEATURES,
)
"""Of servers among which Patroni chooses the primary."""
