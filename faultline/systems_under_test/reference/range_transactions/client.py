"""The client of `range-transactions`: keeps a copy of the table, and carries each attempt out under one copy.

A transaction must not touch a range under two generations: of what it did before a split or a move, only a promise is
kept. So the copy stays as it is during an attempt. A range that refuses it ends the attempt, and the table is fetched
before the next.
"""

from __future__ import annotations

from typing import Any, ClassVar

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_partitioning.key_range_partitions import Partition, PartitionMap
from faultline.systems_under_test.patterns.data_partitioning.transaction_client import Answer
from faultline.systems_under_test.reference.range_transactions.messages import REQUESTS, ReadWithin, ToRange
from faultline.systems_under_test.reference.range_transactions.options import RangeTransactionSettings
from faultline.systems_under_test.reference.range_transactions.ranges import name_of
from faultline.systems_under_test.reference.range_transactions.reads import SnapshotExecutor
from faultline.systems_under_test.reference.ranges.messages import ASK_AGAIN, TableRequest, TableResponse
from faultline.systems_under_test.reference.transactions.client import TransactionClient
from faultline.systems_under_test.reference.transactions.messages import GetInTransaction, PutInTransaction

__all__ = ["RangeTransactionsClient"]

_PAUSE_US = 20_000
"""The time after which a client asks again for a table that is not made yet."""


class RangeTransactionsClient(TransactionClient):
    """One logical client: implements `PortClient` over its ports."""

    requests: ClassVar = REQUESTS

    def __init__(
        self,
        ports: Ports,
        table_node: NodeId,
        node: NodeId,
        settings: RangeTransactionSettings,
        new_executor: type[SnapshotExecutor],
    ) -> None:
        """Ask `table_node` for the table, and read by the clock of `node`."""
        window_us = 0 if settings.waits_at_commit else settings.max_offset_us
        executor = new_executor(self._range_of, settings.attempts_max, node, window_us, ports.trace)
        super().__init__(ports, settings, executor, snapshot_reads=True)
        self._table_node = table_node
        self._map = PartitionMap()
        self._by_name: dict[NodeId, Partition] = {}
        self._is_stale = True

    def receive(self, source: NodeId, message: Any) -> None:
        """Take an answer; one to an earlier request is late, and ignored."""
        if isinstance(message, TableResponse):
            self._take_table(message)
        elif self._call is not None and message.number == self._number:
            self._is_stale = self._is_stale or message.error in ASK_AGAIN
            super().receive(source, message)

    def _go_on(self, answer: Answer | None) -> None:
        """Take the next step; fetch the table first when an attempt begins after a refusal."""
        if answer is None and self._is_stale:
            self._fetch_table()
        else:
            super()._go_on(answer)

    def _fetch_table(self) -> None:
        if self._open.is_overdue:
            self._give_up()
            return
        self._number += 1
        self._open.expect(self._times.request_timeout_us, self._fetch_table)
        self._ports.network.send(self._table_node, TableRequest(self._number))

    def _take_table(self, message: TableResponse) -> None:
        if not self._open or self._call is not None or message.request_number != self._number:
            return
        if not message.partitions:
            self._open.expect(_PAUSE_US, self._fetch_table)
            return
        if self._by_name:
            self._ports.trace.sometimes("table-refreshed")
        self._map = PartitionMap(message.partitions)
        self._by_name = {name_of(each.id): each for each in message.partitions}
        self._is_stale = False
        self._go_on(None)

    def _range_of(self, key: str) -> NodeId:
        partition = self._map.partition_for(key)
        assert partition is not None, "an attempt begins with a table, and its ranges cover all keys"
        return name_of(partition.id)

    def _send(self, to: NodeId, request: Any) -> None:
        """Send to a range, or to the coordinator on its node; or to a coordinator by the name of its node."""
        partition = self._by_name.get(to)
        if partition is None:
            self._ports.network.send(to, request)
            return
        if isinstance(request, GetInTransaction | PutInTransaction | ReadWithin):
            request = ToRange(partition.id, partition.generation, request)
        self._ports.network.send(NodeId(partition.address), request)

    def _handle_silence(self) -> None:
        # The range may be elsewhere by now. This attempt can end only here; the next one will look.
        self._is_stale = True
        super()._handle_silence()
