"""The features of `follower-reads`."""

from __future__ import annotations

from faultline.systems_under_test.reference.raft.features import KERNEL_FEATURES
from faultline.systems_under_test.system import Feature

__all__ = ["FEATURES"]

_FOLLOWERS = {"read_from": "leader"}

_FOLLOWER_READS = (
    Feature("follower-read-served", "a follower answered a read", unless=_FOLLOWERS),
    Feature("follower-read-waited", "a follower held a read back until it had what was asked for", unless=_FOLLOWERS),
    Feature(
        "follower-read-refused-leader-not-heard",
        "a follower refused a read, as it had not heard its leader",
        unless=_FOLLOWERS,
    ),
    Feature(
        "follower-read-refused-too-stale", "a follower refused a read, as it lags behind the bound", unless=_FOLLOWERS
    ),
    Feature(
        "follower-read-refused-follower-wait-timeout",
        "a follower gave up waiting for what a read asks for",
        unless=_FOLLOWERS,
    ),
    Feature(
        "follower-read-refused-offset-not-available",
        "a follower refused a read of what it has and has not applied",
        needs={"follower_reads": "no-wait"},
        unless=_FOLLOWERS,
    ),
    Feature(
        "follower-read-refused-offset-out-of-range",
        "a follower refused a read of what it has not got yet",
        needs={"follower_reads": "no-wait"},
        unless=_FOLLOWERS,
    ),
    Feature(
        "follower-read-refused-not-closed",
        "a follower refused a read at a time that is not closed yet",
        needs={"follower_reads": "closed"},
        unless=_FOLLOWERS,
    ),
    Feature(
        "follower-read-refused-version-compacted",
        "a follower refused a read of a version that it no longer keeps",
        needs={"store": "versioned"},
        unless=_FOLLOWERS,
    ),
)

FEATURES: tuple[Feature, ...] = (*KERNEL_FEATURES, *_FOLLOWER_READS)
"""The states and steps that runs can reach."""
