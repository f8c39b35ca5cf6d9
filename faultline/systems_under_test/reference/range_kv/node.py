"""A node of `range-kv`: every node is a host, and the first member is the coordinator as well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from faultline.harness.world.ports import NodeId, NodeStatus, Ports
from faultline.systems_under_test.patterns.data_partitioning.kept_sizes import with_kept_sizes
from faultline.systems_under_test.patterns.data_partitioning.key_range_partitions import PartitionMap
from faultline.systems_under_test.patterns.data_partitioning.range_partition import RangePartition
from faultline.systems_under_test.reference.range_kv.host import RangeHost
from faultline.systems_under_test.reference.range_kv.options import RangeSettings
from faultline.systems_under_test.reference.ranges.coordinator import RangeCoordinator
from faultline.systems_under_test.reference.ranges.messages import PartitionReady
from faultline.systems_under_test.reference.shared.handler_table import HandlerTable

__all__ = ["Parts", "RangeNode"]


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of nodes and clients; a planted bug is put in front of one of them."""

    host: type[RangeHost] = RangeHost
    coordinator: type[RangeCoordinator] = RangeCoordinator
    partition: type[RangePartition] = RangePartition
    map: type[PartitionMap] = PartitionMap


class RangeNode:
    """One node: implements `Node` over its ports."""

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], settings: RangeSettings, parts: Parts) -> None:
        first = members[0]
        kept = settings.sizes == "blocks"
        partition = with_kept_sizes(parts.partition, settings.partition_size_max) if kept else parts.partition
        self.host = parts.host(ports, first, settings, partition)
        self.coordinator = parts.coordinator(ports, members, settings) if ports.node_id == first else None
        self._first = first
        self._handlers = HandlerTable(self.host.handlers)
        if self.coordinator is not None:
            self._handlers |= {**self.coordinator.handlers, PartitionReady: self._handle_ready}

    def start(self) -> None:
        """Recover both halves, the coordinator first: it may have to tell the host something."""
        if self.coordinator is not None:
            self.coordinator.start()
        self.host.start()

    def receive(self, source: NodeId, message: Any) -> None:
        """Handle one message from a node or a client."""
        self._handlers[type(message)](source, message)

    def status(self) -> NodeStatus:
        """Return the status: the coordinator leads, so that faults aimed at a leader hit it."""
        role = "leader" if self.coordinator is not None else "follower"
        return NodeStatus(role=role, leader=self._first, detail={"partitions": sorted(self.host.store.held)})

    def _handle_ready(self, source: NodeId, message: PartitionReady) -> None:
        """Pass the message to the coordinator, which waits for it, and to the host, if the partition left from here."""
        assert self.coordinator is not None
        self.host.handlers[PartitionReady](source, message)
        self.coordinator.handle_ready(source, message)
