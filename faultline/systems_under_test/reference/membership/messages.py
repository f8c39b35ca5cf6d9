"""The messages of members, and the events that they report.

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
| slept-through | a check came so late that no member was judged |
"""

from __future__ import annotations

import msgspec

from faultline.systems_under_test.patterns.cluster_management.emergent_leader import Member, Membership

__all__ = [
    "MEMBER_MESSAGES",
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
]


class JoinRequest(msgspec.Struct, frozen=True, tag="join-request"):
    """A request to be admitted; it names its `joiner`, since seeds pass it on to the coordinator."""

    joiner: str
    instance: int
    version_seen: int
    largest_seen: int


class JoinResponse(msgspec.Struct, frozen=True, tag="join-response"):
    """The membership that admits the joiner."""

    instance: int
    membership: Membership


class UpdateMembership(msgspec.Struct, frozen=True, tag="update-membership"):
    """The coordinator's new membership."""

    membership: Membership


class MembershipAcknowledged(msgspec.Struct, frozen=True, tag="membership-acknowledged"):
    """The sender has come to `version`."""

    version: int


class Heartbeat(msgspec.Struct, frozen=True, tag="heartbeat"):
    """A sign of life: the start of the sender's process, and the version and coordinator that it follows."""

    instance: int
    version: int
    coordinator: str


class HeartbeatRequest(msgspec.Struct, frozen=True, tag="heartbeat-request"):
    """In the ring: a question for a heartbeat, sent when the member that should hear it is silent."""


class Removed(msgspec.Struct, frozen=True, tag="removed"):
    """The receiver is no member of this cluster any more."""

    membership: Membership


class SilenceReport(msgspec.Struct, frozen=True, tag="silence-report"):
    """In the ring: the members that the sender finds silent."""

    silent: tuple[str, ...]


class SplitBrainJoin(msgspec.Struct, frozen=True, tag="split-brain-join"):
    """A coordinator's search for other groups; its own has `count` members."""

    coordinator: Member
    count: int


class SplitBrainMerge(msgspec.Struct, frozen=True, tag="split-brain-merge"):
    """The answer of a group that stays: the searching one is to dissolve into it."""

    coordinator: Member
    count: int


class MergeInto(msgspec.Struct, frozen=True, tag="merge-into"):
    """A coordinator's order to its members: their group dissolves, and they join `target`."""

    target: str


MEMBER_MESSAGES: tuple[type[msgspec.Struct], ...] = (
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
)
"""Every message that members send each other."""


class NodeStarted(msgspec.Struct, frozen=True):
    """Trace: a new start of the process, which belongs to no cluster."""

    instance: int


class MembershipMade(msgspec.Struct, frozen=True):
    """Trace: this node made a version; `before` is the membership it changed, None when it founded a cluster."""

    membership: Membership
    before: Membership | None
    silent: tuple[str, ...] = ()


class SilenceChecked(msgspec.Struct, frozen=True):
    """Trace: the node looked for silent members, as it does every heartbeat interval.

    A look that comes `asleep_us` or more after the last one says that the node itself was away.
    """

    asleep_us: int


class MembershipInstalled(msgspec.Struct, frozen=True):
    """Trace: the node follows this membership now; `joined` when it belonged to no cluster before."""

    membership: Membership
    joined: bool
