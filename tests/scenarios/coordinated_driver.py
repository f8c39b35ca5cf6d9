"""The hand-cranked cluster with the core and the data nodes of `coordinated-kv`, and clients who ask one leader."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from faultline.harness.world.ports import NodeId
from faultline.story.log_cluster import Cluster, StaggeredPorts
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import partition_of
from faultline.systems_under_test.reference.coordinated_kv.controller import CONTROLLER
from faultline.systems_under_test.reference.coordinated_kv.core_session import CoreSession
from faultline.systems_under_test.reference.coordinated_kv.messages import DataRequest, DataResponse
from faultline.systems_under_test.reference.coordinated_kv.node import DataNode, DataParts
from faultline.systems_under_test.reference.coordinated_kv.options import CoordinatedSettings
from faultline.systems_under_test.reference.coordinated_kv.system import CoordinatedKv
from faultline.systems_under_test.reference.coordinated_kv.table import ClusterTable, Entry
from faultline.systems_under_test.reference.leases_and_watches.messages import WatchBatch
from faultline.systems_under_test.reference.leases_and_watches.trace_events import (
    LeaseEnded,
    LeaseGranted,
)
from faultline.systems_under_test.reference.shared.key_commands import Command, GetValue, SetValue

__all__ = ["CORE", "DATA", "TTL_MS", "CoordinatedCluster", "key_in", "with_part"]

CORE = ("athens", "byzantium", "cyrene")
DATA = ("delphi", "ephesus", "fatima")
TTL_MS = 600

Lost = Callable[[str, str, Any], bool]


def key_in(partition: int, partitions: int) -> str:
    """A key that hashes to `partition`."""
    return next(f"key-{number}" for number in range(1_000) if partition_of(f"key-{number}", partitions) == partition)


class CoordinatedCluster(Cluster):
    """Three servers of the core and three data nodes; time passes in milliseconds."""

    system_type = CoordinatedKv
    ports_type = StaggeredPorts

    def __init__(self, parts: DataParts | None = None, node_type: type[DataNode] = DataNode, **options: str) -> None:
        self.parts = parts or DataParts()
        self.node_type = node_type
        self.lost: Lost = lambda source, target, message: False
        self.posted: list[tuple[str, str, Any]] = []
        super().__init__(6, (), **{"partitions": "3", "rebalance_every_ms": "100000", **options})

    def start(self, name: str) -> None:
        """Build data nodes from the story's own parts; servers of the core are what the system makes them."""
        if name in CORE:
            super().start(name)
            return
        settings = CoordinatedSettings.for_members(self.options, self.members)
        ports = self.ports[name]
        self.nodes[name] = self.node_type(
            ports, settings, self.parts, lambda enter: CoreSession(ports, settings, enter)
        )
        self.nodes[name].start()

    def post(self, source: str, target: str, message: Any) -> None:
        if not self.lost(source, target, message):
            self.posted.append((source, target, message))
            super().post(source, target, message)

    def wait(self, duration_ms: int) -> None:
        self.pass_time(1_000 * duration_ms)

    def settled(self) -> CoordinatedCluster:
        """Led by athens, with a controller, and every partition led."""
        self.elect("athens")
        self.wait(1_500)
        assert all(entry.leader for entry in self.table.entries) and self.table.entries
        return self

    # -- who is who ---------------------------------------------------------------------------------------------------

    @property
    def alive(self) -> list[DataNode]:
        return [self.nodes[name] for name in DATA if name in self.nodes]

    @property
    def table(self) -> ClusterTable:
        """The newest table that a data node has."""
        return max((node.table for node in self.alive), key=lambda table: table.version)

    def entry(self, partition: int) -> Entry:
        return self.table.entries[partition]

    def controller(self) -> str:
        (name,) = (name for name in DATA if name in self.nodes and self.nodes[name].controller.acts)
        return name

    def leads_partition(self, name: str, partition: int = 0) -> bool:
        """Return whether this node would answer a reader now."""
        leader = self.nodes[name].leading.get(partition)
        return leader is not None and not leader.is_over and self.nodes[name].membership.is_valid()

    # -- leases and watches -------------------------------------------------------------------------------------------

    def grants_and_ends(self, lease: str = CONTROLLER) -> list[tuple[int, str]]:
        """Return the grants and ends of the lease in the log: the index of each entry, and its kind."""
        granted = {(event.index, "granted") for _, event in self.events_of(LeaseGranted) if event.name == lease}
        ended = {(event.index, event.reason) for _, event in self.events_of(LeaseEnded) if event.name == lease}
        return sorted(granted | ended)

    def told(self, watcher: str, path: str, source: str | None = None) -> list[Any]:
        """The events of `path` that were sent to `watcher`, each as often as it was sent, by all or by `source`."""
        return [
            event
            for sender, target, message in self.posted
            if target == watcher and isinstance(message, WatchBatch) and message.path == path
            for event in message.events
            if source in (None, sender)
        ]

    # -- clients ------------------------------------------------------------------------------------------------------

    def request(self, node: str, number: int, command: Command, client: str = "client", generation: int = 0) -> None:
        """Hand a request to `node`, as of the generation in the newest table."""
        partition = partition_of(command.key, len(self.table.entries))
        asked = generation or self.entry(partition).generation
        self.hand(client, node, DataRequest(number, partition, asked, command))

    def answers(self, client: str = "client") -> dict[int, DataResponse]:
        """The answers that have come, by the number of the request; delivers nothing but answers."""
        self.deliver(lambda _, target, __: target == client)
        messages = [message for _, message in self.inbox.get(NodeId(client), ())]
        return {message.request_number: message for message in messages if isinstance(message, DataResponse)}

    def write(self, number: int, key: str, value: Any) -> None:
        """A write that must be acknowledged."""
        self.request(self.entry(partition_of(key, len(self.table.entries))).leader, number, SetValue(key, value))
        self.deliver()
        assert number in self.answers(), "not acknowledged"

    def read(self, number: int, key: str) -> Any:
        """A read that must be answered."""
        self.request(self.entry(partition_of(key, len(self.table.entries))).leader, number, GetValue(key))
        self.deliver()
        return self.answers()[number].value


def with_part(**parts: type[Any]) -> DataParts:
    """The parts of a data node, some of them others."""
    return replace(DataParts(), **parts)
