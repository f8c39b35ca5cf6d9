"""Follower reads: a replicated store with versions, of which followers answer reads.

*Problem.* A leader that answers every read is the bottleneck of a store that is mostly read, and far away for clients
of other regions. A follower that answers instead may be behind, and does not know how far.

*Idea.* Each update happens at the index of its log entry, its *stamp*. A session carries the newest stamp that it has
written or seen, and a follower waits until it has applied that. With `store=versioned` it also answers at an older
stamp: a snapshot. What an answer is worth is the option `follower_reads`, from a prefix of the log to linearizable;
with `closed`, stamps are times that the leader gives and closes (`closed_timestamps`).

The servers are those of the Raft kernel with an extension (`extension`); their style is fixed: elections by votes with
pre-vote, entries pushed, the leader's own reads through a round of heartbeats. `consistent-core` has the variants.

*Invariants.* Those of the Raft kernel (`raft.invariants`), and VVL-I1 to VVL-I4, FR-I3, FR-I4, FR-I6, FR-R9, FR-R14 and
FR-R22 (`invariants`).

*Tolerates.* Any minority of servers crashed, paused or cut off, and everything a network does to messages.

*Does not tolerate.* A majority of servers without their disks; `follower_reads=bounded` under clocks without a bound on
their drift.

*Workloads.* `follower-reads`, `read-your-writes`, `bounded-staleness`, `causal-writes`, `moved-sessions`; with
`follower_reads=read-index` or `read_from=leader` also `register` and the others of a key-value store.

*Planted bugs.* See `planted_bugs`.

Sources: Patterns of Distributed Systems, chapters on Follower Reads and Versioned Value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec

from faultline.harness.feature import Feature
from faultline.harness.invariant import Invariant
from faultline.harness.promises import Asked
from faultline.harness.system import OptionDescription, PlantedBug
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.reference.follower_reads.client import READ_AFTER, FollowerReadingClient
from faultline.systems_under_test.reference.follower_reads.closed_timestamps import ClosedTimeReads, TimedStore
from faultline.systems_under_test.reference.follower_reads.extension import FollowerReads
from faultline.systems_under_test.reference.follower_reads.features import FEATURES
from faultline.systems_under_test.reference.follower_reads.invariants import follower_read_invariants
from faultline.systems_under_test.reference.follower_reads.limits import not_promised
from faultline.systems_under_test.reference.follower_reads.messages import FOLLOWER_READ_MESSAGES
from faultline.systems_under_test.reference.follower_reads.options import OPTIONS, SETTINGS, StoreSettings
from faultline.systems_under_test.reference.follower_reads.planted_bugs import BUGS
from faultline.systems_under_test.reference.follower_reads.stamped_store import StampedStore
from faultline.systems_under_test.reference.raft.invariants.agreement import raft_invariants
from faultline.systems_under_test.reference.raft.key_value_server import KeyValueServer
from faultline.systems_under_test.reference.raft.messages import RAFT_MESSAGES
from faultline.systems_under_test.reference.shared.key_commands import FUNCTIONS

__all__ = ["FollowerReadStore"]


class FollowerReadStore:
    """The system as the harness sees it: implements `NodeSystem`."""

    name = "follower-reads"
    promise = "a session that reads from followers sees its own writes and never goes back; modes promise less or more"
    summary = "a store on a Raft kernel that keeps versions, and whose followers answer reads as a mode promises"
    patterns = (
        "follower-reads",
        "versioned-value",
        "replicated-log",
        "leader-and-followers",
        "generation-clock",
        "heartbeat",
        "high-water-mark",
        "idempotent-receiver",
        "request-waiting-list",
        "singular-update-queue",
    )
    functions = (*FUNCTIONS, READ_AFTER)
    usual_workload = "follower-reads"
    usual_nodes = 3
    options: Mapping[str, OptionDescription] = OPTIONS
    tuning: Mapping[str, OptionDescription] = SETTINGS
    planted_bugs: Mapping[str, PlantedBug] = BUGS.planted_bugs
    features: tuple[Feature, ...] = FEATURES
    messages: tuple[type[msgspec.Struct], ...] = (*RAFT_MESSAGES, *FOLLOWER_READ_MESSAGES)

    def node(
        self, ports: Ports, members: tuple[NodeId, ...], options: Mapping[str, str], planted_bugs: frozenset[str]
    ) -> KeyValueServer:
        """Return a server with empty memory. Raise `UsageError` for options or planted bugs it cannot use."""
        parts = BUGS.parts(planted_bugs)
        settings = StoreSettings.read(options)
        follower = settings.follower
        sessions, versions = parts.new_sessions(settings), parts.reads.versions
        region = follower.region_of(members.index(ports.node_id))
        if follower.closes_timestamps:
            closing = parts.closing
            timed = TimedStore(sessions, ports.trace, versions, closing.replica, keeps_past=follower.versioned)
            server = KeyValueServer(ports, members, settings, parts, timed)
            reads = replace(parts.reads, service=ClosedTimeReads)
            server.extend(
                FollowerReads(server, follower, timed, region, reads), closing.timestamps(server, timed, closing.leader)
            )
            return server
        store = StampedStore(sessions, ports.trace, versions if follower.versioned else None, follower.versions_kept)
        server = KeyValueServer(ports, members, settings, parts, store)
        server.extend(FollowerReads(server, follower, store, region, parts.reads))
        return server

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        planted_bugs: frozenset[str],
    ) -> FollowerReadingClient:
        """Return a client that talks to `node` first."""
        return BUGS.client(FollowerReadingClient, planted_bugs)(ports, members, node, StoreSettings.read(options))

    def not_promised(self, asked: Asked) -> str | None:
        """Return a clause that says why what a workload judges by need not hold; None when it must."""
        return not_promised(asked)

    def invariants(self) -> list[Invariant]:
        """Return fresh instances of the system's invariants."""
        return [*raft_invariants(), *follower_read_invariants()]
