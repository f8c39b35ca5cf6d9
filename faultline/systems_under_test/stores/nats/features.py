"""The features of NATS JetStream, as its members' logs tell them."""

from __future__ import annotations

from faultline.harness.feature import Feature

__all__ = ["FEATURES"]

FEATURES = (
    Feature("leader-changed", "a member became leader of a stream", log="JetStream cluster new stream leader for "),
    Feature(
        "metadata-leader-changed",
        "a member became leader of the metadata",
        log="Self is new JetStream cluster metadata leader",
    ),
    Feature(
        "metadata-leader-lost",
        "a member noticed that the metadata has no leader",
        log="JetStream cluster no metadata leader",
    ),
    Feature("quorum-lost", "the leader of a stream reached no majority", log="has NO quorum"),
    Feature(
        "resynchronised",
        "a member was sent what it had missed of a stream",
        log="Catchup for stream '.*' complete",
    ),
)
"""Lines of version 2.9 and later."""
