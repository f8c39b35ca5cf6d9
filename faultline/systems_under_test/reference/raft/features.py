"""The features that every system on a Raft server has: those of its elections, its log, its sessions and clients."""

from __future__ import annotations

import msgspec

from faultline.systems_under_test.system import Feature

__all__ = [
    "CLIENT_FEATURES",
    "ELECTION_FEATURES",
    "KERNEL_FEATURES",
    "LEADER_FAULTS",
    "LOG_FEATURES",
    "SESSION_FEATURES",
]

LEADER_FAULTS = ("partition", "kill", "leadership", "durability", "fail-over")
"""The fault sets under which, over some runs, a leader is bound to be replaced."""

_PRE_VOTE = {"pre_vote": "on"}

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

KERNEL_FEATURES = (
    *(msgspec.structs.replace(feature, needs={}) for feature in ELECTION_FEATURES),
    *LOG_FEATURES,
    *SESSION_FEATURES,
    *CLIENT_FEATURES,
    Feature("torn-tail-dropped", "a server found the end of its log torn, and dropped it"),
)
"""Of a system whose servers elect by votes with pre-vote, send their log and read through a round of heartbeats."""
