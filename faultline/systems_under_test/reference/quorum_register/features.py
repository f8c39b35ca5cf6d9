"""The features of the leaderless register."""

from __future__ import annotations

from faultline.systems_under_test.system import Feature

__all__ = ["FEATURES"]

FEATURES = (
    Feature("replicas-disagreed", "a reader was given different copies", essential=True, faults=("partition", "kill")),
    Feature("write-back-needed", "a reader stored what it found before it answered", unless={"write_back": "off"}),
    Feature("no-quorum-to-ask", "too few replicas answered a question"),
    Feature("no-quorum-to-store", "too few replicas stored a copy"),
    Feature("older-copy-refused", "a replica kept its newer copy"),
    Feature("client-retried", "a client asked again, as it was not answered"),
)
"""Every mark that nodes and clients can report."""
