"""The system `coordinated-kv`: a small data cluster that leaves every decision to a consistent core.

The first nodes are the core, the Raft servers of `coordination-service`, unchanged. The rest keep data: they
are members by a lease, elect a controller by another, and follow the partition table that the controller stores in the
core. Each partition has a leader that copies every write to all replicas in sync before it is acknowledged.

docs/explanation/coordinated-data.md shows the messages between these parts, and what happens when one of them fails.

*Limit.* While the core has no majority no lease can be prolonged, so in the read mode `lease` all partitions stop after
one time to live; no write is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from faultline.harness.feature import Feature
from faultline.harness.invariant import Invariant
from faultline.harness.promises import Asked
from faultline.harness.system import OptionDescription, PlantedBug
from faultline.harness.universe import Domains
from faultline.harness.world.ports import READY, Node, NodeId, NodeStatus, Ports
from faultline.systems_under_test.reference.coordinated_kv.client import FUNCTIONS, CoordinatedClient
from faultline.systems_under_test.reference.coordinated_kv.core_session import CoreSession
from faultline.systems_under_test.reference.coordinated_kv.features import FEATURES
from faultline.systems_under_test.reference.coordinated_kv.invariants import coordinated_invariants
from faultline.systems_under_test.reference.coordinated_kv.messages import MESSAGES
from faultline.systems_under_test.reference.coordinated_kv.node import DataNode
from faultline.systems_under_test.reference.coordinated_kv.options import OPTIONS, SETTINGS, CoordinatedSettings
from faultline.systems_under_test.reference.coordinated_kv.planted_bugs import BUGS
from faultline.systems_under_test.reference.leases_and_watches.extension import ServiceParts
from faultline.systems_under_test.reference.leases_and_watches.messages import SERVICE_MESSAGES
from faultline.systems_under_test.reference.leases_and_watches.server import serviced_server
from faultline.systems_under_test.reference.raft.messages import RAFT_MESSAGES
from faultline.systems_under_test.reference.raft.parts import Parts
from faultline.systems_under_test.reference.shared.clock_faults import has_runaway_clocks

__all__ = ["CoordinatedKv"]

_DRIFT_MARGIN_PERCENT = 19
"""The part of a lease that an owner must leave unused when its clock and the leader's drift apart by a tenth each."""


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
    # Moving a partition takes some fifty messages one after the other. With 20 ms each that is longer than the bound of
    # recovery, and with 40 ms a cluster answers no client at all. A refresh takes four messages, up to 40 ms, and its
    # owner has a quarter of the lease for it: one of 150 ms is lost again and again, without any fault.
    domains = Domains(
        nodes=(6, 6, 6, 7, 8, 9),
        options={"client_timeout_ms": ("500", "2000"), "lease_ttl_ms": ("300", "1200", "2400")},
        weather={"latency_us_max": (600, 5_000, 10_000), "fsync_us_max": (200, 5_000, 10_000), "loss": (0.01, 0.02)},
    )
    options: Mapping[str, OptionDescription] = OPTIONS
    tuning: Mapping[str, OptionDescription] = SETTINGS
    planted_bugs: Mapping[str, PlantedBug] = BUGS.planted_bugs
    features: tuple[Feature, ...] = FEATURES
    messages: tuple[type[msgspec.Struct], ...] = (*RAFT_MESSAGES, *SERVICE_MESSAGES, *MESSAGES)

    def node(
        self, ports: Ports, members: tuple[NodeId, ...], options: Mapping[str, str], planted_bugs: frozenset[str]
    ) -> Node:
        """Return a server of the core or a data node. Raise `UsageError` for options, bugs or members it cannot use."""
        settings = CoordinatedSettings.for_members(options, members)
        parts = BUGS.parts(planted_bugs)
        if ports.node_id not in settings.core_members:
            node = BUGS.node(DataNode, planted_bugs)
            return node(ports, settings, parts, lambda enter: CoreSession(ports, settings, enter))
        server = serviced_server(ports, settings.core_members, settings.core, Parts(), ServiceParts())
        return server if settings.aim == "core" else _Bystander(server)

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        planted_bugs: frozenset[str],
    ) -> CoordinatedClient:
        """Return a client that asks `node` for the table first, if it is a data node."""
        return CoordinatedClient(ports, node, CoordinatedSettings.for_members(options, members))

    def not_promised(self, asked: Asked) -> str | None:
        """Return a clause that says why the workload's checks need not hold; None when they must."""
        if has_runaway_clocks(asked):
            return f"no lease has a margin for clocks that run as {'+'.join(asked.faults)} lets them"
        margin = asked.number("lease_margin_percent")
        if "clock-drift" in asked.fault_kinds and margin < _DRIFT_MARGIN_PERCENT:
            return f"a margin of lease_margin_percent={margin} is too small for clocks that drift by a tenth"
        return None

    def invariants(self) -> list[Invariant]:
        """Return new instances of the system's invariants."""
        return coordinated_invariants()


class _Bystander:
    """A server of the core that faults aimed at the leader pass over (option `aim`)."""

    def __init__(self, server: Node) -> None:
        self._server = server

    def start(self) -> None:
        self._server.start()

    def receive(self, source: NodeId, message: Any) -> None:
        self._server.receive(source, message)

    def status(self) -> NodeStatus:
        """Return the status of the server, but for its role."""
        return msgspec.structs.replace(self._server.status(), role=READY)
