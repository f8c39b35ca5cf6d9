"""The features of the transactional store."""

from __future__ import annotations

import msgspec

from faultline.systems_under_test.reference.raft.features import ELECTION_FEATURES, LOG_FEATURES
from faultline.systems_under_test.system import Feature

__all__ = ["FEATURES"]

_ALONE = {"replication_factor": "1"}

FEATURES = (
    Feature("lock-waited-for", "a transaction waited for a lock", unless={"policy": "error"}),
    Feature("lock-wait-ended", "a transaction waited too long for a lock", unless={"policy": "error"}),
    Feature("transaction-wounded", "an older transaction took a lock away", needs={"policy": "wound-wait"}),
    Feature("transaction-tried-again", "a client began its transaction anew"),
    Feature("transaction-timed-out", "a coordinator rolled back a transaction without news for too long"),
    Feature("open-transaction-lost", "a participant had forgotten an open transaction, and refused it"),
    Feature("voted-no", "a participant would not commit"),
    Feature("in-doubt-after-restart", "a participant came back prepared, without the decision"),
    Feature("decision-asked-for", "a participant asked a coordinator what was decided"),
    Feature("presumed-abort", "a coordinator came back without a decision, and rolled back"),
    Feature("snapshot-read-waited", "a read at one time waited for transactions that may commit before it"),
    Feature("time-too-far-ahead", "a node refused a time too far ahead of its clock"),
    Feature("log-compacted", "a node replaced its log by a snapshot", needs=_ALONE),
    Feature("client-retried", "a client asked again, as it was not answered"),
    Feature("group-served-by-new-leader", "a leader of a group served what others had begun", unless=_ALONE),
    Feature("passed-on-to-leader", "a member passed a request on to its group's leader", unless=_ALONE),
    Feature("deposed-leader-held-answers-back", "a leader lost its role before an answer was safe", unless=_ALONE),
    *(msgspec.structs.replace(feature, needs={}, unless=_ALONE) for feature in (*ELECTION_FEATURES, *LOG_FEATURES)),
)
"""The states and steps that runs of the system can reach."""
