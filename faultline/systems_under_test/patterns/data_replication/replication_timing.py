"""The sizes and times by which a replicated log sends its entries."""

from __future__ import annotations

import msgspec

__all__ = ["ReplicationTiming"]


class ReplicationTiming(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes and times of replication.

    Entries and bytes per request, and requests in flight; after how long without answers to send again; after how long
    a follower counts as silent, so that it gets heartbeats only; how soon after heartbeats no more are due.
    """

    batch_entries_max: int
    batch_size_bytes: int
    in_flight_max: int
    retransmit_us: int
    silent_us: int
    quiet_us: int
