"""A hand-cranked cluster of transactional-kv: transactions step by step, and what each node holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from faultline.harness.world.ports import NodeId
from faultline.story.log_cluster import Cluster
from faultline.systems_under_test.patterns.data_partitioning.transaction_locks import LockMode
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import TransactionId, TransactionRef
from faultline.systems_under_test.patterns.data_partitioning.transaction_records import Finished
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import BEFORE_ALL, HybridTimestamp
from faultline.systems_under_test.reference.transactional_kv.messages import OracleTime, OracleTimeRequest
from faultline.systems_under_test.reference.transactional_kv.options import host_of
from faultline.systems_under_test.reference.transactional_kv.system import TransactionalKv
from faultline.systems_under_test.reference.transactions.messages import (
    AddKey,
    AskCommit,
    AskRollback,
    Begin,
    GetInTransaction,
    PutInTransaction,
    ReadAt,
    Reply,
)

__all__ = ["ATHENS", "BYZANTIUM", "CYRENE", "REFUSED", "WAITS", "Transaction", "TransactionCluster"]

WAITS = "waits"
REFUSED = "refused"

ATHENS, BYZANTIUM, CYRENE = "athens", "byzantium", "cyrene"


class TransactionCluster(Cluster):
    """Nodes of transactional-kv."""

    system_type = TransactionalKv

    def __init__(self, size: int | Sequence[str] = 3, planted_bugs: tuple[str, ...] = (), **options: str) -> None:
        super().__init__(size, planted_bugs, **options)
        self.numbers: dict[str, int] = {}

    def key_on(self, node: str, name: str = "key") -> str:
        """A key that `node` holds."""
        return next(key for key in (f"{name}-{n}" for n in range(100)) if host_of(self.members, key) == node)

    # -- requests -------------------------------------------------------------------------------------------------

    def request(self, client: str, node: str, kind: Any, *arguments: Any) -> int:
        """Give `node` a request; deliver nothing else. Its number."""
        number = self.numbers[client] = self.numbers.get(client, 0) + 1
        self.hand(client, node, kind(number, *arguments))
        return number

    def reply(self, client: str, number: int) -> Reply | None:
        """The answer to that request, if it was given."""
        self.deliver(lambda _, target, __: target == client)
        found = [message for _, message in self.inbox.get(client, []) if message.number == number]
        return found[0] if found else None

    def value(self, client: str, number: int) -> Any:
        """Return the answer: a value, `REFUSED`, or `WAITS` when there is none."""
        reply = self.reply(client, number)
        if reply is None:
            return WAITS
        return reply.value if reply.error is None else REFUSED

    def read_at(self, key: str, time: HybridTimestamp, client: str = "philip") -> int:
        """Ask for `key` as of `time`, outside of transactions."""
        return self.request(client, host_of(self.members, key), ReadAt, key, time)

    # -- what can be seen -----------------------------------------------------------------------------------------

    def participant(self, node: str) -> Any:
        return self.nodes[node].participant

    def latest(self, key: str) -> Any:
        """The committed value of `key`, where it is held."""
        found = self.participant(host_of(self.members, key)).snapshots.versions.latest(key)
        return None if found is None else found.value

    def values_now(self) -> dict[str, Any]:
        """The committed values of all keys."""
        stores = [self.look(name, _committed) for name in self.nodes]
        return {key: value for store in stores for key, value in store.items()}

    def version(self, key: str) -> HybridTimestamp:
        """The time of the committed value of `key`."""
        found = self.participant(host_of(self.members, key)).snapshots.versions.latest(key)
        assert found is not None
        time: HybridTimestamp = found.version
        return time

    def locks(self, node: str, transaction: TransactionId) -> dict[str, LockMode]:
        found: dict[str, LockMode] = self.participant(node).locks.locks_of(transaction)
        return found

    def ends(self, transaction: TransactionId) -> dict[str, bool]:
        """Return the nodes at which the transaction ended, each with whether it committed there."""
        ended = self.events_of(Finished)
        return {node: event.time is not None for node, event in ended if event.id == transaction}

    def is_quiet(self) -> bool:
        """Nothing is open, locked or unfinished anywhere."""
        participants = [node.participant for node in self.nodes.values()]
        return not any(participant.open or participant.locks._locks for participant in participants) and not any(
            node.coordinator._unfinished for node in self.nodes.values()
        )


def _committed(node: Any) -> dict[str, Any]:
    store = node.participant.snapshots.versions
    return {key: store.latest(key).value for key, _, _ in store.entries()}


class Transaction:
    """A transaction whose every request is the test's decision; its name is its client's."""

    def __init__(self, cluster: TransactionCluster, name: str, first: TransactionRef | None = None) -> None:
        self.cluster = cluster
        self.name = name
        self._first = first
        self._ref: TransactionRef | None = None
        self._positions: dict[str, int] = {}
        self.commit_number = 0

    @property
    def ref(self) -> TransactionRef:
        assert self._ref is not None
        return self._ref

    @property
    def id(self) -> TransactionId:
        return self.ref.id

    @property
    def coordinator(self) -> str:
        return self.id.server

    def begin(self, node: str, seen: HybridTimestamp = BEFORE_ALL) -> Transaction:
        number = self.cluster.request(self.name, node, Begin, self._first, seen)
        self.cluster.deliver(lambda _, __, message: isinstance(message, OracleTimeRequest | OracleTime))
        reply = self.cluster.reply(self.name, number)
        assert reply is not None and reply.ref is not None
        self._ref = reply.ref
        return self

    def _touch(self, key: str) -> tuple[NodeId, int]:
        host = host_of(self.cluster.members, key)
        if self._ref is None:
            self.begin(host)
        number = self.cluster.request(self.name, self.coordinator, AddKey, self.id, key)
        assert self.cluster.value(self.name, number) is None
        position = self._positions[host] = self._positions.get(host, -1) + 1
        return host, position

    def ask(self, key: str) -> int:
        """Ask to read `key`; the number of the request, to be looked up later."""
        host, position = self._touch(key)
        return self.cluster.request(self.name, host, GetInTransaction, self.ref, key, position)

    def read(self, key: str) -> Any:
        """Read `key`: its value, `WAITS` or `REFUSED`."""
        return self.cluster.value(self.name, self.ask(key))

    def answer(self, number: int) -> Any:
        return self.cluster.value(self.name, number)

    def write(self, key: str, value: Any) -> Any:
        """Write `key`: None, or `REFUSED`."""
        host, position = self._touch(key)
        number = self.cluster.request(self.name, host, PutInTransaction, self.ref, key, value, position)
        return self.cluster.value(self.name, number)

    def ask_commit(self) -> Transaction:
        """Ask the coordinator to commit; deliver nothing."""
        self.commit_number = self.cluster.request(self.name, self.coordinator, AskCommit, self.id)
        return self

    def outcome(self) -> Any:
        """Return the coordinator's answer to `ask_commit`: True, False, or `WAITS`."""
        return self.cluster.value(self.name, self.commit_number)

    def commit(self) -> Any:
        """Commit, with all nodes that can hear it."""
        self.ask_commit()
        self.cluster.deliver()
        return self.outcome()

    def roll_back(self) -> None:
        """Roll back, with all nodes that can hear it."""
        self.cluster.request(self.name, self.coordinator, AskRollback, self.id)
        self.cluster.deliver()
