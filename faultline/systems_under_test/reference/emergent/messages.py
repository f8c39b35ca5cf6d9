"""The messages of `emergent-leader`, and what its nodes report about themselves.

Marks that nodes report with `sometimes`:

| mark | reached when |
|---|---|
| member-joined | the coordinator admitted a new member |
| member-rejoined | a member that had failed, or an earlier start of it, came back |
| members-failed | a coordinator marked members as failed |
| coordinator-claimed | the next oldest took over |
| update-repaired | a heartbeat showed an old version and was answered with the membership |
| removal-learned | a node was told that it had been removed, and joined anew |
| groups-merged | a group dissolved into another one, or prevailed over one that listed the same members |
| not-enough-members | a client was refused by a group that is too small |
| slept-through | a check came so late that nobody was judged |
"""

from __future__ import annotations

from typing import Any

import msgspec

from faultline.systems_under_test.patterns.cluster_management.emergent_leader import Member, Membership

__all__ = [
    "MESSAGES",
    "Heartbeat",
    "HeartbeatRequest",
    "JoinRequest",
    "JoinResponse",
    "MembershipAcknowledged",
    "MembershipInstalled",
    "MembershipMade",
    "MergeInto",
    "NodeStarted",
    "Removed",
    "SilenceChecked",
    "SilenceReport",
    "SplitBrainJoin",
    "SplitBrainMerge",
    "UpdateMembership",
    "ViewRequest",
    "ViewResponse",
]


class JoinRequest(msgspec.Struct, frozen=True, tag="join-request"):
    """Admit me; `joiner` is who asks, since seeds pass this on to the coordinator."""

    joiner: str
    instance: int
    version_seen: int
    largest_seen: int


class JoinResponse(msgspec.Struct, frozen=True, tag="join-response"):
    """You are a member now."""

    instance: int
    membership: Membership


class UpdateMembership(msgspec.Struct, frozen=True, tag="update-membership"):
    """The coordinator's new membership."""

    membership: Membership


class MembershipAcknowledged(msgspec.Struct, frozen=True, tag="membership-acknowledged"):
    """I have come to that version."""

    version: int


class Heartbeat(msgspec.Struct, frozen=True, tag="heartbeat"):
    """I live, as that start of my process, and have come to that version of that coordinator."""

    instance: int
    version: int
    coordinator: str


class HeartbeatRequest(msgspec.Struct, frozen=True, tag="heartbeat-request"):
    """In the ring: are you there? Whoever should hear you is silent."""


class Removed(msgspec.Struct, frozen=True, tag="removed"):
    """You are no member of this cluster any more."""

    membership: Membership


class SilenceReport(msgspec.Struct, frozen=True, tag="silence-report"):
    """In the ring: these members are silent."""

    silent: tuple[str, ...]


class SplitBrainJoin(msgspec.Struct, frozen=True, tag="split-brain-join"):
    """Are you there, with a group of your own? Mine has so many members and this coordinator."""

    coordinator: Member
    count: int


class SplitBrainMerge(msgspec.Struct, frozen=True, tag="split-brain-merge"):
    """Yes, and mine is the one that stays: dissolve yours into it."""

    coordinator: Member
    count: int


class MergeInto(msgspec.Struct, frozen=True, tag="merge-into"):
    """The coordinator to its members: this cluster dissolves, join `target`."""

    target: str


class ViewRequest(msgspec.Struct, frozen=True, tag="view-request"):
    """A client asks who belongs to the cluster."""

    request_number: int


class ViewResponse(msgspec.Struct, frozen=True, tag="view-response"):
    """The answer to a client: `version`, `coordinator`, `live`; or the code of an error."""

    request_number: int
    view: dict[str, Any] | None = None
    error: str | None = None


MESSAGES: tuple[type[msgspec.Struct], ...] = (
    JoinRequest,
    JoinResponse,
    UpdateMembership,
    MembershipAcknowledged,
    Heartbeat,
    HeartbeatRequest,
    Removed,
    SilenceReport,
    SplitBrainJoin,
    SplitBrainMerge,
    MergeInto,
    ViewRequest,
    ViewResponse,
)
"""Every message that crosses the network."""


class NodeStarted(msgspec.Struct, frozen=True):
    """Trace: a new start of the process, which belongs to no cluster."""

    instance: int


class MembershipMade(msgspec.Struct, frozen=True):
    """Trace: this node made a version; `before` is the membership it changed, None when it founded a cluster."""

    membership: Membership
    before: Membership | None
    silent: tuple[str, ...] = ()


class SilenceChecked(msgspec.Struct, frozen=True):
    """Trace: the node looked who is silent, as it does every heartbeat interval."""


class MembershipInstalled(msgspec.Struct, frozen=True):
    """Trace: the node follows this membership now; `joined` when it belonged to no cluster before."""

    membership: Membership
    joined: bool
