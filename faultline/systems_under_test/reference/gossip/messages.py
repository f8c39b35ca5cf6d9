"""The messages of `gossip`, and what its nodes report about themselves.

Marks that nodes report with `sometimes`:

| mark | reached when |
|---|---|
| own-past-refused | somebody told a restarted node what it had said before |
| generation-replaced | a node was heard of in a higher generation, and what it had said before was forgotten |
| delta-with-gap-refused | a delta began above what was known, so it could not be taken |
| reply-cut-short | more was new than fits into one reply |
| digests-equal | two nodes found that they know the same |
| node-marked-down | a node took another one for down |
| node-marked-up | a node that had been taken for down was heard of again |
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
    "NewsMessage",
    "NodeStarted",
    "Ping",
    "PingRequest",
    "ReadMetadata",
    "ReadView",
    "RoundBegun",
    "ViewResponse",
    "WriteMetadata",
]


class GossipDigest(msgspec.Struct, frozen=True, tag="gossip-digest"):
    """How far the sender has come with each node; `wants_reply_only` when nothing is to be asked back."""

    digest: dict[str, tuple[int, int]]
    wants_reply_only: bool = False
    news: list[News] = []


class GossipReply(msgspec.Struct, frozen=True, tag="gossip-reply"):
    """What the other lacked, and how far the sender itself has come."""

    states: dict[str, Delta]
    digest: dict[str, tuple[int, int]]


class GossipWhole(msgspec.Struct, frozen=True, tag="gossip-whole"):
    """Everything the sender knows, to be answered with what it lacks."""

    states: dict[str, Delta]
    news: list[News] = []


class GossipStates(msgspec.Struct, frozen=True, tag="gossip-states"):
    """What the other lacked; the end of an exchange."""

    states: dict[str, Delta]


class GossipChecksum(msgspec.Struct, frozen=True, tag="gossip-checksum"):
    """A checksum of what the sender knows; who knows something else answers with a digest."""

    checksum: int
    news: list[News] = []


class Ping(msgspec.Struct, frozen=True, tag="ping"):
    """Are you there? `asked_by` is the node on whose behalf this is asked."""

    number: int
    asked_by: str


class PingRequest(msgspec.Struct, frozen=True, tag="ping-request"):
    """Ask `target` for me: it does not answer me."""

    number: int
    target: str


class Acknowledgement(msgspec.Struct, frozen=True, tag="acknowledgement"):
    """`node` is there, `asked_by` may be told."""

    number: int
    node: str
    asked_by: str


class NewsMessage(msgspec.Struct, frozen=True, tag="news"):
    """Who is alive and who is dead, told at once."""

    news: list[News]


class WriteMetadata(msgspec.Struct, frozen=True, tag="write-metadata"):
    """A client has a node say `value` under `key`."""

    request_number: int
    key: str
    value: Any


class ReadMetadata(msgspec.Struct, frozen=True, tag="read-metadata"):
    """A client asks a node what `owner` says under `key`."""

    request_number: int
    owner: str
    key: str


class ReadView(msgspec.Struct, frozen=True, tag="read-view"):
    """A client asks a node which nodes it takes for up."""

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
"""Every message that crosses the network."""


class NodeStarted(msgspec.Struct, frozen=True):
    """Trace: a new incarnation of the node, which remembers nothing but its generation."""

    generation: int


class EntrySaid(msgspec.Struct, frozen=True):
    """Trace: the node says something of itself."""

    key: str
    generation: int
    version: int
    checksum: int


class EntryLearned(msgspec.Struct, frozen=True):
    """Trace: the node learned what `owner` said."""

    owner: str
    key: str
    generation: int
    version: int
    checksum: int


class RoundBegun(msgspec.Struct, frozen=True):
    """Trace: the node gossips with these peers; at most `most` were permitted."""

    peers: tuple[str, ...]
    most: int
