"""The features of the data cluster with a consistent core."""

from __future__ import annotations

import msgspec

from faultline.systems_under_test.reference.leases_and_watches.features import LEASE_FEATURES, WATCH_FEATURES
from faultline.systems_under_test.reference.raft.features import (
    CLIENT_FEATURES,
    ELECTION_FEATURES,
    LOG_FEATURES,
    SESSION_FEATURES,
)
from faultline.systems_under_test.system import Feature

__all__ = ["FEATURES"]

_OF_THE_CORE = (
    *ELECTION_FEATURES,
    *LOG_FEATURES,
    *SESSION_FEATURES,
    *CLIENT_FEATURES,
    *LEASE_FEATURES,
    *WATCH_FEATURES,
)

FEATURES = (
    Feature("table-claimed", "a controller took the partition table over", essential=True),
    Feature("another-controller-elected", "a candidate found that another is controller"),
    Feature("controller-deposed", "a controller found that its lease is over"),
    Feature("leadership-handed-over", "a leader resigned, and another replica took its partition"),
    Feature("late-wish-ignored", "the controller ignored a late wish of a former leader"),
    Feature("table-store-failed", "the controller could not store its table in the core"),
    Feature("in-sync-change-asked", "a leader asked for other replicas to count as in sync"),
    Feature("replica-sent-again", "a leader sent a replica its whole content again"),
    Feature("replica-has-a-gap", "a replica was sent a write that does not follow its last one"),
    Feature("former-leader-gave-way", "a leader took the copy of a later one, and led no longer"),
    Feature("former-leader-refused", "a replica refused a message of a former leader"),
    Feature("not-the-leader-refused", "a node refused a request for a partition that it does not lead"),
    Feature("table-read-in-the-core", "a client read the table in the core", needs={"table_source": "core"}),
    Feature("client-refused", "a client learned that it asked the wrong node"),
    Feature("client-told-the-leader", "a client was told the leader of the partition"),
    Feature("torn-tail-dropped", "a server of the core found the end of its log torn, and dropped it"),
    *(msgspec.structs.replace(feature, needs={}, unless={}) for feature in _OF_THE_CORE),
)
"""The states and steps that runs can reach, those of the core included."""
