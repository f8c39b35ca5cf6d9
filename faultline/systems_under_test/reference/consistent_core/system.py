"""Consistent Core: a small cluster that keeps a little data linearizable, so that larger ones can rely on it.

*Problem.* A cluster of hundreds of servers needs a few decisions that all agree on: its members, the owners of keys.
Quorums over all of them would be slow, and slower with each server.

*Idea.* Three or five servers run a replicated log and keep a key-value store on top of it. All operations go to their
leader, which the client library finds by asking any server and following its redirect. Requests are numbered and
repeated under the same number, so that a retry after a lost answer has no second effect.

It is joined from these patterns: write-ahead log, segmented log, low-water mark, generation clock, leader and
followers, heartbeat, quorum, replicated log, high-water mark, singular update queue, request waiting list, idempotent
receiver, single socket channel, request batch, request pipeline. `raft.server` shows how. Two systems of their own
stand on the same servers: `coordination-service` with leases and watches, `follower-reads` with versions and
follower reads.

*Invariants.* Those of the servers in `raft.invariants`: of generations, votes and the log in `agreement` and
`replicated_log`, of leaders in `leadership`, of clients' sessions in `sessions`, of files in `storage`, of requests on
their way in `communication`; and SC-I3 and RP-I3 in `wire_invariants`.

*Tolerates.* Any minority of servers crashed, paused or cut off, and everything a network does to messages; clocks of
any kind in the read modes `read-index` and `log`.

*Does not tolerate.* A majority of servers without their disks. Read mode `leader-lease`: monotonic clocks that drift
apart by more than the margin between lease and election timeout. Read mode `stale` promises no more than a prefix of
the order of updates per server; its stale reads are expected.

*Workloads.* `register` (read, write, compare-and-set on independent keys); `transfer`, `counter`, `set`, `sequential`,
`sessions`, `unique-ids` (see `key_commands`).

*Checkers.* Linearizability per key; the invariants.

*Planted bugs.* See `planted_bugs`, for the servers as a whole and their communication, and a module each for the log
with its mark and reads (`replicated_log_planted_bugs`), elections, the collecting leader, sessions, log files and
snapshots (`storage_planted_bugs`), disks and the wire.

Variants: `find_leader=forward`, where servers pass requests on (`forwarding`); `wire=channel`, a setting behind
`tuning`, where servers and clients talk over channels (`wire`); the read modes; elections.

Sources: Patterns of Distributed Systems ch. 25 and the chapters of the patterns; Raft; etcd and ZooKeeper as the
stores of this kind.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from faultline.harness.feature import Feature
from faultline.harness.invariant import Invariant
from faultline.harness.options import FormerOption
from faultline.harness.promises import Asked
from faultline.harness.system import OptionDescription, PlantedBug, PortClient
from faultline.harness.universe import Domains
from faultline.harness.world.ports import Node, NodeId, Ports
from faultline.systems_under_test.reference.consistent_core.features import FEATURES
from faultline.systems_under_test.reference.consistent_core.forwarding import (
    FORWARDING_MESSAGES,
    Forwarding,
    RelayingPorts,
)
from faultline.systems_under_test.reference.consistent_core.leader_key_node import LeaderKeyNode
from faultline.systems_under_test.reference.consistent_core.limits import not_promised
from faultline.systems_under_test.reference.consistent_core.options import (
    FORMER_OPTIONS,
    FORMER_PLANTED_BUGS,
    OPTIONS,
    SETTINGS,
    CoreSettings,
)
from faultline.systems_under_test.reference.consistent_core.parts import CoreParts
from faultline.systems_under_test.reference.consistent_core.planted_bugs import BUGS
from faultline.systems_under_test.reference.consistent_core.wire import (
    ChannelPorts,
    ClientOverChannels,
    NodeOverChannels,
)
from faultline.systems_under_test.reference.consistent_core.wire_connections import WIRE_MESSAGES
from faultline.systems_under_test.reference.consistent_core.wire_invariants import WIRE_INVARIANTS
from faultline.systems_under_test.reference.consistent_core.wire_line import WireParts, WireTiming
from faultline.systems_under_test.reference.raft.client import KeyValueClient
from faultline.systems_under_test.reference.raft.invariants.agreement import raft_invariants
from faultline.systems_under_test.reference.raft.key_value_server import KeyValueServer
from faultline.systems_under_test.reference.raft.messages import RAFT_MESSAGES
from faultline.systems_under_test.reference.raft.parts import replicas_of, store_of
from faultline.systems_under_test.reference.raft.settings import ELECTIONS
from faultline.systems_under_test.reference.shared.key_commands import FUNCTIONS

__all__ = ["ConsistentCore"]

_MESSAGES = (*RAFT_MESSAGES, *FORWARDING_MESSAGES)
"""The messages of servers and clients, whatever carries them."""


class ConsistentCore:
    """The system as the harness sees it: implements `NodeSystem`."""

    name = "consistent-core"
    promise = "a linearizable key-value store: every read returns the latest completed write of its key"
    summary = "Raft-style replicated log in pattern modules, with redirecting servers and retrying clients"
    patterns = (
        "write-ahead-log",
        "segmented-log",
        "low-water-mark",
        "generation-clock",
        "leader-and-followers",
        "heartbeat",
        "quorum",
        "replicated-log",
        "high-water-mark",
        "singular-update-queue",
        "request-waiting-list",
        "idempotent-receiver",
        "single-socket-channel",
        "request-batch",
        "request-pipeline",
        "consistent-core",
    )
    functions = FUNCTIONS
    detected_damage = frozenset({"disk-corrupt"})
    # A command that no batch can hold is refused for good, and batches that wait for long never catch up with clients.
    # A leader that collects needs three other options to fit; drawn alone, it would be refused again and again.
    # The wire came later: drawn with the others, it would change what every seed has drawn before.
    domains = Domains(
        options={
            "batch_linger_ms": ("5", "20"),
            "batch_size_bytes": ("256", "1024", "65536"),
            "election": tuple(style for style in ELECTIONS if style != "collecting"),
            "wire": (),
            "wire_linger_ms": (),
        }
    )
    options: Mapping[str, OptionDescription] = OPTIONS
    tuning: Mapping[str, OptionDescription] = SETTINGS
    former_options: Mapping[str, FormerOption] = FORMER_OPTIONS
    former_planted_bugs: Mapping[str, str] = FORMER_PLANTED_BUGS
    planted_bugs: Mapping[str, PlantedBug] = BUGS.planted_bugs
    features: tuple[Feature, ...] = FEATURES
    messages: tuple[type[msgspec.Struct], ...] = (*_MESSAGES, *WIRE_MESSAGES)

    def node(
        self, ports: Ports, members: tuple[NodeId, ...], options: Mapping[str, str], planted_bugs: frozenset[str]
    ) -> Node:
        """Return a server with empty memory. Raises UsageError for options, planted bugs or members it cannot use."""
        parts = BUGS.parts(planted_bugs)
        settings = CoreSettings.read(options)
        if settings.wire == "port":
            return _node(ports, members, settings, parts, planted_bugs)
        channels = _channels(ports, members, settings, parts.wire)
        return NodeOverChannels(_node(channels, members, settings, parts, planted_bugs), channels)

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        planted_bugs: frozenset[str],
    ) -> PortClient:
        """Return a client that talks to `node` first."""
        settings = CoreSettings.read(options)
        replicas = replicas_of(members, settings)
        first = node if node in replicas else replicas[0]
        client = BUGS.client(KeyValueClient, planted_bugs)
        if settings.wire == "port":
            return client(ports, replicas, first, settings)
        channels = _channels(ports, members, settings, BUGS.parts(planted_bugs).wire)
        return ClientOverChannels(client(channels, replicas, first, settings), channels)

    def not_promised(self, asked: Asked) -> str | None:
        """Return why what a workload judges by need not hold, in a clause; None when it must."""
        return not_promised(asked)

    def invariants(self) -> list[Invariant]:
        """Return fresh instances of the system's invariants."""
        return [*raft_invariants(), *(kind() for kind in WIRE_INVARIANTS)]


def _node(
    ports: Ports,
    members: tuple[NodeId, ...],
    settings: CoreSettings,
    parts: CoreParts,
    planted_bugs: frozenset[str],
) -> KeyValueServer | LeaderKeyNode:
    """Return a server, or the store of its leader key."""
    leader_key_store = store_of(members, settings)
    if leader_key_store is not None and leader_key_store == ports.node_id:
        return LeaderKeyNode(ports, settings.leader_key_ttl_us)
    forwards = settings.find_leader == "forward"
    if forwards:
        ports = RelayingPorts(ports)
    server = BUGS.node(KeyValueServer, planted_bugs)(ports, members, settings, parts)
    if forwards:
        server.extend(Forwarding(server))
    return server


def _channels(ports: Ports, members: tuple[NodeId, ...], settings: CoreSettings, parts: WireParts) -> ChannelPorts:
    """Return ports with channels, which show signs of life as often as a leader does."""
    timing = WireTiming(
        heartbeat_interval_us=settings.heartbeat_interval_us,
        linger_us=settings.wire_linger_us,
        in_flight_max=settings.in_flight_max,
    )
    return ChannelPorts(ports, members, _MESSAGES, timing, parts)
