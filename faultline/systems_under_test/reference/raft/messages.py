"""Every message that servers of a Raft cluster and their clients exchange, in all variants of elections and logs."""

from __future__ import annotations

import msgspec

from faultline.systems_under_test.patterns.data_replication.collecting_election import CollectedEntries, CollectEntries
from faultline.systems_under_test.patterns.data_replication.generation_agreement import (
    GenerationPromised,
    NewGeneration,
)
from faultline.systems_under_test.patterns.data_replication.leader_key_store import (
    CreateLeaderKey,
    DeleteLeaderKey,
    LeaderKeyCreated,
    LeaderKeyDeleted,
    LeaderKeyRead,
    LeaderKeyRefreshed,
    LeaderKeyWatched,
    ReadLeaderKey,
    RefreshLeaderKey,
    WatchLeaderKey,
)
from faultline.systems_under_test.patterns.data_replication.lone_log import OwnCopyDurable
from faultline.systems_under_test.patterns.data_replication.low_water_mark import StoredByAll
from faultline.systems_under_test.patterns.data_replication.pulled_log import FetchDiverged, FetchRequest, FetchResponse
from faultline.systems_under_test.patterns.data_replication.raft_election import (
    PreVoteRequest,
    PreVoteResponse,
    VoteRequest,
    VoteResponse,
)
from faultline.systems_under_test.patterns.data_replication.replicated_log import (
    ReplicationRequest,
    ReplicationResponse,
)
from faultline.systems_under_test.patterns.data_replication.snapshot_installation import (
    InstallSnapshotRequest,
    InstallSnapshotResponse,
)
from faultline.systems_under_test.patterns.data_replication.zab_election import (
    ElectionNotification,
    FollowerInformation,
)
from faultline.systems_under_test.reference.shared.client_messages import (
    ClientRequest,
    ClientResponse,
    RedirectToLeader,
    RegisterClientRequest,
    RegisterClientResponse,
    SessionHeartbeat,
)

__all__ = ["RAFT_MESSAGES"]

RAFT_MESSAGES: tuple[type[msgspec.Struct], ...] = (
    PreVoteRequest,
    PreVoteResponse,
    VoteRequest,
    VoteResponse,
    ElectionNotification,
    FollowerInformation,
    NewGeneration,
    GenerationPromised,
    WatchLeaderKey,
    LeaderKeyWatched,
    CreateLeaderKey,
    LeaderKeyCreated,
    ReadLeaderKey,
    LeaderKeyRead,
    RefreshLeaderKey,
    LeaderKeyRefreshed,
    DeleteLeaderKey,
    LeaderKeyDeleted,
    ReplicationRequest,
    ReplicationResponse,
    OwnCopyDurable,
    FetchRequest,
    FetchResponse,
    FetchDiverged,
    RegisterClientRequest,
    RegisterClientResponse,
    ClientRequest,
    ClientResponse,
    RedirectToLeader,
    SessionHeartbeat,
    InstallSnapshotRequest,
    InstallSnapshotResponse,
    StoredByAll,
    CollectEntries,
    CollectedEntries,
)
"""Every message that crosses the network."""
