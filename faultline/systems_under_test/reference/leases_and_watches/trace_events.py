"""What a server of `consistent-core` reports about leases and watches.

Marks (`sometimes`), each a situation a campaign should have reached:

| mark | meaning |
|---|---|
| lease-expired | an expiry was applied |
| lease-revoked | an owner gave its lease back |
| duplicate-lease-refused-early | the name was taken when the request came |
| lease-refreshed, refresh-refused | a leader answered a refresh |
| lease-lost | an owner found its lease over, or was told so |
| guarded-write-refused | a resource turned away a stale token |
| watch-set, watch-resumed | a watch began; went on from a position after a loss or at another server |
| events-replayed | a watcher was sent events that it had missed |
| watch-gap-announced | a watcher was told that events are not kept any more |
| slow-watcher-cancelled | a watcher had too many events unconfirmed |
| silent-watcher-forgotten | a watcher gave no sign of life |
| watch-batch-missed | a client noticed that a batch was lost |
"""

from __future__ import annotations

import msgspec

__all__ = ["ExpiryProposed", "LeaseEnded", "LeaseGranted", "LeaseRefreshAcknowledged", "LeasesSeen"]


class LeaseGranted(msgspec.Struct, frozen=True):
    """Trace: the entry at `index` granted the lease `name`; `leading` says whether this server led."""

    index: int
    name: str
    ttl_us: int
    leading: bool


class LeaseEnded(msgspec.Struct, frozen=True):
    """Trace: the entry at `index` ended this incarnation of `name` for that `reason`, with those keys."""

    index: int
    name: str
    incarnation: int
    reason: str
    ttl_us: int
    keys: tuple[str, ...]


class LeaseRefreshAcknowledged(msgspec.Struct, frozen=True):
    """Trace: this server, as leader, told an owner that its lease lives on, a full time from the request.

    That came `waited_us` before, and since then a majority confirmed the leadership; it may be over again.
    """

    name: str
    incarnation: int
    waited_us: int


class ExpiryProposed(msgspec.Struct, frozen=True):
    """Trace: this server found a lease over and proposed to end it; `leading` says whether it may."""

    name: str
    incarnation: int
    leading: bool


class LeasesSeen(msgspec.Struct, frozen=True):
    """Trace: after the entry at `index` a checksum of all leases and attached keys, and keys without their lease."""

    index: int
    checksum: int
    leases: int
    orphans: tuple[str, ...]
