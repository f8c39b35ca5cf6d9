"""The messages between the nodes of a replicated `transactional-kv`, and the events they report of groups."""

from __future__ import annotations

from typing import Any

import msgspec

from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import (
    Acknowledged,
    CommitTransaction,
    Inquiry,
    PrepareTransaction,
    RollBackTransaction,
    TransactionId,
    Vote,
)
from faultline.systems_under_test.patterns.data_partitioning.transaction_records import Promised
from faultline.systems_under_test.patterns.data_replication.raft_election import (
    PreVoteRequest,
    PreVoteResponse,
    VoteRequest,
    VoteResponse,
)
from faultline.systems_under_test.patterns.data_replication.replication_messages import (
    ReplicationRequest,
    ReplicationResponse,
)
from faultline.systems_under_test.patterns.data_replication.snapshot_installation import (
    InstallSnapshotRequest,
    InstallSnapshotResponse,
)
from faultline.systems_under_test.reference.transactional_kv.messages import OracleTime, OracleTimeRequest
from faultline.systems_under_test.reference.transactions.messages import (
    AddKey,
    AskCommit,
    AskRollback,
    Begin,
    GetInTransaction,
    PutInTransaction,
    ReadAt,
    ReadTime,
)

__all__ = ["GROUP_MESSAGES", "LeadershipEvent", "ReplicaEvent", "ToGroup", "ToReplica", "TookOver", "VoteTaken"]


class ToGroup(msgspec.Struct, frozen=True, tag="to-group"):
    """A message for the leader of `group`, from the group or the client `source`; passed on at most once."""

    group: str
    source: str
    message: (
        Begin
        | AddKey
        | GetInTransaction
        | PutInTransaction
        | AskCommit
        | AskRollback
        | ReadTime
        | ReadAt
        | OracleTimeRequest
        | OracleTime
        | PrepareTransaction
        | Vote
        | CommitTransaction
        | RollBackTransaction
        | Acknowledged
        | Inquiry
    )
    passed_on: bool = False


class ToReplica(msgspec.Struct, frozen=True, tag="to-replica"):
    """A message for one member of `group`: a vote, entries, a part of a snapshot."""

    group: str
    message: (
        PreVoteRequest
        | PreVoteResponse
        | VoteRequest
        | VoteResponse
        | ReplicationRequest
        | ReplicationResponse
        | InstallSnapshotRequest
        | InstallSnapshotResponse
    )


GROUP_MESSAGES: tuple[type[msgspec.Struct], ...] = (ToGroup, ToReplica)
"""Every message that only replication needs."""


class ReplicaEvent(msgspec.Struct, frozen=True):
    """Trace: a member of `group` reported `event`, of the type `kind`, about its election or its log."""

    group: str
    kind: str
    event: Any


class LeadershipEvent(msgspec.Struct, frozen=True):
    """Trace: the leader of `group` in `generation` reported `event`, of the type `kind`."""

    group: str
    generation: int
    kind: str
    event: Any


class VoteTaken(msgspec.Struct, frozen=True):
    """Trace, at a coordinator: the yes of the group `voter` has arrived."""

    id: TransactionId
    voter: str


class TookOver(msgspec.Struct, frozen=True):
    """Trace: a new leader serves its group, with these promises, and knows of these transactions that they ended."""

    promises: list[Promised]
    ended: list[TransactionId]
