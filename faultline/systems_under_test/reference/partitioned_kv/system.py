"""The system `partitioned-kv`: keys spread over the nodes in fixed partitions, which move while clients work.

The first nodes form a small consistent core among themselves. Its leader coordinates the members, the table and the
moves. A partition is at one node (replication factor 1), so it is away while its node is down; no write is lost as long
as the disks are not.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from faultline.harness.feature import Feature
from faultline.harness.invariant import Invariant
from faultline.harness.promises import Asked
from faultline.harness.system import OptionDescription, PlantedBug
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.reference.partitioned_kv.client import FUNCTIONS, PartitionedClient
from faultline.systems_under_test.reference.partitioned_kv.core_server import core_server
from faultline.systems_under_test.reference.partitioned_kv.features import FEATURES
from faultline.systems_under_test.reference.partitioned_kv.invariants import partition_invariants
from faultline.systems_under_test.reference.partitioned_kv.messages import MESSAGES
from faultline.systems_under_test.reference.partitioned_kv.node import PartitionedNode
from faultline.systems_under_test.reference.partitioned_kv.options import OPTIONS, PartitionSettings
from faultline.systems_under_test.reference.partitioned_kv.planted_bugs import BUGS
from faultline.systems_under_test.reference.raft.messages import RAFT_MESSAGES

__all__ = ["PartitionedKv"]


class PartitionedKv:
    """The system as the harness sees it: implements `NodeSystem`."""

    name = "partitioned-kv"
    promise = "every key is a linearizable register, also while its partition moves to another node"
    summary = "fixed partitions on many nodes, moved by a coordinator whose table is in a replicated log"
    patterns = (
        "fixed-partitions",
        "consistent-core",
        "replicated-log",
        "write-ahead-log",
        "heartbeat",
        "idempotent-receiver",
        "generation-clock",
    )
    functions = FUNCTIONS
    options: Mapping[str, OptionDescription] = OPTIONS
    planted_bugs: Mapping[str, PlantedBug] = BUGS.planted_bugs
    features: tuple[Feature, ...] = FEATURES
    messages: tuple[type[msgspec.Struct], ...] = (*RAFT_MESSAGES, *MESSAGES)

    def node(
        self, ports: Ports, members: tuple[NodeId, ...], options: Mapping[str, str], planted_bugs: frozenset[str]
    ) -> PartitionedNode:
        """Return a node with empty memory. Raise `UsageError` for options or planted bugs it cannot use."""
        settings = PartitionSettings.for_cluster(options, len(members))
        return BUGS.node(PartitionedNode, planted_bugs)(ports, members, settings, BUGS.parts(planted_bugs), core_server)

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        planted_bugs: frozenset[str],
    ) -> PartitionedClient:
        """Return a client that asks `node` for the table first."""
        settings = PartitionSettings.for_cluster(options, len(members))
        return BUGS.client(PartitionedClient, planted_bugs)(ports, members, node, settings)

    def not_promised(self, asked: Asked) -> str | None:
        """Return a clause that says why the workload's checks need not hold; None when they must."""
        late, least = asked.number("late_nodes"), asked.number("minimum_cluster_size")
        if late and asked.nodes - late < least:
            return f"with late_nodes={late} of {asked.nodes} fewer than minimum_cluster_size={least} are there at first"
        return None

    def invariants(self) -> list[Invariant]:
        """Return new instances of the system's invariants."""
        return partition_invariants()
