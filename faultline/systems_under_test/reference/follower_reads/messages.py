"""The messages of clients and followers about reads from followers.

The answer to a read is the same `ClientResponse` that the leader gives, with the stamp of the state it was read from.
"""

from __future__ import annotations

import msgspec

from faultline.systems_under_test.reference.shared.key_commands import VERSION_COMPACTED

__all__ = [
    "FOLLOWER_READ_MESSAGES",
    "NOT_CLOSED",
    "NOT_HEARD",
    "OFFSET_NOT_AVAILABLE",
    "OFFSET_OUT_OF_RANGE",
    "REFUSALS",
    "TOO_STALE",
    "WAIT_TIMEOUT",
    "FollowerRead",
    "ReadIndexRequest",
    "ReadIndexResponse",
    "ReplicaPing",
    "ReplicaPong",
]

NOT_HEARD = "leader-not-heard"
"""The follower has not heard its leader for too long, or has not caught up since; ask another."""

NOT_CLOSED = "not-closed"
"""The newest time that is closed here does not reach the stamp; ask another."""

TOO_STALE = "too-stale"
"""The follower cannot show that it is within the bound; ask another."""

WAIT_TIMEOUT = "follower-wait-timeout"
"""The stamp was not applied in time; ask another."""

OFFSET_NOT_AVAILABLE = "offset-not-available"
"""The stamp is in the follower's log, but not applied yet; ask again."""

OFFSET_OUT_OF_RANGE = "offset-out-of-range"
"""The stamp is beyond the end of the follower's log; ask the leader."""

REFUSALS = frozenset(
    (NOT_HEARD, NOT_CLOSED, TOO_STALE, WAIT_TIMEOUT, OFFSET_NOT_AVAILABLE, OFFSET_OUT_OF_RANGE, VERSION_COMPACTED)
)
"""The refusals after which a client asks elsewhere."""


class FollowerRead(msgspec.Struct, frozen=True, tag="follower-read"):
    """Read `key` from whatever this server has applied, if that reaches `stamp`."""

    request_number: int
    key: str
    stamp: int


class ReadIndexRequest(msgspec.Struct, frozen=True, tag="read-index-request"):
    """A follower asks the leader how far the log is committed."""

    correlation_id: int


class ReadIndexResponse(msgspec.Struct, frozen=True, tag="read-index-response"):
    """The leader led when it was asked; `index` covers all that was committed then."""

    correlation_id: int
    index: int


class ReplicaPing(msgspec.Struct, frozen=True, tag="replica-ping"):
    """A client's heartbeat, dated by its own clock."""

    sent_us: int


class ReplicaPong(msgspec.Struct, frozen=True, tag="replica-pong"):
    """The answer: where the server lies, and how old its state may be."""

    sent_us: int
    region: str
    lag_us: int


FOLLOWER_READ_MESSAGES: tuple[type[msgspec.Struct], ...] = (
    FollowerRead,
    ReadIndexRequest,
    ReadIndexResponse,
    ReplicaPing,
    ReplicaPong,
)
"""Every message of these that crosses the network."""
