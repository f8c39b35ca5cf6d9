"""The features of the Paxos store."""

from __future__ import annotations

from faultline.systems_under_test.system import Feature

__all__ = ["FEATURES"]

FEATURES = (
    Feature("promise-refused", "an acceptor would not promise, as it had promised a later proposer"),
    Feature("acceptance-refused", "an acceptor would not accept, as it had promised a later proposer"),
    Feature(
        "accepted-value-adopted",
        "a proposer found a value that may be chosen, and proposed that in place of its own",
        essential=True,
        faults=("partition", "kill", "durability", "retries"),
    ),
    Feature("attempt-superseded-by-commit", "a proposer learned that its version is decided, and began the next"),
    Feature("other-value-finished-first", "a proposer brought the value of another to its end before its own"),
    Feature("phase-timed-out", "a proposer had no quorum in time"),
    Feature("change-given-up", "a proposer gave up after too many attempts"),
    Feature("laggard-caught-up", "a node learned a commit that it had missed from a proposer that builds on it"),
    Feature("client-retried", "a client asked again, as it was not answered"),
)
"""Every mark that nodes and clients can report."""
