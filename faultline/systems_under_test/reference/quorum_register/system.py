"""Quorum register: reads and writes without a leader, and the reason why a majority for each is not enough.

*Problem.* If any two majorities share a replica, then a write to a majority and a read from a majority should always
meet. They do; and still two reads in a row can return the new value and then the old one.

*Idea.* Any node carries out any operation (`coordinator`): a write asks a majority for their stamps and
stores the value under a newer one on a majority; a read asks a majority and takes the newest. A write that stopped
halfway is on a minority, so a reader meets it only if it asks a replica of that minority. The register becomes
linearizable when a read, before it answers, stores the copy it found on a majority too: option `write_back`, `on` by
default.

    write_back=off    s1 2        c1 asks s1 and s2: 2.   s1 goes down.   c2 asks s2 and s3: 1
                      s2 1                                                (LDR-S7: an expected anomaly)
                      s3 1
    write_back=on                 c1 stores 2 on s2 before it answers;    c2 asks s2 and s3: 2

*Invariants.* QRM-I1 the replicas that are asked meet those that stored. QRM-I2 an acknowledged write is on a write
quorum of distinct replicas. QRM-I3 fewer than a quorum of distinct answers decide nothing. Two copies with one stamp
hold one value. RWL-I1 and RWL-I4, see `leaderless_node`.

*Tolerates.* Any minority of nodes crashed, paused or cut off; lost, late and repeated messages; clocks of any kind.

*Does not tolerate.* A compare-and-set: reads and writes are all that quorums alone can make linearizable, anything
that decides needs consensus. Quorums that do not overlap (write_quorum + read_quorum ≤ n) read old values, and
`write_back` `later` or `off` lets time run backwards for readers: both are expected anomalies. Writes that come again,
stale or repeated, to nodes that restart: a coordinator forgets the requests that it has carried out, and carries one
out again under a new stamp. The writers of the paper choose their stamps themselves, and never restart.

*Workloads.* `read-write`.

*Checkers.* Linearizability; the invariants.

*Planted bugs.* See `planted_bugs`.

Sources: Patterns of Distributed Systems ch. 6, "Why quorum reads and writes are not enough", ch. 10 and 14; Attiya,
Bar-Noy and Dolev (JACM 1995); Lynch and Shvartsman (FTCS 1997). All members are replicas of all keys; there is no
partitioning, and logs are not compacted.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from faultline.harness.feature import Feature
from faultline.harness.invariant import Invariant
from faultline.harness.promises import Asked
from faultline.harness.system import OptionDescription, PlantedBug
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_replication.quorum import majority
from faultline.systems_under_test.reference.quorum_register.client import QuorumRegisterClient
from faultline.systems_under_test.reference.quorum_register.features import FEATURES
from faultline.systems_under_test.reference.quorum_register.invariants import quorum_register_invariants
from faultline.systems_under_test.reference.quorum_register.messages import MESSAGES
from faultline.systems_under_test.reference.quorum_register.node import QuorumRegisterNode
from faultline.systems_under_test.reference.quorum_register.options import OPTIONS, RegisterSettings
from faultline.systems_under_test.reference.quorum_register.planted_bugs import BUGS
from faultline.systems_under_test.reference.shared.leaderless_node import reason_of_forgotten_requests

__all__ = ["QuorumRegister"]

_SESSIONS = frozenset({"read-your-writes", "bounded-staleness"})
"""Workloads for which overlapping quorums suffice: all reads that begin after the end of a write see it."""


class QuorumRegister:
    """The system as the harness sees it: implements `NodeSystem`."""

    name = "quorum-register"
    promise = "every key is a linearizable register of reads and writes, as long as reads write back"
    summary = "leaderless quorum reads and writes (ABD); without the write-back it shows what quorums do not give"
    patterns = ("write-ahead-log", "quorum", "request-waiting-list", "singular-update-queue", "generation-clock")
    functions = ("read", "write")
    usual_workload = "read-write"
    usual_nodes = 3
    options: Mapping[str, OptionDescription] = OPTIONS
    planted_bugs: Mapping[str, PlantedBug] = BUGS.planted_bugs
    features: tuple[Feature, ...] = FEATURES
    messages: tuple[type[msgspec.Struct], ...] = MESSAGES

    def node(
        self, ports: Ports, members: tuple[NodeId, ...], options: Mapping[str, str], planted_bugs: frozenset[str]
    ) -> QuorumRegisterNode:
        """Return a node with empty memory over `ports`. Raise `UsageError` for unusable options or bugs."""
        settings = RegisterSettings.of_cluster(options, len(members))
        return QuorumRegisterNode(ports, members, settings, BUGS.parts(planted_bugs))

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        planted_bugs: frozenset[str],
    ) -> QuorumRegisterClient:
        """Return a client that talks to `node` first."""
        settings = RegisterSettings.of_cluster(options, len(members))
        return BUGS.client(QuorumRegisterClient, planted_bugs)(ports, members, node, settings)

    def not_promised(self, asked: Asked) -> str | None:
        """Return in a clause why the claim of the workload need not hold; None when it must."""
        write = asked.number("write_quorum") or majority(asked.nodes)
        read = asked.number("read_quorum") or majority(asked.nodes)
        if write + read <= asked.nodes:
            return f"{write} replicas for a write and {read} for a read, of {asked.nodes}, need not have one in common"
        if not asked.chose("write_back", "on") and asked.workload not in _SESSIONS:
            return f"with write_back={asked.options['write_back']} a read may see less than a read before it"
        return reason_of_forgotten_requests(asked)

    def invariants(self) -> list[Invariant]:
        """Return fresh instances of the invariants."""
        return quorum_register_invariants()
