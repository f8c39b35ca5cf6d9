"""The system `partitioned-kv`: keys spread over the nodes in fixed partitions, which move while clients work.

The first nodes form a small consistent core among themselves; its leader coordinates: members, table, moves. A
partition is at one node (replication factor 1), so it is away while its node is down; nothing is lost as long as disks
are not.
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
from faultline.systems_under_test.reference.partitioned_kv.features import FEATURES
from faultline.systems_under_test.reference.partitioned_kv.invariants import partition_invariants
from faultline.systems_under_test.reference.partitioned_kv.limits import not_promised
from faultline.systems_under_test.reference.partitioned_kv.messages import MESSAGES
from faultline.systems_under_test.reference.partitioned_kv.node import PartitionedNode
from faultline.systems_under_test.reference.partitioned_kv.options import OPTIONS, PartitionSettings
from faultline.systems_under_test.reference.partitioned_kv.planted_bugs import (
    PLANTED_BUGS,
    client_class,
    mutated_parts,
    node_class,
)

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
    planted_bugs: Mapping[str, PlantedBug] = PLANTED_BUGS
    features: tuple[Feature, ...] = FEATURES
    messages: tuple[type[msgspec.Struct], ...] = MESSAGES

    def node(
        self, ports: Ports, members: tuple[NodeId, ...], options: Mapping[str, str], planted_bugs: frozenset[str]
    ) -> PartitionedNode:
        """A node with empty memory over `ports`. Raises UsageError for options or planted bugs it cannot use."""
        settings = PartitionSettings.read(options, len(members))
        return node_class(planted_bugs)(ports, members, settings, mutated_parts(planted_bugs))

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        planted_bugs: frozenset[str],
    ) -> PartitionedClient:
        """A client that asks `node` for the table first."""
        return client_class(planted_bugs)(ports, members, node, PartitionSettings.read(options, len(members)))

    def not_promised(self, asked: Asked) -> str | None:
        """Why what a workload judges by need not hold, in a clause; None when it must."""
        return not_promised(asked)

    def invariants(self) -> list[Invariant]:
        """Fresh instances of the system's invariants."""
        return partition_invariants()
