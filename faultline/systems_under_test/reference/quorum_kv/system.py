"""Quorum key-value store: always writable, and honest about conflicts; the home of the version vector.

*Problem.* A store that must take writes while replicas are cut off from one another cannot agree on one order of them.
If it picks a winner by clock, updates that were acknowledged disappear without a word.

*Idea.* Each key lives on N nodes. Any of them takes a write, gives it a version and waits until W have it; a read asks
until R have answered and returns all concurrent values with one context. With R + W > N a read meets every acknowledged
write, or a value written in knowledge of it. Conflicts are shown to the client, which resolves them by writing with
the context of its read. Reads repair the replicas they find behind.

*Invariants.* VVC-I1 siblings are pairwise concurrent, VVC-I2 a version names one value, VVC-I5 a value leaves a replica
only for a descendant, VVC-I6 no version carries a number its node does not recover, VVC-R8 a write refused as obsolete
is taken nowhere; RWL-I1 and RWL-I4 see `leaderless_node`. VVC-I3 and VVC-I4 (nothing acknowledged is lost, replicas
converge) are judged from the history.

*Tolerates.* Any minority of a key's replicas crashed, paused or cut off; lost, late and repeated messages; clocks of
any kind, except with `versions=last-write-wins`.

*Does not tolerate.* To be taken for a register: reads may go back and forth between siblings, nothing is linearizable.
`versions=last-write-wins` loses acknowledged updates, with honest clocks too, and so does an application that keeps
one of several values (`conflicts=largest`): expected anomalies. Without `read_repair` replicas may stay apart for
ever. `versions=client-id` grows a vector entry for every client. A write that comes again to a node that has
restarted, stale or repeated by the network, is made again (see `leaderless_node`). Deletion, hinted handoff and
growing clusters are not here; the log is not compacted.

*Workloads.* `siblings`; with `conflicts=union` also `cart`.

*Checkers.* `siblings`, `set`; the invariants.

*Planted bugs.* See `planted_bugs`.

Where the text leaves the choice: N = 3, W = 2, R = 2; the client's own replica coordinates (`coordinator=any`, as in
Dynamo, Riak and Cassandra), or the first replica of the key as in the chapter (`primary`); versions are dotted, as in
Riak since 2.0, or the chapter's counters per node (`server-id`).

Sources: Patterns of Distributed Systems ch. 18; DeCandia et al., "Dynamo" (SOSP 2007) §4.4 to 4.7.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from faultline.harness.feature import Feature
from faultline.harness.invariant import Invariant
from faultline.harness.promises import Asked
from faultline.harness.system import OptionDescription, PlantedBug
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.reference.quorum_kv.client import FUNCTIONS, QuorumKeyValueClient
from faultline.systems_under_test.reference.quorum_kv.features import FEATURES
from faultline.systems_under_test.reference.quorum_kv.invariants import quorum_kv_invariants
from faultline.systems_under_test.reference.quorum_kv.messages import MESSAGES
from faultline.systems_under_test.reference.quorum_kv.node import QuorumKeyValueNode
from faultline.systems_under_test.reference.quorum_kv.options import OPTIONS, KeyValueSettings
from faultline.systems_under_test.reference.quorum_kv.planted_bugs import BUGS
from faultline.systems_under_test.reference.shared.leaderless_node import reason_of_forgotten_requests

__all__ = ["QuorumKeyValueStore"]

_CONFLICTS = {"siblings": ("show", "reads answer with concurrent values"), "cart": ("union", "no addition is lost")}
"""The option `conflicts` that a workload needs, and why; no other workload is promised."""


class QuorumKeyValueStore:
    """The system as the harness sees it: implements `NodeSystem`."""

    name = "quorum-kv"
    promise = "no acknowledged write is lost without a concurrent sibling, and replicas converge"
    summary = "leaderless key-value store with siblings, contexts, read repair and dotted version vectors"
    patterns = ("version-vector", "quorum", "write-ahead-log", "request-waiting-list", "singular-update-queue")
    functions = FUNCTIONS
    answer_forms = ("siblings",)
    usual_workload = "siblings"
    usual_nodes = 3
    options: Mapping[str, OptionDescription] = OPTIONS
    planted_bugs: Mapping[str, PlantedBug] = BUGS.planted_bugs
    features: tuple[Feature, ...] = FEATURES
    messages: tuple[type[msgspec.Struct], ...] = MESSAGES

    def node(
        self, ports: Ports, members: tuple[NodeId, ...], options: Mapping[str, str], planted_bugs: frozenset[str]
    ) -> QuorumKeyValueNode:
        """Return a node with empty memory over `ports`. Raise `UsageError` for unusable options or bugs."""
        settings = KeyValueSettings.of_cluster(options, len(members))
        return QuorumKeyValueNode(ports, members, settings, BUGS.parts(planted_bugs))

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        planted_bugs: frozenset[str],
    ) -> QuorumKeyValueClient:
        """Return a client that talks to `node` first."""
        settings = KeyValueSettings.of_cluster(options, len(members))
        return BUGS.client(QuorumKeyValueClient, planted_bugs)(ports, members, node, settings)

    def not_promised(self, asked: Asked) -> str | None:
        """Return in a clause why the claim of the workload need not hold; None when it must."""
        if asked.workload not in _CONFLICTS:
            return "concurrent writes leave siblings, and reads may go back, so that a key is no register"
        needed, why = _CONFLICTS[asked.workload]
        if not asked.chose("conflicts", needed):
            return f"only with conflicts={needed} {why}"
        if asked.chose("versions", "last-write-wins"):
            return "with versions=last-write-wins the earlier of two concurrent writes is lost"
        if asked.workload == "siblings" and asked.chose("read_repair", "off"):
            return "with read_repair=off nothing carries a write to the replicas that missed it"
        write, read, replicas = (asked.number(name) for name in ("write_quorum", "read_quorum", "replicas"))
        if write + read <= replicas:
            return f"{write} replicas for a write and {read} for a read, of {replicas}, need not have one in common"
        return reason_of_forgotten_requests(asked)

    def invariants(self) -> list[Invariant]:
        """Return fresh instances of the invariants."""
        return quorum_kv_invariants()
