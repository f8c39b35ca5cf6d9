"""The messages of clients and servers of a replicated log, and the commands they put into it.

The messages among servers stand beside the patterns they belong to; `MESSAGES` lists all of them.
"""

from __future__ import annotations

from typing import Any

import msgspec

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
from faultline.systems_under_test.reference.shared.key_commands import (
    Command,
    CompareAndSet,
    GetValue,
    SetValue,
)

__all__ = [
    "MESSAGES",
    "ClientCommand",
    "ClientRequest",
    "ClientResponse",
    "Command",
    "CompareAndSet",
    "ExpireLease",
    "ExpireSessions",
    "GetValue",
    "LoggedCommand",
    "RedirectToLeader",
    "RegisterClient",
    "RegisterClientRequest",
    "RegisterClientResponse",
    "SessionHeartbeat",
    "SetValue",
]


class RegisterClient(msgspec.Struct, frozen=True, tag="register-client"):
    """Log entry: open a session whose id is the index of this entry."""


class ClientCommand(msgspec.Struct, frozen=True, tag="client-command", omit_defaults=True):
    """Log entry: request `request_number` of client `client_id`, which has an answer to `acknowledged`."""

    client_id: int
    request_number: int
    command: Command
    acknowledged: int = 0


class ExpireSessions(msgspec.Struct, frozen=True, tag="expire-sessions"):
    """Log entry: the leader has heard nothing of these clients for too long; their sessions end here."""

    client_ids: tuple[int, ...]


class ExpireLease(msgspec.Struct, frozen=True, tag="expire-lease"):
    """Log entry: this incarnation of the lease `name` was not refreshed in time; it ends here, with its keys."""

    name: str
    incarnation: int


LoggedCommand = RegisterClient | ClientCommand | ExpireSessions | ExpireLease


class SessionHeartbeat(msgspec.Struct, frozen=True, tag="session-heartbeat"):
    """A sign of life of a client without a request; servers that do not lead pass it on."""

    client_id: int


class RegisterClientRequest(msgspec.Struct, frozen=True, tag="register-client-request"):
    """A client asks for an id."""

    correlation_id: int


class RegisterClientResponse(msgspec.Struct, frozen=True, tag="register-client-response"):
    """The answer to a registration: the id of a session that is in the log."""

    correlation_id: int
    client_id: int


class ClientRequest(msgspec.Struct, frozen=True, tag="client-request", omit_defaults=True):
    """One request of a registered client; a retry carries the same number.

    `acknowledged` is the last request it has an answer to (discard policy `acknowledged`), else 0.
    """

    client_id: int
    request_number: int
    command: Command
    acknowledged: int = 0


class ClientResponse(msgspec.Struct, frozen=True, tag="client-response"):
    """The answer to a request: a value, or the code of an error. Saved in the session as it is.

    `version` is that of the state it was read from, or of what it wrote; 0 from a store that keeps none.
    """

    request_number: int
    error: str | None = None
    value: Any = None
    version: int = 0


class RedirectToLeader(msgspec.Struct, frozen=True, tag="redirect-to-leader"):
    """This server does not lead; the client asks `leader_id` next, or any server when it is None.

    `correlation_id` is the request number, or the correlation id of a registration. The request may have been executed
    all the same: a server that lost its leadership after it took the request answers with a redirection, too.
    """

    correlation_id: int
    leader_id: str | None


MESSAGES: tuple[type[msgspec.Struct], ...] = (
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
)
"""Every message that crosses the network."""
