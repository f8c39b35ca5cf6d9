"""The features of the consistent core, and those that systems built on its log and elections have in common with it."""

from __future__ import annotations

from faultline.systems_under_test.system import Feature

__all__ = [
    "CLIENT_FEATURES",
    "ELECTION_FEATURES",
    "FEATURES",
    "LEADER_FAULTS",
    "LEASE_FEATURES",
    "LOG_FEATURES",
    "SESSION_FEATURES",
    "WATCH_FEATURES",
]

LEADER_FAULTS = ("partition", "kill", "leadership", "durability", "fail-over")
"""The fault sets under which, over some runs, a leader is bound to be replaced."""

_PRE_VOTE = {"pre_vote": "on"}
_ZAB = {"election": "zab"}
_STORE = {"election": "external-store"}
_SERVICES = {"services": "on"}
_FOLLOWERS = {"read_from": "leader"}

ELECTION_FEATURES = (
    Feature("leader-elected", "a first leader was elected", essential=True),
    Feature("leader-changed", "another leader took over", essential=True, faults=LEADER_FAULTS),
    Feature("deposed-leader-stepped-down", "a leader learned that there is a later one, and followed it"),
    Feature("leader-stepped-down-without-quorum", "a leader that reached no majority any more gave its role up"),
    Feature("old-generation-request-refused", "a server refused what a leader of before sent"),
    Feature("old-generation-vote-ignored", "a candidate was given a vote for an election that was over"),
    Feature("pre-vote-refused", "a server would not vote, as it hears of a leader", needs=_PRE_VOTE),
    Feature("vote-refused-leader-known", "a server refused a vote, as it had just heard of a leader"),
    Feature("vote-refused-stale-log", "a server refused a vote to a candidate that lacks entries"),
)
"""Of elections by majority, Raft's."""

LOG_FEATURES = (
    Feature("entries-truncated", "a follower cut entries off that conflicted with its leader's"),
    Feature("old-generation-entry-held-back", "a leader did not commit what only earlier leaders had proposed"),
    Feature("in-flight-go-back", "a leader sent again what a follower had not taken in"),
    Feature("requests-in-flight-together", "a leader sent more before a follower had answered"),
    Feature("snapshot-taken", "a server wrote a snapshot of its state"),
    Feature("log-cleaned", "a server removed what it need not keep of its log"),
    Feature("snapshot-installed", "a follower that lacked too much was sent a snapshot, and installed it"),
    Feature("damaged-snapshot-refused", "a follower refused a snapshot that came damaged"),
)
"""Of a replicated log that a leader sends, with snapshots."""

SESSION_FEATURES = (
    Feature("duplicate-answered", "a request that had been executed was answered again, and not executed again"),
    Feature("sessions-expired", "sessions without a sign of life were ended"),
    Feature("expired-session-refused", "a request of an ended session was refused"),
    Feature("discarded-request-refused", "a request was refused of which the answer is no longer kept"),
)

CLIENT_FEATURES = (
    Feature("client-retried", "a client asked again, as it was not answered"),
    Feature("client-redirected", "a client was told who leads"),
    Feature("client-registered-anew", "a client began a new session, as its own had ended"),
)

LEASE_FEATURES = (
    Feature("lease-expired", "a lease ended, as its owner had not refreshed it", needs=_SERVICES),
    Feature("lease-revoked", "an owner gave its lease back", needs=_SERVICES),
    Feature("lease-refreshed", "an owner lengthened its lease", needs=_SERVICES),
    Feature("refresh-refused", "an owner was told that its lease is over", needs=_SERVICES),
    Feature("lease-lost", "an owner found by its own clock that its lease is over", needs=_SERVICES),
    Feature("duplicate-lease-refused-early", "a lease was refused at once, as it is taken", needs=_SERVICES),
    Feature(
        "guarded-write-refused", "the token of a former owner was refused", needs={"services": "on", "fencing": "on"}
    ),
)

WATCH_FEATURES = (
    Feature("watch-set", "a watcher was given the state from which it is told of changes", needs=_SERVICES),
    Feature("watch-resumed", "a watcher went on at another server", needs=_SERVICES),
    Feature("events-replayed", "a watcher was told what it had missed", needs=_SERVICES),
    Feature("watch-batch-missed", "a watcher noticed that events were missing, and asked again", needs=_SERVICES),
    Feature("watch-gap-announced", "a watcher was told that events are no longer kept", needs=_SERVICES),
    Feature("slow-watcher-cancelled", "a watcher was cut off, as it took events too late", needs=_SERVICES),
    Feature("silent-watcher-forgotten", "the watches of a client without a sign of life were dropped", needs=_SERVICES),
)

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
