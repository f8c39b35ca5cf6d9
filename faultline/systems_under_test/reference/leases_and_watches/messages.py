"""What clients and servers of `consistent-core` say to each other about leases and watches.

Both run beside the operation that a client has under way, so they have messages and numbers of their own. Everything
that changes the store is a command in the log, like any other (`key_commands`).
"""

from __future__ import annotations

from typing import Any

import msgspec

from faultline.systems_under_test.patterns.cluster_management.state_watch import KeyState, Position, WatchEvent

__all__ = [
    "SERVICE_MESSAGES",
    "CloseWatch",
    "LeaseRefreshed",
    "RefreshLease",
    "WatchBatch",
    "WatchRefused",
    "WatchRequest",
    "WatchState",
]


class RefreshLease(msgspec.Struct, frozen=True, tag="refresh-lease"):
    """The owner of this incarnation of the lease `name` is alive."""

    name: str
    incarnation: int
    correlation_id: int


class LeaseRefreshed(msgspec.Struct, frozen=True, tag="lease-refreshed"):
    """The answer: none, an error, or `not-leader` with whom to ask instead."""

    name: str
    correlation_id: int
    error: str | None = None
    leader_id: str | None = None


class WatchRequest(msgspec.Struct, frozen=True, tag="watch-request"):
    """Send me what happens at and below `path`, after `position`; without one, the state and what happens from now on.

    The same message sets a watch, sets it again at another server, and confirms what has been received. `is_live` asks
    """

    path: str
    number: int
    position: Position | None
    is_live: bool
    is_once: bool = False


class WatchBatch(msgspec.Struct, frozen=True, tag="watch-batch"):
    """Events of one watch in order: all that there are after `after` and up to `upto`."""

    path: str
    number: int
    after: Position
    upto: Position
    events: tuple[WatchEvent, ...] = ()


class WatchState(msgspec.Struct, frozen=True, tag="watch-state"):
    """What there is at and below `path`, with everything up to `upto` applied.

    `error` tells a client that asked for events why it gets the state instead.
    """

    path: str
    number: int
    upto: Position
    state: tuple[KeyState, ...]
    error: str | None = None


class WatchRefused(msgspec.Struct, frozen=True, tag="watch-refused"):
    """No more events from here: this server does not lead, or the client has too many unconfirmed."""

    path: str
    number: int
    error: str
    leader_id: str | None = None


class CloseWatch(msgspec.Struct, frozen=True, tag="close-watch"):
    """The client wants no more events of this watch."""

    path: str
    number: int


SERVICE_MESSAGES: tuple[type[Any], ...] = (
    RefreshLease,
    LeaseRefreshed,
    WatchRequest,
    WatchBatch,
    WatchState,
    WatchRefused,
    CloseWatch,
)
"""Every message about leases and watches that crosses the network."""
