"""The features of ZooKeeper, as its members' logs tell them."""

from __future__ import annotations

from faultline.harness.feature import Feature

__all__ = ["FEATURES"]

FEATURES = (
    Feature(
        "leader-changed",
        "a member became leader",
        essential=True,
        faults=("leadership", "fail-over"),
        log="LEADING - LEADER ELECTION TOOK",
    ),
    Feature("session-expired", "a session without a sign of life was ended", log="Expiring session 0x"),
    Feature("resynchronised-partly", "a follower was sent what it had missed", log="Getting a diff from the leader 0x"),
    Feature(
        "snapshot-installed",
        "a follower was sent a snapshot of the state",
        log="Getting a snapshot from leader 0x",
    ),
    Feature(
        "acknowledgement-refused",
        "a leader refused what a joining follower had acknowledged too early (ZOOKEEPER-4685)",
        log="NEWLEADER ACK from sid",
    ),
    Feature("entries-truncated", "a follower cut its log back to its leader's", log="Truncating log to get in sync"),
    Feature("snapshot-taken", "a member wrote a snapshot of its state", log="Snapshotting: 0x"),
)
"""Lines of version 3.6 and later."""
