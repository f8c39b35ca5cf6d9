"""The hand-cranked cluster with nodes and clients of `partitioned-kv`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

from faultline.story.library_cluster import LibraryCluster
from faultline.story.log_cluster import StaggeredPorts
from faultline.systems_under_test.patterns.data_partitioning.cluster_directory import (
    MigratePartitions,
    Migration,
    PartitionTable,
)
from faultline.systems_under_test.reference.partitioned_kv.coordinator import Coordinator
from faultline.systems_under_test.reference.partitioned_kv.system import PartitionedKv

__all__ = ["NAMES", "PartitionCluster", "assert_nothing_is_lost", "read", "with_names"]


class _ChancePorts(StaggeredPorts):
    """Chance that depends on who asks and what for."""

    def uniform_us(self, stream: str, low_us: int, high_us: int) -> int:
        return low_us + crc32(f"{self.node_id} {stream}".encode()) % (high_us - low_us)


class PartitionCluster(LibraryCluster):
    """Nodes that host partitions, and clients that keep a table; time passes in milliseconds."""

    system_type = PartitionedKv
    ports_type = _ChancePorts

    def __init__(self, size: int | Sequence[str] = 3, planted_bugs: tuple[str, ...] = (), **options: str) -> None:
        self.copies_of: Callable[[Any], int] = lambda _: 1
        super().__init__(size, planted_bugs, **{"partitions": "9", **options})

    def post(self, source: str, target: str, message: Any) -> None:
        """Send it as often as `copies_of` says: not at all, once, or twice."""
        for _ in range(self.copies_of(message)):
            super().post(source, target, message)

    # -- the coordinator ----------------------------------------------------------------------------------------------

    def leader(self) -> str:
        return next(name for name in self.members if name in self.nodes and self.leads(name))

    def coordinator(self) -> Coordinator:
        return _coordinator(self.nodes[self.leader()])

    def table(self) -> PartitionTable:
        table: PartitionTable = self.look(self.leader(), _table)
        return table

    def reassign(self) -> bool:
        """An administrator asks for it; nothing is delivered yet."""
        return bool(self.look(self.leader(), _reassign))

    def move(self, partition: int, target: str) -> Migration:
        """The coordinator decides on this move; it is committed, and on its way as far as messages get."""
        entry = self.coordinator().directory.entries[partition]
        migration = Migration(partition, entry.owner, target, entry.generation + 1)
        self.coordinator()._commit(MigratePartitions((migration,)))
        self.deliver()
        return migration

    def is_settled(self) -> bool:
        """Return whether every partition is online, does not move, and is hosted where the table says."""
        directory = self.coordinator().directory
        hosted = {
            (partition, name, held.generation)
            for name in self.members
            if name in self.nodes
            for partition, held in self.nodes[name].host.partitions.items()
            if held.state == "serving"
        }
        wanted = {(number, entry.owner, entry.generation) for number, entry in enumerate(directory.entries)}
        return bool(wanted) and hosted == wanted and not directory.pending and all(e.online for e in directory.entries)


def _coordinator(node: Any) -> Coordinator:
    (coordinator,) = node.core.extensions
    assert isinstance(coordinator, Coordinator)
    return coordinator


def _table(node: Any) -> PartitionTable:
    return _coordinator(node).directory.table()


def _reassign(node: Any) -> bool:
    return _coordinator(node).reassign_partitions()


NAMES = ("Alice", "Bob", "Mary", "Philip")


def with_names(size: int = 3, **options: str) -> PartitionCluster:
    """A cluster that has assigned its partitions, and holds four names."""
    cluster = PartitionCluster(size, (), **options)
    cluster.wait()
    for name in NAMES:
        assert cluster.ask("write", name, f"{name} 1").kind == "ok"
    return cluster


def read(cluster: PartitionCluster, key: str, client: str = "client-1") -> Any:
    """Return what the client reads at `key`, which must succeed."""
    outcome = cluster.ask("read", key, client=client)
    assert outcome.kind == "ok", outcome
    return outcome.value


def assert_nothing_is_lost(cluster: PartitionCluster) -> None:
    """Raise AssertionError unless all four names are there, with no invariant broken."""
    assert cluster.is_settled()
    assert [read(cluster, name, "client-2") for name in NAMES] == [f"{name} 1" for name in NAMES]
    assert cluster.broken() == []
