"""The hand-cranked cluster with nodes of `data-grid`, and a client whose every attempt is the test's decision."""

from __future__ import annotations

from typing import Any

from faultline.story.log_cluster import Cluster, Matcher
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import partition_of
from faultline.systems_under_test.reference.data_grid.messages import GridRefused, GridRequest, GridResponse
from faultline.systems_under_test.reference.data_grid.system import DataGrid
from faultline.systems_under_test.reference.data_grid.table import Entry, GridTable
from faultline.systems_under_test.reference.shared.key_commands import Command

__all__ = ["GridCluster"]

FORMED_MS = 2_000


class GridCluster(Cluster):
    """Nodes that have formed a grid."""

    system_type = DataGrid

    def __init__(self, size: int = 5, planted_bugs: tuple[str, ...] = (), **options: str) -> None:
        self.loses: Matcher = lambda *_: False
        super().__init__(size, planted_bugs, **options)
        self.wait(FORMED_MS)

    def post(self, source: str, target: str, message: Any) -> None:
        """Put a message into the queue, unless it is one of those that the network loses now."""
        if not self.loses(source, target, message):
            super().post(source, target, message)

    def wait(self, milliseconds: int) -> None:
        self.pass_time(1_000 * milliseconds)

    def table(self, node: str) -> GridTable:
        table: GridTable = self.nodes[node].table
        return table

    def entry(self, node: str, key: str) -> Entry:
        """Return the entry of the key's partition, as `node` knows it."""
        entries = self.table(node).entries
        return entries[partition_of(key, len(entries))]

    def send(self, node: str, number: int, command: Command, client: str = "client") -> GridResponse | None:
        """Send a request, and return its answer; None when the node refuses, or gives none yet."""
        before = len(self.inbox.get(client, ()))
        self.begin(node, number, command, client)
        self.deliver()
        return self.answers(client, before)

    def begin(self, node: str, number: int, command: Command, client: str = "client") -> None:
        """Hand a request to a node, and deliver nothing."""
        partition = partition_of(command.key, len(self.table(node).entries))
        self.hand(client, node, GridRequest(number, partition, command))

    def answers(self, client: str = "client", since: int = 0) -> GridResponse | None:
        """Return the last answer that a client got after so many messages."""
        messages: list[Any] = [message for _, message in self.inbox.get(client, ())[since:]]
        found = [message for message in messages if isinstance(message, GridResponse)]
        assert all(isinstance(message, GridResponse | GridRefused) for message in messages)
        return found[-1] if found else None

    def key_owned_by(self, node: str) -> str:
        """Return a key whose partition `node` owns."""
        return next(key for number in range(1_000) if self.entry(node, key := f"key-{number}").owner == node)
