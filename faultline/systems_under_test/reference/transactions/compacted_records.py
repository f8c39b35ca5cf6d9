"""The records of a node of transactions, in a log on its own disk that shortens itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from faultline.systems_under_test.patterns.data_partitioning.coordinator_records import RecordCodec
from faultline.systems_under_test.patterns.data_replication.compacted_log import CompactedLog

__all__ = ["CompactedRecords"]

_Record = TypeVar("_Record")


class CompactedRecords(Generic[_Record]):
    """Records in a compacted log: implements `RecordLog`."""

    def __init__(self, log: CompactedLog, codec: RecordCodec[_Record]) -> None:
        self._log = log
        self._codec = codec
        self.flush = log.flush

    def append(self, record: _Record) -> None:
        """Add a record; `flush` makes it durable."""
        self._log.append(self._codec.encode(record))

    def recover(self) -> list[_Record]:
        """Return the records of the newest snapshot, and those behind it, from which the state comes."""
        state, entries = self._log.recover()
        return [*(self._codec.decode_all(state) if state is not None else ()), *map(self._codec.decode, entries)]

    def compact(self, records: Iterable[_Record]) -> None:
        """Replace the log by these records, which lead to the same state."""
        self._log.compact(self._codec.encode_all(records))
