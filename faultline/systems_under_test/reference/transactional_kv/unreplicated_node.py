"""A node of `transactional-kv` with its log on its own disk: each partition is on one node (`replication_factor=1`)."""

from __future__ import annotations

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_replication.compacted_log import CompactedLog
from faultline.systems_under_test.reference.transactional_kv.node import Parts, TransactionalKvNode
from faultline.systems_under_test.reference.transactional_kv.options import TransactionSettings
from faultline.systems_under_test.reference.transactional_kv.records import RECORDS, Record
from faultline.systems_under_test.reference.transactions.compacted_records import CompactedRecords

__all__ = ["UnreplicatedNode"]


class UnreplicatedNode(TransactionalKvNode):
    """One node: implements `Node` over its ports."""

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], settings: TransactionSettings, parts: Parts) -> None:
        log = CompactedLog(
            ports.storage,
            settings.snapshot_every_entries,
            on_due=lambda: self._enter(self._compact),
            segment_size_bytes_max=settings.segment_size_bytes,
        )
        self._disk: CompactedRecords[Record] = CompactedRecords(log, RECORDS)
        super().__init__(ports, members, settings, parts, self._disk)

    def start(self) -> None:
        """Recover both roles from the log, and bring open transactions to an end."""
        for record in self._disk.recover():
            self.replay(record)
        self.serve()

    def _compact(self) -> None:
        self.ports.trace.sometimes("log-compacted")
        self.forget_what_is_over()
        self._disk.compact(self.records())
