"""The features of `consistent-core`."""

from __future__ import annotations

from faultline.systems_under_test.reference.leases_and_watches.features import LEASE_FEATURES, WATCH_FEATURES
from faultline.systems_under_test.reference.raft.features import (
    CLIENT_FEATURES,
    ELECTION_FEATURES,
    LOG_FEATURES,
    SESSION_FEATURES,
)
from faultline.systems_under_test.system import Feature

__all__ = ["FEATURES"]

_ZAB = {"election": "zab"}
_STORE = {"election": "external-store"}
_FOLLOWERS = {"read_from": "leader"}

_OTHER_LOGS_AND_ELECTIONS = (
    Feature("commands-batched", "a leader appended several commands together", unless={"batch_linger_ms": "0"}),
    Feature("torn-tail-dropped", "a server found the end of its log torn, and dropped it"),
    Feature("fetch-diverged", "a fetching follower was told where its log differs", needs={"replication": "pull"}),
    Feature("old-round-vote-answered", "a vote of an earlier round was answered with the present one", needs=_ZAB),
    Feature("settled-leader-joined", "a server joined a leader that a majority follows already", needs=_ZAB),
    Feature(
        "promise-of-a-longer-log-not-counted",
        "a new leader did not count one who has more than it",
        unless={"election": "raft"},
    ),
    Feature("leader-key-expired", "the store dropped the key of a leader that had not refreshed it", needs=_STORE),
    Feature("leader-key-lost", "a leader was told that the key is no longer its own", needs=_STORE),
    Feature("leader-key-not-refreshed", "a leader gave up, as it could not refresh its key", needs=_STORE),
    Feature("leader-key-given-back", "a leader that no majority accepts gave its key back", needs=_STORE),
    Feature("leader-key-gone-when-read", "the key had an owner, and none when it was read", needs=_STORE),
    Feature(
        "own-leader-key-of-before-given-back", "a server found a key of its own, from before it restarted", needs=_STORE
    ),
    Feature(
        "lease-expired-read-refused",
        "a leader did not answer a read, as its lease was over",
        needs={"read_mode": "leader-lease"},
    ),
    Feature("request-forwarded", "a server passed a request on to its leader", needs={"find_leader": "forward"}),
)

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
        "follower-read-refused-version-compacted",
        "a follower refused a read of a version that it no longer keeps",
        needs={"store": "versioned"},
        unless=_FOLLOWERS,
    ),
)

FEATURES = (
    *ELECTION_FEATURES,
    *LOG_FEATURES,
    *SESSION_FEATURES,
    *CLIENT_FEATURES,
    *_OTHER_LOGS_AND_ELECTIONS,
    *_FOLLOWER_READS,
    *LEASE_FEATURES,
    *WATCH_FEATURES,
)
"""All that a consistent core can enter."""
