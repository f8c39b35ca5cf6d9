"""Consistent Core: a small cluster that keeps a little data linearizable, so that larger ones can rely on it.

*Problem.* A cluster of hundreds of servers needs a few decisions everybody agrees on: who is a member, who owns what.
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
`replicated_log_planted_bug_records`, those of leases and watches in
`services.planted_bug_records`, those of versions and follower reads in `follower_reads.planted_bugs`, those of log files and
snapshots in `storage_planted_bugs`.

Variants: `find_leader=forward`, where servers pass requests on (`forwarding_node`); the read modes; elections.

Sources: Patterns of Distributed Systems ch. 25 and the chapters of the patterns; Raft; etcd and ZooKeeper as the
stores of this kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from faultline.harness.feature import Feature
from faultline.harness.invariant import Invariant
from faultline.harness.promises import Asked
from faultline.harness.system import OptionDescription, PlantedBug
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.reference.consistent_core.client import FUNCTIONS, ConsistentCoreClient
from faultline.systems_under_test.reference.consistent_core.elections import replicas_of, store_of
from faultline.systems_under_test.reference.consistent_core.features import FEATURES
from faultline.systems_under_test.reference.consistent_core.follower_reads.client import FollowerReadingClient
from faultline.systems_under_test.reference.consistent_core.follower_reads.invariants import (
    follower_read_invariants,
)
from faultline.systems_under_test.reference.consistent_core.follower_reads.messages import (
    FOLLOWER_READ_MESSAGES,
)
from faultline.systems_under_test.reference.consistent_core.follower_reads.node import following_node
from faultline.systems_under_test.reference.consistent_core.follower_reads.planted_bugs import read_parts
from faultline.systems_under_test.reference.consistent_core.forwarding_node import (
    FORWARDING_MESSAGES,
    forwarding_node,
)
from faultline.systems_under_test.reference.consistent_core.invariants import consistent_core_invariants
from faultline.systems_under_test.reference.consistent_core.leader_key_node import LeaderKeyNode
from faultline.systems_under_test.reference.consistent_core.limits import not_promised
from faultline.systems_under_test.reference.consistent_core.node import ConsistentCoreNode
from faultline.systems_under_test.reference.consistent_core.options import OPTIONS, CoreSettings
from faultline.systems_under_test.reference.consistent_core.planted_bugs import (
    PLANTED_BUGS,
    forced_options,
    mutated_parts,
    with_client_bug,
)
from faultline.systems_under_test.reference.consistent_core.services.client import (
    SERVICE_FUNCTIONS,
    serviced_client,
)
from faultline.systems_under_test.reference.consistent_core.services.invariants import SERVICE_INVARIANTS
from faultline.systems_under_test.reference.consistent_core.services.messages import SERVICE_MESSAGES
from faultline.systems_under_test.reference.consistent_core.services.node import serviced_node
from faultline.systems_under_test.reference.consistent_core.services.planted_bugs import service_parts
from faultline.systems_under_test.reference.shared.client_messages import MESSAGES

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
    planted_bugs: Mapping[str, PlantedBug] = PLANTED_BUGS
    features: tuple[Feature, ...] = FEATURES
    messages: tuple[type[msgspec.Struct], ...] = (
        *MESSAGES,
        *FOLLOWER_READ_MESSAGES,
        *SERVICE_MESSAGES,
        *FORWARDING_MESSAGES,
    )

    def node(
        self, ports: Ports, members: tuple[NodeId, ...], options: Mapping[str, str], planted_bugs: frozenset[str]
    ) -> ConsistentCoreNode | LeaderKeyNode:
        """A server with empty memory over `ports`. Raises UsageError for options, planted bugs or members it cannot use."""
        parts = mutated_parts(planted_bugs)
        settings = _settings(options, planted_bugs)
        store = store_of(members, settings)
        if store is not None and store == ports.node_id:
            return LeaderKeyNode(ports, settings.leader_key_ttl_us)
        node = parts.node or ConsistentCoreNode if settings.follower.is_off else following_node(parts.node)
        if settings.forwards:
            node = forwarding_node(node)
        if settings.service.is_on:
            node = serviced_node(node, service_parts(planted_bugs))
        reads = () if settings.follower.is_off else (read_parts(planted_bugs),)
        return node(ports, members, settings, parts, *reads)

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        planted_bugs: frozenset[str],
    ) -> ConsistentCoreClient:
        """A client that talks to `node` first."""
        settings = _settings(options, planted_bugs)
        replicas = replicas_of(members, settings)
        usual = ConsistentCoreClient if settings.follower.is_off else FollowerReadingClient
        client = with_client_bug(usual, planted_bugs)
        if settings.service.is_on:
            client = serviced_client(client, service_parts(planted_bugs).client)
        return client(ports, replicas, node if node in replicas else replicas[0], settings)

    def not_promised(self, asked: Asked) -> str | None:
        """Why what a workload judges by need not hold, in a clause; None when it must."""
        return not_promised(asked)

    def invariants(self) -> list[Invariant]:
        """Fresh instances of the system's invariants."""
        return [*consistent_core_invariants(), *follower_read_invariants(), *(kind() for kind in SERVICE_INVARIANTS)]


def _settings(options: Mapping[str, str], planted_bugs: frozenset[str]) -> CoreSettings:
    return _settings_of(tuple(options.items()), planted_bugs)


@lru_cache(maxsize=64)
def _settings_of(options: tuple[tuple[str, str], ...], planted_bugs: frozenset[str]) -> CoreSettings:
    """Read once for all servers and clients of all runs of one campaign: there are two dozen options to check."""
    return CoreSettings.read({**dict(options), **forced_options(planted_bugs)})
