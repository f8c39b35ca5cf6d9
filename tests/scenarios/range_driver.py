"""The hand-cranked cluster with nodes of `range-kv`, and its real clients."""

from __future__ import annotations

from typing import Any

from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome
from faultline.harness.world.ports import NodeId
from faultline.story.log_cluster import Cluster, StaggeredPorts
from faultline.systems_under_test.patterns.data_partitioning.key_range_partitions import EVERYTHING, Partition
from faultline.systems_under_test.reference.range_kv.system import RangeKv

__all__ = ["RangeCluster"]


class RangeCluster(Cluster):
    """Nodes that have made their first table, unless the story begins earlier."""

    system_type = RangeKv

    def __init__(
        self, size: int = 3, planted_bugs: tuple[str, ...] = (), *, formed: bool = True, **options: str
    ) -> None:
        self.sent: list[tuple[str, str, Any]] = []
        super().__init__(size, planted_bugs, **options)
        if formed:
            self.deliver()
            assert self.table(), "no table"

    def post(self, source: str, target: str, message: Any) -> None:
        self.sent.append((source, target, message))
        super().post(source, target, message)

    def wait(self, milliseconds: int) -> None:
        self.pass_time(1_000 * milliseconds)

    # -- clients --------------------------------------------------------------------------------------------------

    def begin(self, client: str, f: str, key: str | None = None, value: Any = None) -> list[Outcome]:
        """Let `client` begin an operation; its outcome will be in the list."""
        if client not in self.nodes:
            self.ports[client] = StaggeredPorts(self, client)
            self.nodes[client] = self.system.client(
                self.ports[client], self.members, self.members[0], self.options, self.planted_bugs
            )
        ended: list[Outcome] = []
        self.nodes[client].invoke(Operation(0, f, key, value), ended.append)
        return ended

    def ask(self, client: str, f: str, key: str | None = None, value: Any = None) -> Any:
        """Return the value that `client` gets in the end, which must be ok."""
        outcome = self.ended(self.begin(client, f, key, value))
        assert outcome.kind == "ok", outcome
        return outcome.value

    def ended(self, outcomes: list[Outcome]) -> Outcome:
        """The outcome of an operation that has begun, after as much time as it takes."""
        self.deliver()
        for _ in range(150):
            if outcomes:
                return outcomes[0]
            self.wait(10)
        raise AssertionError("the operation never ended")

    def write(self, client: str = "client", **values: str) -> None:
        for key, value in values.items():
            self.ask(client, "write", key, value)

    def scan(self, client: str = "client", start: str = "", end: str | None = None) -> list[tuple[str, Any]]:
        return [(key, value) for key, value in self.ask(client, "scan", None, [start, end])]

    def asked(self, kind: type) -> list[str]:
        """Return the receivers of messages of this kind, in order."""
        return [target for _, target, message in self.sent if isinstance(message, kind)]

    # -- what can be seen -----------------------------------------------------------------------------------------

    def partitions(self) -> list[Partition]:
        """The coordinator's table, in the order of the keys."""
        return list(self.nodes[self.members[0]].coordinator.table.partitions_in(EVERYTHING))

    def table(self) -> list[tuple[str, str]]:
        """The ranges and their hosts, by the coordinator's table."""
        return [(str(each.range), each.address) for each in self.partitions()]

    def open_tasks(self) -> int:
        return len(self.nodes[self.members[0]].coordinator.table.tasks)

    def held(self, node: str) -> dict[str, list[str]]:
        """The keys of each partition on `node`, by its range."""
        partitions = self.nodes[node].host.store.held.values()
        return {str(each.info.range): each.keys for each in partitions}

    def partition_of(self, key: str) -> Partition:
        return next(each for each in self.partitions() if each.range.contains(key))

    def restart_losing_messages(self, node: str) -> None:
        """The node crashes, with what it has sent and not delivered."""
        self.drop(lambda source, target, _: NodeId(node) in (source, target))
        self.restart(node)
