"""The features of the store of fixed partitions."""

from __future__ import annotations

import msgspec

from faultline.systems_under_test.reference.raft.features import ELECTION_FEATURES, LOG_FEATURES
from faultline.systems_under_test.system import Feature

__all__ = ["FEATURES"]

FEATURES = (
    Feature("member-failed", "the coordinator took a silent member for failed"),
    Feature("failed-member-is-back", "a member that was taken for failed is heard again"),
    Feature("too-few-members-to-assign", "the coordinator waited for more members"),
    Feature("coordinator-looked-for", "a member looked for another coordinator"),
    Feature("partition-reassigned", "a partition that was never served was given to another member"),
    Feature("migration-cancelled", "a move to a dead member was given up"),
    Feature("not-hosted-refused", "a member refused a request for a partition that it does not have"),
    Feature("write-refused-while-migrating", "a write was refused while its partition moved"),
    Feature("late-move-ignored", "a member was sent a partition again that it knows already"),
    Feature("late-host-partition-ignored", "a member ignored an order that was overtaken"),
    Feature("hosts-already", "a member was told again to host a partition"),
    Feature("control-message-repeated", "a message between members was sent again"),
    Feature("log-compacted", "a member replaced its log by a snapshot"),
    Feature("duplicate-answered", "a request that had been executed was answered again, and not executed again"),
    Feature("client-refused", "a client learned that it asked the wrong member"),
    Feature("client-retried", "a client asked again, as it was not answered"),
    Feature("torn-tail-dropped", "a member found the end of its log torn, and dropped it"),
    *(msgspec.structs.replace(feature, needs={}) for feature in (*ELECTION_FEATURES, *LOG_FEATURES)),
)
"""The states and steps that runs can reach, those of the coordinators included."""
