"""The system `coordinated-kv`: a small data cluster that leaves every decision to a consistent core.

The first nodes are the core, servers of `consistent-core` with leases and watches, unchanged. The rest keep data: they
are members by a lease, elect a controller by another, and follow the partition table that the controller stores in the
core. Each partition has a leader that copies every write to all replicas in sync before it is acknowledged.

docs/explanation/coordinated-data.md tells what talks to what, and what happens when something fails.

*Limit.* While the core has no majority nobody can prolong a lease, so in the read mode `lease` all partitions stop
after one time to live; nothing is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from faultline.harness.feature import Feature
from faultline.harness.invariant import Invariant
from faultline.harness.promises import Asked
from faultline.harness.system import OptionDescription, PlantedBug
from faultline.harness.world.ports import READY, Node, NodeId, NodeStatus, Ports
from faultline.systems_under_test.reference.consistent_core.system import ConsistentCore
from faultline.systems_under_test.reference.coordinated_kv.client import FUNCTIONS, CoordinatedClient
from faultline.systems_under_test.reference.coordinated_kv.features import FEATURES
from faultline.systems_under_test.reference.coordinated_kv.invariants import coordinated_invariants
from faultline.systems_under_test.reference.coordinated_kv.limits import not_promised
from faultline.systems_under_test.reference.coordinated_kv.messages import MESSAGES
from faultline.systems_under_test.reference.coordinated_kv.options import OPTIONS, CoordinatedSettings
from faultline.systems_under_test.reference.coordinated_kv.planted_bugs import PLANTED_BUGS, mutated_parts, node_class

__all__ = ["CoordinatedKv"]


class CoordinatedKv:
    """The system as the harness sees it: implements `NodeSystem`."""

    name = "coordinated-kv"
    promise = "every key is linearizable, also while leaders of partitions, the controller and the core's leader change"
    summary = "replicated partitions on data nodes, with members, controller and partition table in a consistent core"
    patterns = (
        "consistent-core",
        "lease",
        "state-watch",
        "fixed-partitions",
        "leader-and-followers",
        "generation-clock",
        "high-water-mark",
        "write-ahead-log",
        "idempotent-receiver",
        "singular-update-queue",
    )
    functions = FUNCTIONS
    usual_workload = "register"
    usual_nodes = 6
    options: Mapping[str, OptionDescription] = OPTIONS
    planted_bugs: Mapping[str, PlantedBug] = PLANTED_BUGS
    features: tuple[Feature, ...] = FEATURES
    messages: tuple[type[msgspec.Struct], ...] = (*ConsistentCore.messages, *MESSAGES)

    def node(
        self, ports: Ports, members: tuple[NodeId, ...], options: Mapping[str, str], planted_bugs: frozenset[str]
    ) -> Node:
        """A server of the core or a data node. Raises UsageError for options, planted bugs or members it cannot use."""
        settings = CoordinatedSettings.read(options, members)
        parts = mutated_parts(planted_bugs)
        if ports.node_id not in settings.core_members:
            return node_class(planted_bugs)(ports, settings, parts)
        server = ConsistentCore().node(ports, settings.core_members, settings.core_options, frozenset())
        return server if settings.aim == "core" else _Bystander(server)

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        planted_bugs: frozenset[str],
    ) -> CoordinatedClient:
        """A client that asks `node` for the table first, if it is a data node."""
        return CoordinatedClient(ports, node, CoordinatedSettings.read(options, members))

    def not_promised(self, asked: Asked) -> str | None:
        """Why what a workload judges by need not hold, in a clause; None when it must."""
        return not_promised(asked)

    def invariants(self) -> list[Invariant]:
        """Fresh instances of the system's invariants."""
        return coordinated_invariants()


class _Bystander:
    """A server of the core that faults aimed at the leader do not mean (option `aim`)."""

    def __init__(self, server: Node) -> None:
        self._server = server

    def start(self) -> None:
        """See `Node`."""
        self._server.start()

    def receive(self, source: NodeId, message: Any) -> None:
        """See `Node`."""
        self._server.receive(source, message)

    def status(self) -> NodeStatus:
        """What the server says, but for its role."""
        return msgspec.structs.replace(self._server.status(), role=READY)
