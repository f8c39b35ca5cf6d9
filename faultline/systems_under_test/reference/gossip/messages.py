"""The messages of `gossip`, and the events that its nodes report.

Marks that nodes report with `sometimes`:

| mark | reached when |
|---|---|
| own-past-refused | a peer told a restarted node what it had said before |
| generation-replaced | a node was heard of in a higher generation, and its earlier statements were forgotten |
| delta-with-gap-refused | a delta began above what was known, so it could not be taken |
| reply-cut-short | more was new than fits into one reply |
| digests-equal | two nodes found that they know the same |
| node-marked-down | a node took another one for down |
| node-marked-up | a node that had been taken for down was heard of again |
| earlier-life-ignored | a heartbeat came of the time before its node was restarted |
| member-suspected | a member that answered no probe was suspected, or a node was told so |
| suspicion-refuted | a node was told that it is suspected or dead, and contradicted |
"""

from __future__ import annotations

from typing import Any

import msgspec

from faultline.systems_under_test.patterns.cluster_management.gossip_dissemination import Delta
from faultline.systems_under_test.patterns.cluster_management.swim_probing import News

__all__ = [
    "MESSAGES",
    "Acknowledgement",
    "EntryLearned",
    "EntrySaid",
    "GossipChecksum",
    "GossipDigest",
    "GossipReply",
    "GossipStates",
    "GossipWhole",
    "HeartbeatsTold",
    "MemberDown",
    "MemberUp",
    "MembersJudged",
    "NewsMessage",
    "NodeStarted",
    "PatienceBegun",
    "Ping",
    "PingRequest",
    "ReadMetadata",
    "ReadView",
    "RoundBegun",
    "ViewResponse",
    "WriteMetadata",
]


class GossipDigest(msgspec.Struct, frozen=True, tag="gossip-digest"):
    """The last version that the sender knows of each node; `wants_reply_only` when it wants values and no digest."""

    digest: dict[str, tuple[int, int]]
    wants_reply_only: bool = False
    news: list[News] = []


class GossipReply(msgspec.Struct, frozen=True, tag="gossip-reply"):
    """The entries that the other node lacked, and the sender's own digest."""

    states: dict[str, Delta]
    digest: dict[str, tuple[int, int]]


class GossipWhole(msgspec.Struct, frozen=True, tag="gossip-whole"):
    """All entries that the sender knows; the answer holds those that it lacks."""

    states: dict[str, Delta]
    news: list[News] = []


class GossipStates(msgspec.Struct, frozen=True, tag="gossip-states"):
    """The entries that the other node lacked; the end of an exchange."""

    states: dict[str, Delta]


class GossipChecksum(msgspec.Struct, frozen=True, tag="gossip-checksum"):
    """A checksum of the sender's knowledge; a node with another checksum answers with a digest."""

    checksum: int
    news: list[News] = []


class Ping(msgspec.Struct, frozen=True, tag="ping"):
    """A probe; `asked_by` is the node on whose behalf it is sent."""

    number: int
    asked_by: str


class PingRequest(msgspec.Struct, frozen=True, tag="ping-request"):
    """A request to probe `target`, which does not answer the sender."""

    number: int
    target: str


class Acknowledgement(msgspec.Struct, frozen=True, tag="acknowledgement"):
    """The answer to a probe: `node` is there, as `asked_by` wanted to know."""

    number: int
    node: str
    asked_by: str


class NewsMessage(msgspec.Struct, frozen=True, tag="news"):
    """Fresh news of nodes that are alive or dead, sent without waiting for a round."""

    news: list[News]


class WriteMetadata(msgspec.Struct, frozen=True, tag="write-metadata"):
    """A client's request that the owner of `key` say `value` under it."""

    request_number: int
    key: str
    value: Any


class ReadMetadata(msgspec.Struct, frozen=True, tag="read-metadata"):
    """A client's request for the value that the node knows of `owner`'s `key`."""

    request_number: int
    owner: str
    key: str


class ReadView(msgspec.Struct, frozen=True, tag="read-view"):
    """A client's request for the nodes that the node takes for up."""

    request_number: int


class ViewResponse(msgspec.Struct, frozen=True, tag="view-response"):
    """The answer to a client."""

    request_number: int
    value: Any = None


MESSAGES: tuple[type[msgspec.Struct], ...] = (
    GossipDigest,
    GossipReply,
    GossipWhole,
    GossipStates,
    GossipChecksum,
    Ping,
    PingRequest,
    Acknowledgement,
    NewsMessage,
    WriteMetadata,
    ReadMetadata,
    ReadView,
    ViewResponse,
)
"""Every message that crosses the network, but for those of the two detectors in `watching`."""


class NodeStarted(msgspec.Struct, frozen=True):
    """Trace: a new incarnation of the node, which remembers nothing but its generation."""

    generation: int


class EntrySaid(msgspec.Struct, frozen=True):
    """Trace: the node made a statement of its own."""

    key: str
    generation: int
    version: int
    checksum: int


class EntryLearned(msgspec.Struct, frozen=True):
    """Trace: the node learned a statement of `owner`."""

    owner: str
    key: str
    generation: int
    version: int
    checksum: int


class RoundBegun(msgspec.Struct, frozen=True):
    """Trace: the node gossips with `peers`; at most `most` were permitted."""

    peers: tuple[str, ...]
    most: int


class HeartbeatsTold(msgspec.Struct, frozen=True):
    """Trace: the node sent a part of its table of heartbeats to `peers`, of at most so many rows to each."""

    peers: tuple[str, ...]
    rows: int
    peers_max: int
    rows_max: int


class PatienceBegun(msgspec.Struct, frozen=True):
    """Trace: the node takes `member` for down when no sign of its life comes within `patience_us`.

    A later report about `member` takes the place of this one. `now_us` is the time by the node's monotonic clock.
    """

    member: str
    patience_us: int
    now_us: int


class MembersJudged(msgspec.Struct, frozen=True):
    """Trace: the node has looked for members to take for down, as it does every `interval_us`."""

    interval_us: int
    now_us: int


class MemberUp(msgspec.Struct, frozen=True):
    """Trace: the node takes `member` for up again, or suspects it no more."""

    member: str


class MemberDown(msgspec.Struct, frozen=True):
    """Trace: the node takes `member` for down, by its own judgement or because another node said so."""

    member: str
    now_us: int
    is_told: bool = False
