"""One open transaction at a participant of two-phase commit, and the limits of its waits."""

from __future__ import annotations

from typing import Any

import msgspec

from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import TransactionRef
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import HybridTimestamp

__all__ = ["ParticipantTiming", "TransactionState"]


class ParticipantTiming(msgspec.Struct, frozen=True):
    """The longest wait for a lock or a promised write, and the silence after which a coordinator is asked."""

    lock_wait_us: int
    inquiry_us: int


class TransactionState:
    """One open transaction at this server: the keys it read, the values it will write, and whether the promise is
    given.
    """

    __slots__ = ("is_preparing", "next_position", "pending", "prepared_at", "read_keys", "ref", "touched_us", "waits")

    def __init__(self, ref: TransactionRef, now_us: int) -> None:
        self.ref = ref
        self.read_keys: dict[str, None] = {}
        self.pending: dict[str, Any] = {}
        self.next_position = 0
        self.waits = False
        self.is_preparing = False
        self.prepared_at: HybridTimestamp | None = None
        self.touched_us = now_us
