"""The features of etcd, as its members' logs tell them."""

from __future__ import annotations

from faultline.harness.feature import Feature

__all__ = ["FEATURES"]

FEATURES = (
    Feature(
        "leader-changed",
        "a member became leader",
        essential=True,
        faults=("leadership", "fail-over"),
        log=r"became leader at term \d+",
    ),
    Feature(
        "leader-lost",
        "a member noticed that there is no leader",
        log=r"raft\.node: \w+ lost leader \w+ at term \d+",
    ),
    Feature("snapshot-taken", "a member wrote a snapshot of its state", log=r'"msg":"saved snapshot"'),
    Feature("snapshot-installed", "a member that lacked too much was sent a snapshot", log=r'"msg":"applied snapshot"'),
    Feature("history-compacted", "old revisions were discarded", log="finished scheduled compaction"),
)
"""Lines of version 3.4 and later."""
