"""A node of `transactional-kv` with its log on its own disk: each partition is on one node (`replication_factor=1`)."""

from __future__ import annotations

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_replication.compacted_log import CompactedLog
from faultline.systems_under_test.reference.transactional_kv.node import Parts, TransactionalKvNode
from faultline.systems_under_test.reference.transactional_kv.options import TransactionSettings
from faultline.systems_under_test.reference.transactional_kv.records import (
    Record,
    decode_record,
    decode_state,
    encode_record,
    encode_state,
)

__all__ = ["UnreplicatedNode"]


class _OwnLog:
    """The records in a log that shortens itself: implements `RecordLog`."""

    def __init__(self, log: CompactedLog) -> None:
        self._log = log
        self.flush = log.flush

    def append(self, record: Record) -> None:
        self._log.append(encode_record(record))


class UnreplicatedNode(TransactionalKvNode):
    """One node: implements `Node` over its ports."""

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], settings: TransactionSettings, parts: Parts) -> None:
        self._disk = CompactedLog(
            ports.storage,
            settings.snapshot_every_entries,
            on_due=lambda: self._enter(self._compact),
            segment_size_bytes_max=settings.segment_size_bytes,
        )
        super().__init__(ports, members, settings, parts, _OwnLog(self._disk))

    def start(self) -> None:
        """Recover both roles from the log, and bring open transactions to an end."""
        state, entries = self._disk.recover()
        for record in (*(decode_state(state) if state is not None else ()), *map(decode_record, entries)):
            self.replay(record)
        self.serve()

    def _compact(self) -> None:
        self.ports.trace.sometimes("log-compacted")
        self.forget_what_is_over()
        self._disk.compact(encode_state(self.records()))
