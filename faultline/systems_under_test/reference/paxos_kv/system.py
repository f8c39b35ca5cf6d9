"""paxos-kv: linearizable registers without a leader, one chain of Paxos instances per key.

*Problem.* A store with a leader stops while it elects another one, and every request takes the way through it. A few
keys that change seldom can do without: any node should be able to serve any request, whichever minority is down.

*Idea.* Each version of each key is decided by a single-value Paxos of its own (`paxos_store`). A node that gets a
request is its proposer: it computes the next version from the newest one, and gets it chosen, or finishes what another
proposer has begun and tries the version after that. A read is a no-op that is decided like a write, because a value
may be chosen without the asked node knowing: only a quorum can tell. With read mode `prepare` a read ends after the
first phase when no acceptor of the quorum has accepted anything newer.

The decided value of a key holds the last request of every client beside the register, so that a request that was
proposed by two nodes is executed once (`register`).

It is joined from these patterns: paxos, quorum, write-ahead log, segmented log, idempotent receiver, singular update
queue. `node` shows how.

*Invariants.* See `invariants`: PAX-I1 to PAX-I4, PAX-I6, PAX-R3, PAX-R4, PAX-R8; PAX-I5 is linearizability.

*Tolerates.* Any minority of nodes crashed, paused or cut off, at any time and without a pause for an election;
lost, late, repeated and reordered messages; clocks of any kind, since time only decides when to try again.

*Does not tolerate.* More nodes down than the quorums leave: it then gives no answers, but no wrong ones. Nodes without
their disks. Many clients on one key: duelling proposers cost time, and a request may end with an unknown outcome. Logs
grow without bound, and so does the table of clients of a key.

*Workloads.* `register` (read, write, compare-and-set on independent keys).

*Checkers.* Linearizability per key; the invariants.

*Planted bugs.* See `planted_bugs`.

Sources: Patterns of Distributed Systems ch. 8; Cassandra's lightweight transactions, which are built so. Multi-Paxos
and a change function over the current value in one instance (CASPaxos, gryadka) are not.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from faultline.harness.feature import Feature
from faultline.harness.invariant import Invariant
from faultline.harness.system import OptionDescription, PlantedBug
from faultline.harness.universe import Domains
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.reference.paxos_kv.client import PaxosKvClient
from faultline.systems_under_test.reference.paxos_kv.features import FEATURES
from faultline.systems_under_test.reference.paxos_kv.invariants import paxos_kv_invariants
from faultline.systems_under_test.reference.paxos_kv.messages import PAXOS_KV_MESSAGES
from faultline.systems_under_test.reference.paxos_kv.node import PaxosKvNode
from faultline.systems_under_test.reference.paxos_kv.options import OPTIONS, PaxosKvSettings
from faultline.systems_under_test.reference.paxos_kv.planted_bugs import BUGS
from faultline.systems_under_test.reference.shared.key_commands import FUNCTIONS

__all__ = ["PaxosKv"]


class PaxosKv:
    """The system as the harness sees it: implements `NodeSystem`."""

    name = "paxos-kv"
    promise = "a linearizable key-value store: every read returns the latest completed write of its key"
    summary = "registers without a leader: each version of each key is decided by a Paxos instance of its own"
    patterns: tuple[str, ...] = (
        "paxos",
        "quorum",
        "write-ahead-log",
        "segmented-log",
        "idempotent-receiver",
        "singular-update-queue",
    )
    functions = FUNCTIONS
    # A round trip with two flushes must fit in a phase, or no proposer ever hears a quorum in time. Rivals that return
    # sooner than a round takes stop each other for ever: Paxos promises progress to a single proposer only.
    domains = Domains(
        options={"phase_timeout_ms": ("100", "200"), "backoff_ms": ("20", "40")},
        weather={"latency_us_max": (600, 5_000, 10_000), "fsync_us_max": (200, 5_000, 10_000)},
    )
    options: Mapping[str, OptionDescription] = OPTIONS
    planted_bugs: Mapping[str, PlantedBug] = BUGS.planted_bugs
    features: tuple[Feature, ...] = FEATURES
    messages: tuple[type[msgspec.Struct], ...] = PAXOS_KV_MESSAGES

    def node(
        self, ports: Ports, members: tuple[NodeId, ...], options: Mapping[str, str], planted_bugs: frozenset[str]
    ) -> PaxosKvNode:
        """Return a node with empty memory over `ports`. Raise `UsageError` for unusable options, bugs or members."""
        node_class = BUGS.node(PaxosKvNode, planted_bugs)
        return node_class(ports, members, PaxosKvSettings.read(options), BUGS.parts(planted_bugs))

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        planted_bugs: frozenset[str],
    ) -> PaxosKvClient:
        """Return a client that talks to `node` first."""
        return PaxosKvClient(ports, members, node, PaxosKvSettings.read(options))

    def invariants(self) -> list[Invariant]:
        """Return fresh instances of the invariants."""
        return paxos_kv_invariants()
