"""Consistent Core: a small cluster that keeps a little data linearizable, so that larger ones can rely on it.

*Problem.* A cluster of hundreds of servers needs a few decisions that all agree on: its members, the owners of keys.
Quorums over all of them would be slow, and slower with each server.

*Idea.* Three or five servers run a replicated log and keep a key-value store on top of it. All operations go to their
leader, which the client library finds by asking any server and following its redirect. Requests are numbered and
repeated under the same number, so that a retry after a lost answer has no second effect.

It is joined from these patterns: write-ahead log, segmented log, low-water mark, generation clock, leader and
followers, heartbeat, quorum, replicated log, high-water mark, singular update queue, request waiting list, idempotent
receiver, single socket channel, request batch, request pipeline. `node` shows how. With the options
`store=versioned` and `read_from` it also keeps versions and reads from followers: `follower_reads.node`. With
`services=on` keys form a tree that can be listed by path and watched, and leases end by themselves, with the keys that
are attached to them: `services.node`, and the patterns Lease and State Watch.

*Invariants.* See `invariants`: LDR-I1 to LDR-I3, GEN-I1, GEN-I2, LOG-I1, LOG-I2, LOG-I7, LOG-R14,
HWM-I1, HWM-I5; `session_invariants`: IDR-I1 to IDR-I4; `storage_invariants`: WAL-I1, WAL-I3, SEG-I2, LWM-I1 to LWM-I5;
`replicated_log_invariants`: LOG-I3, LOG-I5, LOG-I8, LOG-R15, HWM-I2, HWM-I3; and `follower_reads.invariants`: VVL-I1 to
VVL-I4, FR-I3, FR-I4, FR-I6, FR-R9, FR-R14; `services.invariants`: LS-I2 to LS-I7.

*Tolerates.* Any minority of servers crashed, paused or cut off, and everything a network does to messages; clocks of
any kind in the read modes `read-index` and `log`.

*Does not tolerate.* A majority of servers without their disks. Read mode `leader-lease`: monotonic clocks that drift
apart by more than the margin between lease and election timeout. Read mode `stale` promises no more than a prefix of
the order of updates per server; its stale reads are expected. Reads from followers promise what their mode says.

*Workloads.* `register` (read, write, compare-and-set on independent keys); `transfer`, `counter`, `set`, `sequential`,
`sessions`, `unique-ids` (see `key_commands`); `follower-reads`, `read-your-writes`, `bounded-staleness`; `locks` and
`watches` with `services=on`.

*Checkers.* Linearizability per key; `leased-lock`; `watches`; the invariants.

*Planted bugs.* See `planted_bugs`: `stale-read`, `ack-before-quorum`, `ack-before-fsync`, `vote-twice`,
`commit-old-generation`, `no-duplicate-detection`, `wall-clock-lease`, `no-truncate-on-conflict`; of communication
`no-in-flight-limit`, `places-not-released`, `batch-without-linger-timer`, `oversize-blocks-batch`,
`ack-batch-before-flush`, `late-answer-taken`; those of the log, the mark and the reads in
`replicated_log_planted_bugs`, those of leases in `lease_planted_bugs`, of watches in `watch_planted_bugs`, those of
versions and follower reads in `follower_reads.planted_bugs`, those of log files and snapshots in
`storage_planted_bugs`.

Variants: `find_leader=forward`, where servers pass requests on (`forwarding`); the read modes; elections.

Sources: Patterns of Distributed Systems ch. 25 and the chapters of the patterns; Raft; etcd and ZooKeeper as the
stores of this kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from faultline.harness.feature import Feature
from faultline.harness.invariant import Invariant
from faultline.harness.options import FormerOption
from faultline.harness.promises import Asked
from faultline.harness.system import OptionDescription, PlantedBug
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_replication.idempotent_receiver import ClientSessions
from faultline.systems_under_test.reference.consistent_core.features import FEATURES
from faultline.systems_under_test.reference.consistent_core.follower_reads.client import FollowerReadingClient
from faultline.systems_under_test.reference.consistent_core.follower_reads.extension import FollowerReads, ReadParts
from faultline.systems_under_test.reference.consistent_core.follower_reads.invariants import follower_read_invariants
from faultline.systems_under_test.reference.consistent_core.follower_reads.messages import FOLLOWER_READ_MESSAGES
from faultline.systems_under_test.reference.consistent_core.forwarding import (
    FORWARDING_MESSAGES,
    Forwarding,
    RelayingPorts,
)
from faultline.systems_under_test.reference.consistent_core.leader_key_node import LeaderKeyNode
from faultline.systems_under_test.reference.consistent_core.limits import not_promised
from faultline.systems_under_test.reference.consistent_core.options import (
    FORMER_OPTIONS,
    OPTIONS,
    SETTINGS,
    CoreSettings,
)
from faultline.systems_under_test.reference.consistent_core.planted_bugs import BUGS
from faultline.systems_under_test.reference.consistent_core.stamped_store import StampedStore
from faultline.systems_under_test.reference.leases_and_watches.client import SERVICE_FUNCTIONS, ServicedClient
from faultline.systems_under_test.reference.leases_and_watches.extension import ServiceParts, Services
from faultline.systems_under_test.reference.leases_and_watches.invariants import SERVICE_INVARIANTS
from faultline.systems_under_test.reference.leases_and_watches.messages import SERVICE_MESSAGES
from faultline.systems_under_test.reference.leases_and_watches.store import ServicedStore
from faultline.systems_under_test.reference.raft.client import KeyValueClient
from faultline.systems_under_test.reference.raft.invariants.agreement import raft_invariants
from faultline.systems_under_test.reference.raft.key_value_server import KeyValueServer
from faultline.systems_under_test.reference.raft.key_value_store import KeyValueStore
from faultline.systems_under_test.reference.raft.messages import RAFT_MESSAGES
from faultline.systems_under_test.reference.raft.parts import replicas_of, store_of
from faultline.systems_under_test.reference.raft.server import ServerExtension
from faultline.systems_under_test.reference.shared.client_messages import ClientResponse
from faultline.systems_under_test.reference.shared.key_commands import FUNCTIONS
from faultline.systems_under_test.reference.shared.planted_bugs import in_front

__all__ = ["ConsistentCore"]


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
        "follower-reads",
        "versioned-value",
        "consistent-core",
        "lease",
        "state-watch",
    )
    functions = (*FUNCTIONS, *SERVICE_FUNCTIONS)
    function_options: Mapping[str, Mapping[str, str]] = {f: {"services": "on"} for f in SERVICE_FUNCTIONS}
    options: Mapping[str, OptionDescription] = OPTIONS
    tuning: Mapping[str, OptionDescription] = SETTINGS
    former_options: Mapping[str, FormerOption] = FORMER_OPTIONS
    planted_bugs: Mapping[str, PlantedBug] = BUGS.planted_bugs
    features: tuple[Feature, ...] = FEATURES
    messages: tuple[type[msgspec.Struct], ...] = (
        *RAFT_MESSAGES,
        *FOLLOWER_READ_MESSAGES,
        *SERVICE_MESSAGES,
        *FORWARDING_MESSAGES,
    )

    def node(
        self, ports: Ports, members: tuple[NodeId, ...], options: Mapping[str, str], planted_bugs: frozenset[str]
    ) -> KeyValueServer | LeaderKeyNode:
        """Return a server with empty memory. Raises UsageError for options, planted bugs or members it cannot use."""
        parts = BUGS.parts(planted_bugs)
        settings = _settings(options)
        leader_key_store = store_of(members, settings)
        if leader_key_store is not None and leader_key_store == ports.node_id:
            return LeaderKeyNode(ports, settings.leader_key_ttl_us)
        if settings.find_leader == "forward":
            ports = RelayingPorts(ports)
        store = _new_store(ports, settings, parts.new_sessions(settings), parts.services, parts.reads)
        server = BUGS.node(KeyValueServer, planted_bugs)(ports, members, settings, parts, store)
        extensions: list[ServerExtension] = []
        if isinstance(store, ServicedStore):
            extensions.append(Services(server, settings.service, store, parts.services))
        if settings.find_leader == "forward":
            extensions.append(Forwarding(server))
        if isinstance(store, StampedStore):
            region = settings.follower.region_of(members.index(ports.node_id))
            extensions.append(FollowerReads(server, settings.follower, store, region, parts.reads))
        server.extend(*extensions)
        return server

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        planted_bugs: frozenset[str],
    ) -> KeyValueClient:
        """Return a client that talks to `node` first."""
        settings = _settings(options)
        replicas = replicas_of(members, settings)
        client = BUGS.client(_CLIENTS[settings.service.is_on, not settings.follower.is_off], planted_bugs)
        return client(ports, replicas, node if node in replicas else replicas[0], settings)

    def not_promised(self, asked: Asked) -> str | None:
        """Return why what a workload judges by need not hold, in a clause; None when it must."""
        return not_promised(asked)

    def invariants(self) -> list[Invariant]:
        """Return fresh instances of the system's invariants."""
        return [*raft_invariants(), *follower_read_invariants(), *(kind() for kind in SERVICE_INVARIANTS)]


class _ServicedStampedStore(ServicedStore, StampedStore):
    """The store with leases and events, and with versions."""


class _ServicedFollowerReadingClient(ServicedClient, FollowerReadingClient):
    """The client with leases and watches that reads from followers."""


_CLIENTS: dict[tuple[bool, bool], type[KeyValueClient]] = {
    (False, False): KeyValueClient,
    (False, True): FollowerReadingClient,
    (True, False): ServicedClient,
    (True, True): _ServicedFollowerReadingClient,
}
"""The client by whether it has leases and watches, and whether it reads from followers."""


def _new_store(
    ports: Ports,
    settings: CoreSettings,
    sessions: ClientSessions[ClientResponse],
    services: ServiceParts,
    reads: ReadParts,
) -> KeyValueStore:
    """Return the state machine that the options ask for."""
    follower = settings.follower
    if follower.is_off:
        if not settings.service.is_on:
            return KeyValueStore(sessions)
        store = services.store(sessions)
    else:
        stamps = (ports.trace, reads.versions if follower.versioned else None, follower.versions_kept)
        if not settings.service.is_on:
            return StampedStore(sessions, *stamps)
        is_correct = services.store is ServicedStore
        both = _ServicedStampedStore if is_correct else in_front(services.store, _ServicedStampedStore)
        store = both(sessions, *stamps)
    store.serve(services.leases(), services.source(settings.service), settings.service)
    return store


def _settings(options: Mapping[str, str]) -> CoreSettings:
    return _settings_of(tuple(options.items()))


@lru_cache(maxsize=64)
def _settings_of(options: tuple[tuple[str, str], ...]) -> CoreSettings:
    # Read once for all servers and clients of all runs of a campaign: it takes longer than to make a server.
    return CoreSettings.read(dict(options))
