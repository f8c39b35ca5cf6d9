"""The way of a coordinator's messages to ranges: a copy of the table, fetched again when a range was not where it says.

A coordinator keeps keys, and asks for their ranges each time it sends. So a question or a decision that was refused
goes to the present host the next time it is repeated, and after a split to both halves.
"""

from __future__ import annotations

from typing import Any

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_partitioning.key_range_partitions import Partition, PartitionMap
from faultline.systems_under_test.reference.range_transactions.messages import RangeRefused, ToRange
from faultline.systems_under_test.reference.range_transactions.ranges import name_of
from faultline.systems_under_test.reference.ranges.messages import TableRequest, TableResponse

__all__ = ["RangeRoutes"]

_NOWHERE = NodeId("range-unknown")
"""The name of the range of each key while there is no table: no range answers to it."""


class RangeRoutes:
    """The present range of each key, and the way there; `table_node` has the table."""

    def __init__(self, ports: Ports, table_node: NodeId) -> None:
        self._ports = ports
        self._table_node = table_node
        self._map = PartitionMap()
        self._by_name: dict[NodeId, Partition] = {}
        self._number = 0

    def range_of(self, key: str) -> NodeId:
        """Return the name of the range that holds `key`."""
        partition = self._map.partition_for(key)
        return _NOWHERE if partition is None else name_of(partition.id)

    def send(self, to: NodeId, message: Any) -> None:
        """Send a question or a decision to the range of that name; drop it when the table does not have the range."""
        partition = self._by_name.get(to)
        if partition is None:
            self.refresh()
        else:
            self._ports.network.send(NodeId(partition.address), ToRange(partition.id, partition.generation, message))

    def refresh(self) -> None:
        """Ask for the table."""
        self._number += 1
        self._ports.network.send(self._table_node, TableRequest(self._number))

    def handle_refusal(self, _: NodeId, refused: RangeRefused) -> None:
        """Ask for the table, unless it was asked for since: the message will be sent again."""
        known = self._by_name.get(name_of(refused.range_id))
        if known is None or known.generation <= refused.generation:
            self.refresh()

    def handle_table(self, _: NodeId, response: TableResponse) -> None:
        """Take a table, unless a newer one came first: each change of a table adds to the sum of its generations."""
        if _age(response.partitions) > _age(self._map.partitions.values()):
            self._map = PartitionMap(response.partitions)
            self._by_name = {name_of(each.id): each for each in response.partitions}


def _age(partitions: Any) -> int:
    return sum(partition.generation for partition in partitions)
