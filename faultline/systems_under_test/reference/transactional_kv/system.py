"""The system `transactional-kv`: keys spread over nodes, and transactions over any of them by two-phase commit.

By default nothing is replicated: a node that is down takes its keys with it, and blocks what it had promised. With
`replication_factor=3` each partition is a group of three nodes with a replicated log (`groups`, `group_replica`), and
as long as two of them live and reach each other, nothing is blocked and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from faultline.harness.feature import Feature
from faultline.harness.invariant import Invariant
from faultline.harness.promises import Asked
from faultline.harness.system import OptionDescription, PlantedBug
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.reference.transactional_kv.client import TransactionalKvClient
from faultline.systems_under_test.reference.transactional_kv.features import FEATURES
from faultline.systems_under_test.reference.transactional_kv.group_client import GroupClient
from faultline.systems_under_test.reference.transactional_kv.group_invariants import group_invariants
from faultline.systems_under_test.reference.transactional_kv.group_messages import GROUP_MESSAGES
from faultline.systems_under_test.reference.transactional_kv.group_node import GroupedNode
from faultline.systems_under_test.reference.transactional_kv.invariants import transactional_kv_invariants
from faultline.systems_under_test.reference.transactional_kv.limits import not_promised
from faultline.systems_under_test.reference.transactional_kv.messages import MESSAGES
from faultline.systems_under_test.reference.transactional_kv.node import TransactionalKvNode
from faultline.systems_under_test.reference.transactional_kv.options import OPTIONS, TransactionSettings
from faultline.systems_under_test.reference.transactional_kv.planted_bugs import PLANTED_BUGS, mutated_parts
from faultline.systems_under_test.reference.transactional_kv.programs import FUNCTIONS

__all__ = ["TransactionalKv"]


class TransactionalKv:
    """The system as the harness sees it: implements `NodeSystem`."""

    name = "transactional-kv"
    promise = "transactions over all keys are atomic and strictly serializable"
    summary = (
        "keys spread over nodes or replicated groups, transactions by two-phase commit, three policies for conflicts"
    )
    patterns: tuple[str, ...] = (
        "two-phase-commit",
        "write-ahead-log",
        "segmented-log",
        "versioned-value",
        "hybrid-clock",
        "lamport-clock",
        "singular-update-queue",
        "low-water-mark",
        "leader-and-followers",
        "replicated-log",
        "high-water-mark",
    )
    functions: tuple[str, ...] = FUNCTIONS
    usual_workload = "txn-append"
    usual_nodes = 3
    options: Mapping[str, OptionDescription] = OPTIONS
    planted_bugs: Mapping[str, PlantedBug] = PLANTED_BUGS
    features: tuple[Feature, ...] = FEATURES
    messages: tuple[type[msgspec.Struct], ...] = (*MESSAGES, *GROUP_MESSAGES)

    def node(
        self, ports: Ports, members: tuple[NodeId, ...], options: Mapping[str, str], planted_bugs: frozenset[str]
    ) -> TransactionalKvNode | GroupedNode:
        """A node with empty memory over `ports`. Raises UsageError for options or planted bugs it cannot use."""
        settings = TransactionSettings.read(options)
        node = GroupedNode if settings.is_replicated else TransactionalKvNode
        return node(ports, members, settings, mutated_parts(planted_bugs))

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        planted_bugs: frozenset[str],
    ) -> TransactionalKvClient:
        """A client; it talks to whichever nodes hold the keys of its transactions, not to `node` first."""
        settings = TransactionSettings.read(options)
        return (GroupClient if settings.is_replicated else TransactionalKvClient)(ports, members, settings)

    def not_promised(self, asked: Asked) -> str | None:
        """Why what a workload judges by need not hold, in a clause; None when it must."""
        return not_promised(asked)

    def invariants(self) -> list[Invariant]:
        """Fresh instances of the system's invariants."""
        return [*transactional_kv_invariants(), *group_invariants()]
