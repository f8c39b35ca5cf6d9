"""Coordination service: leases, watches and sessions in a small cluster, by which larger ones elect and lock.

*Problem.* Nodes of a large cluster must agree on who is a member, who leads and who owns a resource, and learn of each
change, although any of them may stop without a word.

*Idea.* A few servers run a replicated log with a key-value store whose keys form a tree. A *lease* ends by itself when
its owner does not refresh it, and takes the keys that are attached to it along; the index of its entry is a token by
which a guarded resource refuses former owners. A *watch* tells a client each change below a path, without a gap.

The servers are those of the Raft kernel with the extension `leases_and_watches`; their style is fixed: elections by
votes with pre-vote, entries pushed, reads through a round of heartbeats. `consistent-core` has the variants of these.

*Invariants.* Those of the Raft kernel (`raft.invariants`), and LS-I2 to LS-I7 (`leases_and_watches.invariants`).

*Tolerates.* Any minority of servers crashed, paused or cut off, everything a network does to messages, and clocks that
drift by less than the margin of the leases.

*Does not tolerate.* A majority of servers without their disks; leases under clocks without a bound on their drift.

*Workloads.* `locks`, `watches`, `key-watches`, and those of a key-value store: `register`, `append` and others.

*Planted bugs.* See `lease_planted_bugs` and `watch_planted_bugs`.

Sources: Patterns of Distributed Systems, chapters on Consistent Core, Lease and State Watch; etcd and ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from faultline.harness.feature import Feature
from faultline.harness.invariant import Invariant
from faultline.harness.promises import Asked
from faultline.harness.system import OptionDescription, PlantedBug
from faultline.harness.universe import Domains
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.reference.coordination_service.features import FEATURES
from faultline.systems_under_test.reference.coordination_service.limits import not_promised
from faultline.systems_under_test.reference.coordination_service.options import OPTIONS, SETTINGS, CoordinationSettings
from faultline.systems_under_test.reference.coordination_service.planted_bugs import BUGS
from faultline.systems_under_test.reference.leases_and_watches.client import SERVICE_FUNCTIONS, ServicedClient
from faultline.systems_under_test.reference.leases_and_watches.invariants import SERVICE_INVARIANTS
from faultline.systems_under_test.reference.leases_and_watches.messages import SERVICE_MESSAGES
from faultline.systems_under_test.reference.leases_and_watches.server import serviced_server
from faultline.systems_under_test.reference.raft.invariants.agreement import raft_invariants
from faultline.systems_under_test.reference.raft.key_value_server import KeyValueServer
from faultline.systems_under_test.reference.raft.messages import RAFT_MESSAGES
from faultline.systems_under_test.reference.shared.key_commands import FUNCTIONS

__all__ = ["CoordinationService"]


class CoordinationService:
    """The system as the harness sees it: implements `NodeSystem`."""

    name = "coordination-service"
    promise = (
        "a lease has one owner at a time, a watch tells each change once and in order, and each key is linearizable"
    )
    summary = "leases, watches and sessions on a Raft kernel: a tree of keys with owners that are told of changes"
    patterns = (
        "consistent-core",
        "lease",
        "state-watch",
        "replicated-log",
        "leader-and-followers",
        "generation-clock",
        "heartbeat",
        "high-water-mark",
        "idempotent-receiver",
        "request-waiting-list",
        "singular-update-queue",
    )
    functions = (*FUNCTIONS, *SERVICE_FUNCTIONS)
    usual_workload = "locks"
    usual_nodes = 3
    # With each confirmation a watcher catches up by as many events as it may leave unconfirmed. One event every 600 ms
    # is too slow to catch up before the run ends.
    domains = Domains(
        options={"watch_unconfirmed_max": ("6", "25", "50", "200", "400"), "watch_confirm_ms": ("37", "75", "300")}
    )
    options: Mapping[str, OptionDescription] = OPTIONS
    tuning: Mapping[str, OptionDescription] = SETTINGS
    planted_bugs: Mapping[str, PlantedBug] = BUGS.planted_bugs
    features: tuple[Feature, ...] = FEATURES
    messages: tuple[type[msgspec.Struct], ...] = (*RAFT_MESSAGES, *SERVICE_MESSAGES)

    def node(
        self, ports: Ports, members: tuple[NodeId, ...], options: Mapping[str, str], planted_bugs: frozenset[str]
    ) -> KeyValueServer:
        """Return a server with empty memory. Raise `UsageError` for options or planted bugs it cannot use."""
        parts = BUGS.parts(planted_bugs)
        return serviced_server(ports, members, CoordinationSettings.read(options), parts, parts.services)

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        planted_bugs: frozenset[str],
    ) -> ServicedClient:
        """Return a client that talks to `node` first."""
        return BUGS.client(ServicedClient, planted_bugs)(ports, members, node, CoordinationSettings.read(options))

    def not_promised(self, asked: Asked) -> str | None:
        """Return a clause that says why what a workload judges by need not hold; None when it must."""
        return not_promised(asked)

    def invariants(self) -> list[Invariant]:
        """Return fresh instances of the system's invariants."""
        return [*raft_invariants(), *(kind() for kind in SERVICE_INVARIANTS)]
