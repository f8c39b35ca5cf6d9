"""The hand-cranked cluster with nodes of `range-transactions`, and its real clients."""

from __future__ import annotations

from typing import Any

from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome
from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.data_partitioning.key_range_partitions import Partition
from faultline.systems_under_test.reference.range_transactions.messages import FromRange, ToRange
from faultline.systems_under_test.reference.range_transactions.system import RangeTransactions
from faultline.testing.hand_cranked import HandCrankedCluster

__all__ = ["TransactionsOnRanges", "carries", "from_range"]


def carries(kind: type) -> Any:
    """Return a filter for messages to a range of this kind."""
    return lambda _source, _target, message: isinstance(message, ToRange) and isinstance(message.message, kind)


def from_range(kind: type) -> Any:
    """Return a filter for messages from a range of this kind."""
    return lambda _source, _target, message: isinstance(message, FromRange) and isinstance(message.message, kind)


class TransactionsOnRanges(HandCrankedCluster):
    """Three nodes with ranges that begin at the `splits`, and change only when a test says so."""

    def __init__(self, splits: str, planted_bugs: tuple[str, ...] = (), **options: str) -> None:
        usual = {"splits": splits, "move_every_ms": "0", "spread": "never", "error_bound_ms": "1"}
        super().__init__(RangeTransactions(), 3, planted_bugs, **usual, **options)
        self.deliver()
        assert self.table_coordinator.table.partitions, "no table"
        # A coordinator that finds out only when it sends would resend a tick later.
        for node in self.members:
            self.nodes[node].routes.refresh()
        self.deliver()

    @property
    def table_coordinator(self) -> Any:
        """The coordinator of the table."""
        return self.nodes[self.members[0]].table_coordinator

    def partition_of(self, key: str) -> Partition:
        """Return the range of `key`, by the table."""
        found = self.table_coordinator.table.partition_for(key)
        assert found is not None
        return found

    def move(self, key: str, target: str) -> None:
        """Let the range of `key` move to `target`, as far as messages are delivered."""
        self.table_coordinator.record(self.table_coordinator.table.move_of(self.partition_of(key).id, target))

    def split(self, at: str) -> None:
        """Let the range of the key `at` be split there, as far as messages are delivered."""
        partition = self.partition_of(at)
        self.table_coordinator.record(
            self.table_coordinator.table.split_of(partition.id, partition.generation, at, "load")
        )

    def begin(self, client: str, steps: list[list[Any]]) -> list[Outcome]:
        """Let `client` begin a transaction of these steps; its outcome will be in the list."""
        if client not in self.nodes:
            self.ports[client] = self.ports_type(self, client)
            self.nodes[client] = self.system.client(
                self.ports[client], self.members, self.members[0], self.options, self.planted_bugs
            )
        ended: list[Outcome] = []
        self.nodes[client].invoke(Operation(0, "txn", None, steps), ended.append)
        return ended

    def ended(self, outcomes: list[Outcome]) -> Outcome:
        """Return the outcome of a transaction, after as much time as it takes."""
        self.deliver()
        for _ in range(300):
            if outcomes:
                return outcomes[0]
            self.pass_time(10_000)
            self.deliver()
        raise AssertionError("the transaction never ended")

    def ask(self, client: str, steps: list[list[Any]]) -> Any:
        """Return the answer to a transaction, which must commit."""
        outcome = self.ended(self.begin(client, steps))
        assert outcome.kind == "ok", outcome
        return outcome.value

    def read(self, *keys: str) -> list[Any]:
        """Return the values of the keys at one time."""
        return [value for _, _, value in self.ask("reader", [["r", key, None] for key in keys])]

    def settle(self, milliseconds: int = 500) -> None:
        """Deliver all that is sent in this time."""
        for _ in range(milliseconds // 10):
            self.pass_time(10_000)
            self.deliver()

    def prepared_on(self, node: str) -> list[str]:
        """Return the keys that prepared transactions have locked on `node`."""
        held = self.nodes[NodeId(node)].store.held.values()
        return sorted(key for each in held for promise in each.participant.promises() for key in promise.locks)
