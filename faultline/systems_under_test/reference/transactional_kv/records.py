"""The records in the log of a `transactional-kv` node, and in its snapshots.

A snapshot of the state is a shorter log that leads to the same state: `Coordinator.records` and `Participant.records`
say which records suffice. So `replay` is the one way to rebuild a state, from a log and from a snapshot.

A coordinator remembers the ends of its last `transactions_remembered` transactions. Asked about an older one it answers
that it has forgotten, never that it was rolled back. Old versions of values are kept: only the log is bounded, not the
data.
"""

from __future__ import annotations

import msgspec

from faultline.systems_under_test.patterns.data_partitioning.coordinator_records import CoordinatorRecord, RecordCodec
from faultline.systems_under_test.patterns.data_partitioning.transaction_records import (
    Ceiling,
    Finished,
    PendingValue,
    Prepared,
    VersionKept,
)

__all__ = [
    "RECORDS",
    "OracleLimit",
    "Record",
    "TimeGiven",
]


class OracleLimit(msgspec.Struct, frozen=True, tag="oracle-limit"):
    """Log record: numbers up to this one may have been given out."""

    limit: int


class TimeGiven(msgspec.Struct, frozen=True):
    """Trace: the oracle gave out this number."""

    time: int


Record = CoordinatorRecord | PendingValue | Prepared | Finished | Ceiling | VersionKept | OracleLimit
"""All kinds of records in a log of `transactional-kv`."""

RECORDS: RecordCodec[Record] = RecordCodec(Record)
"""The bytes of these records."""
