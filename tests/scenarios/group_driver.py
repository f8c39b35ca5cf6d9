"""A hand-cranked transactional-kv with replicated partitions: group 1 is led by athens, 2 by byzantium, 3 by cyrene.

When a leader is away, the next node in this circle takes over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faultline.harness.world.ports import NodeId
from faultline.story.log_cluster import Cluster, StaggeredPorts
from faultline.story.transaction_cluster import REFUSED, WAITS
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import TransactionId, TransactionRef
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import BEFORE_ALL
from faultline.systems_under_test.reference.transactional_kv.group_messages import ToGroup, ToReplica
from faultline.systems_under_test.reference.transactional_kv.group_node import GroupedNode
from faultline.systems_under_test.reference.transactional_kv.options import host_of
from faultline.systems_under_test.reference.transactional_kv.system import TransactionalKv
from faultline.systems_under_test.reference.transactions.messages import (
    AddKey,
    AskCommit,
    Begin,
    GetInTransaction,
    PutInTransaction,
)

__all__ = ["GroupCluster", "GroupTransaction", "between_groups", "replication"]

A_SECOND = 1_000_000
_GROUP_DELAY_US = 10_000


def between_groups(*kinds: type) -> Callable[[str, str, Any], bool]:
    """Matches messages of these kinds to a group."""
    return lambda _, __, message: isinstance(message, ToGroup) and isinstance(message.message, kinds)


def replication(_: str, __: str, message: Any) -> bool:
    """Matches everything within a group."""
    return isinstance(message, ToReplica)


class GroupPorts(StaggeredPorts):
    """Ports whose election timeouts follow the circle."""

    def uniform_us(self, stream: str, low_us: int, high_us: int) -> int:
        members = self.cluster.members
        number = int(stream.split("-")[1])
        place = (members.index(self.node_id) - number + 1) % len(members)
        return low_us + _GROUP_DELAY_US * place


class GroupCluster(Cluster):
    """Three nodes with three groups of three, each with its leader."""

    system_type = TransactionalKv
    ports_type = GroupPorts

    def __init__(self, size: int = 3, planted_bugs: tuple[str, ...] = (), **options: str) -> None:
        super().__init__(size, planted_bugs, **{"replication_factor": "3", **options})
        self.numbers: dict[str, int] = {}
        self.pass_time(A_SECOND)

    # -- groups ---------------------------------------------------------------------------------------------------

    @property
    def groups(self) -> tuple[NodeId, ...]:
        return tuple(NodeId(f"group-{number + 1}") for number in range(len(self.members)))

    def grouped(self, node: str) -> GroupedNode:
        found: GroupedNode = self.nodes[node]
        return found

    def healed(self) -> GroupCluster:
        """Itself, without cuts."""
        self.heal()
        return self

    def leader(self, group: str) -> str:
        """Return the node that serves `group`; the latest, if a deposed one still believes that it does."""
        serving = [
            (node.replicas[NodeId(group)].generation, name)
            for name, node in self.nodes.items()
            if NodeId(group) in node.replicas and node.replicas[NodeId(group)].is_serving
        ]
        return max(serving)[1]

    def replica(self, group: str, node: str | None = None) -> Any:
        return self.grouped(node or self.leader(group)).replicas[NodeId(group)]

    def participant(self, group: str) -> Any:
        return self.replica(group).node.participant

    def key_in(self, group: str, name: str = "key") -> str:
        """A key that `group` holds."""
        return next(key for key in (f"{name}-{n}" for n in range(100)) if host_of(self.groups, key) == group)

    def latest(self, key: str) -> Any:
        """The committed value of `key`, as the leader of its group has it."""
        found = self.participant(host_of(self.groups, key)).snapshots.versions.latest(key)
        return None if found is None else found.value

    def is_quiet(self) -> bool:
        """Nothing is open, locked or unfinished in any group."""
        nodes = [self.replica(group).node for group in self.groups]
        return not any(
            node.participant.open or node.participant.locks._locks or node.coordinator._unfinished for node in nodes
        )

    # -- requests -------------------------------------------------------------------------------------------------

    def request(self, client: str, group: str, kind: Any, *arguments: Any, at: str | None = None) -> int:
        """Give the leader of `group`, or the node `at`, a request; deliver nothing else. Its number."""
        number = self.numbers[client] = self.numbers.get(client, 0) + 1
        self.hand(client, at or self.leader(group), ToGroup(group, client, kind(number, *arguments)))
        return number

    def value(self, client: str, number: int) -> Any:
        """Return the answer so far: a value, `REFUSED`, or `WAITS` when there is none."""
        self.deliver(lambda _, target, __: target == client)
        found = [message for _, message in self.inbox.get(client, []) if message.number == number]
        if not found:
            return WAITS
        return found[0].value if found[0].error is None else REFUSED

    def ref_of(self, client: str, number: int) -> TransactionRef:
        found: TransactionRef = next(m.ref for _, m in self.inbox[client] if m.number == number)
        return found


class GroupTransaction:
    """A transaction whose every request is the test's decision; each is replicated before the next."""

    def __init__(self, cluster: GroupCluster, name: str, group: str) -> None:
        self.cluster = cluster
        self.name = name
        number = cluster.request(name, group, Begin, None, BEFORE_ALL)
        self._settle()
        self.ref = cluster.ref_of(name, number)
        self._positions: dict[str, int] = {}
        self.commit_number = 0

    @property
    def id(self) -> TransactionId:
        return self.ref.id

    def _settle(self) -> None:
        self.cluster.deliver(replication)
        self.cluster.deliver(lambda _, target, __: target == self.name)

    def _touch(self, key: str) -> tuple[NodeId, int]:
        self.cluster.request(self.name, self.id.server, AddKey, self.id, key)
        self._settle()
        group = host_of(self.cluster.groups, key)
        position = self._positions[group] = self._positions.get(group, -1) + 1
        return group, position

    def read(self, key: str, at: str | None = None) -> Any:
        """Read `key`: its value, `WAITS` or `REFUSED`."""
        group, position = self._touch(key)
        number = self.cluster.request(self.name, group, GetInTransaction, self.ref, key, position, at=at)
        return self.cluster.value(self.name, number)

    def write(self, key: str, value: Any) -> Any:
        """Write `key`: None, or `REFUSED`."""
        group, position = self._touch(key)
        number = self.cluster.request(self.name, group, PutInTransaction, self.ref, key, value, position)
        return self.cluster.value(self.name, number)

    def ask_commit(self) -> None:
        """Ask the coordinator to commit; that it prepares now is replicated, and nothing else delivered."""
        self.commit_number = self.cluster.request(self.name, self.id.server, AskCommit, self.id)
        self.cluster.deliver(replication)

    def outcome(self) -> Any:
        """Return the coordinator's answer: True, False, or `WAITS`."""
        return self.cluster.value(self.name, self.commit_number)
