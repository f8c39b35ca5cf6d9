"""The log records of a participant of two-phase commit, and the trace events by which it reports to the harness."""

from __future__ import annotations

from typing import Any

import msgspec

from faultline.systems_under_test.patterns.data_partitioning.transaction_locks import LockMode
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import TransactionId, TransactionRef
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import HybridTimestamp

__all__ = [
    "Ceiling",
    "Finished",
    "LockGranted",
    "LocksAreBounded",
    "LocksReleased",
    "ParticipantStarted",
    "PendingValue",
    "Prepared",
    "Promised",
    "SnapshotServed",
    "ValueStored",
    "VersionKept",
    "WaitEnded",
    "Wounded",
]


class PendingValue(msgspec.Struct, frozen=True, tag="pending-value"):
    """Log record: a transaction will set `key` to `value` if it commits."""

    id: TransactionId
    key: str
    value: Any


class Prepared(msgspec.Struct, frozen=True, tag="prepared"):
    """Log record: the promise, with all locks that back it and the time that was voted for."""

    ref: TransactionRef
    locks: dict[str, LockMode]
    time: HybridTimestamp


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    """Log record and trace: the transaction ended here; committed under `time`, or rolled back when that is None."""

    id: TransactionId
    time: HybridTimestamp | None


class Ceiling(msgspec.Struct, frozen=True, tag="ceiling"):
    """Log record: times up to this one may have been read."""

    time: HybridTimestamp


class VersionKept(msgspec.Struct, frozen=True, tag="version-kept"):
    """Record of a snapshot: a committed value of `key`."""

    key: str
    time: HybridTimestamp
    value: Any


class ParticipantStarted(msgspec.Struct, frozen=True):
    """Trace: a new process has read its log; it reports again which keys it holds locked.

    No time above `ceiling` was read here before: no such answer ever left.
    """

    ceiling: HybridTimestamp


class LockGranted(msgspec.Struct, frozen=True):
    """Trace: a transaction owns a lock from now on."""

    id: TransactionId
    key: str
    mode: LockMode


class LocksAreBounded(msgspec.Struct, frozen=True):
    """Trace: with the options of this node no transaction holds locks longer than this while everything works."""

    held_us_max: int


class LocksReleased(msgspec.Struct, frozen=True):
    """Trace: a transaction owns no lock here any more."""

    id: TransactionId


class Promised(msgspec.Struct, frozen=True):
    """Trace: a transaction is prepared here, with these locks."""

    id: TransactionId
    locks: dict[str, LockMode]


class Wounded(msgspec.Struct, frozen=True):
    """Trace: a transaction was aborted here so that another one could go on."""

    victim: TransactionRef
    by: TransactionRef
    was_prepared: bool


class WaitEnded(msgspec.Struct, frozen=True):
    """Trace: a transaction waited too long for a lock of these owners; if it `dies`, none of them is older."""

    ref: TransactionRef
    key: str
    owners: list[TransactionRef]
    dies: bool


class ValueStored(msgspec.Struct, frozen=True):
    """Trace: a version became visible."""

    id: TransactionId
    key: str
    time: HybridTimestamp


class SnapshotServed(msgspec.Struct, frozen=True):
    """Trace: a key was read at a time."""

    key: str
    time: HybridTimestamp
