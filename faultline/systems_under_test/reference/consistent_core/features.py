"""The features of `consistent-core`."""

from __future__ import annotations

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
_COLLECTING = {"election": "collecting"}
_CHANNEL = {"wire": "channel"}

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
    Feature("entries-stamped-anew", "a new leader stamped entries of before with its generation", needs=_COLLECTING),
    Feature("collected-entries-differed", "a new leader collected two entries for one index", needs=_COLLECTING),
    Feature("follower-brought-in-line", "a follower took over what its leader had collected", needs=_COLLECTING),
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

_WIRE = (
    Feature("channel-reconnected", "a channel went on over another connection", needs=_CHANNEL),
    Feature("connection-reset", "a connection ended, as bytes of it were lost", needs=_CHANNEL),
    Feature("batch-sent", "several requests went over a channel as one", needs=_CHANNEL),
    Feature("pipeline-full", "requests waited, as many as allowed were in flight", needs=_CHANNEL),
    Feature("call-lost-on-the-wire", "a caller was told that its request was lost", needs=_CHANNEL),
)

FEATURES = (
    *ELECTION_FEATURES,
    *LOG_FEATURES,
    *SESSION_FEATURES,
    *CLIENT_FEATURES,
    *_OTHER_LOGS_AND_ELECTIONS,
    *_WIRE,
)
"""All that a consistent core can enter."""
