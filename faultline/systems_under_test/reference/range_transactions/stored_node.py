"""The whole node: coordinator and ranges over a log on its own disk, and on the first member the table of ranges.

The coordinator of the table moves one range after the other to the next live node, at intervals, as an operator's plan
would, beside the moves that follow splits.

Limits: neither the table nor a range is replicated. Their logs outlive a crash, not the loss of a disk, and a node that
is down takes its ranges away until it is back (`transactional-kv` has replicated partitions, which do not move).
"""

from __future__ import annotations

from typing import Any

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_replication.compacted_log import CompactedLog
from faultline.systems_under_test.reference.range_transactions.node import RangeTransactionsNode
from faultline.systems_under_test.reference.range_transactions.options import RangeTransactionSettings
from faultline.systems_under_test.reference.range_transactions.parts import Parts
from faultline.systems_under_test.reference.range_transactions.records import RECORDS, Record
from faultline.systems_under_test.reference.ranges.coordinator import RangeCoordinator
from faultline.systems_under_test.reference.ranges.messages import PartitionReady
from faultline.systems_under_test.reference.transactions.compacted_records import CompactedRecords

__all__ = ["StoredNode", "TableCoordinator"]


class TableCoordinator(RangeCoordinator):
    """The coordinator of the ranges, which also moves them in turn."""

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], settings: RangeTransactionSettings) -> None:
        super().__init__(ports, members, settings)
        self._move_every_us = settings.move_every_us
        self._moved = 0

    def start(self) -> None:
        """Recover the table, and begin to repeat tasks and to move ranges."""
        super().start()
        if self._move_every_us is not None:
            self.ports.timers.every(self._move_every_us, self._move_next)

    def _move_next(self) -> None:
        """Move the next range that no change is under way for, if its node and another one live."""
        live = self.live()
        resting = sorted(number for number in self.table.partitions if self.table.is_online(number))
        for number in [each for each in resting if each > self._moved] or resting:
            source = NodeId(self.table.partitions[number].address)
            if source in live and len(live) > 1:
                self._moved = number
                move = self.table.move_of(number, live[(live.index(source) + 1) % len(live)])
                assert move is not None, "a resting range can move to another node"
                self.record(move)
                return


class StoredNode(RangeTransactionsNode):
    """One node: implements `Node` over its ports."""

    def __init__(
        self, ports: Ports, members: tuple[NodeId, ...], settings: RangeTransactionSettings, parts: Parts
    ) -> None:
        log = CompactedLog(ports.storage, settings.snapshot_every_entries, on_due=lambda: self._enter(self._compact))
        self._disk: CompactedRecords[Record] = CompactedRecords(log, RECORDS)
        super().__init__(ports, members[0], settings, parts, self._disk)
        self.table_coordinator = TableCoordinator(ports, members, settings) if ports.node_id == members[0] else None
        if self.table_coordinator is not None:
            self.handlers |= {**self.table_coordinator.handlers, PartitionReady: self._handle_ready}

    def start(self) -> None:
        """Recover the table, if it is kept here, then coordinator and ranges; bring open transactions to an end."""
        if self.table_coordinator is not None:
            self.table_coordinator.start()
        for record in self._disk.recover():
            self.replay(record)
        self.serve()

    def _handle_ready(self, source: NodeId, message: Any) -> None:
        """Pass the message to the table, which waits for it, and to the host, if the range left from here."""
        assert self.table_coordinator is not None
        self.host.handlers[PartitionReady](source, message)
        self.table_coordinator.handle_ready(source, message)

    def _compact(self) -> None:
        self.ports.trace.sometimes("log-compacted")
        self.forget_what_is_over()
        self._disk.compact(self.records())
