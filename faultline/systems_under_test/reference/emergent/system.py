"""The system `emergent-leader`: a cluster of equals, coordinated by its oldest member, that heals itself after a cut.

Clients ask any node for the members of the cluster. A node answers only for a group that may serve: not while it
belongs to none, and not for a group below the minimum size.
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
from faultline.systems_under_test.patterns.data_replication.quorum import majority
from faultline.systems_under_test.reference.emergent.client import EmergentClient
from faultline.systems_under_test.reference.emergent.features import FEATURES
from faultline.systems_under_test.reference.emergent.messages import MESSAGES
from faultline.systems_under_test.reference.emergent.node import EmergentNode
from faultline.systems_under_test.reference.emergent.options import OPTIONS, EmergentSettings
from faultline.systems_under_test.reference.emergent.planted_bugs import BUGS
from faultline.systems_under_test.reference.membership.invariants import member_invariants

__all__ = ["EmergentLeader"]

_FAILURE_MS_MAX = 600
"""The longest failure time-out with which groups have merged when their nodes are asked for the last time."""

_FOUNDING_MS_MAX = 1_000
"""The longest round of a seed's questions with which all have joined when the nodes are asked for the last time."""

_ROUND_MS_MAX = 100
"""The longest round of a seed's questions with which a cluster has formed when faults begin."""


class EmergentLeader:
    """The system as the harness sees it: implements `NodeSystem`."""

    name = "emergent-leader"
    promise = "one coordinator per connected group, no two disjoint groups serve clients, and split groups merge"
    summary = "membership without elections: the oldest member coordinates, groups that were cut apart merge"
    patterns = ("emergent-leader", "heartbeat", "quorum", "generation-clock")
    functions = ("view",)
    answer_forms = ("memberships",)
    usual_workload = "membership"
    usual_nodes = 5
    # A client asks once, and a lost question is a refusal to it: no claim can be made of a network that loses for ever.
    # Resets lose messages, and half of the stale ones are lost to the client that waits.
    domains = Domains(nodes=(5, 5, 5, 3, 4, 6, 7, 9), weather={"loss": (), "stale": (), "reset": ()})
    options: Mapping[str, OptionDescription] = OPTIONS
    planted_bugs: Mapping[str, PlantedBug] = BUGS.planted_bugs
    features: tuple[Feature, ...] = FEATURES
    messages: tuple[type[msgspec.Struct], ...] = MESSAGES

    def node(
        self, ports: Ports, members: tuple[NodeId, ...], options: Mapping[str, str], planted_bugs: frozenset[str]
    ) -> EmergentNode:
        """Return a node with empty memory over `ports`. Raise `UsageError` for unusable options or bugs."""
        node_class = BUGS.node(EmergentNode, planted_bugs)
        return node_class(ports, members, EmergentSettings.read(options), BUGS.parts(planted_bugs))

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        planted_bugs: frozenset[str],
    ) -> EmergentClient:
        """Return a client of `node`."""
        return EmergentClient(ports, node, EmergentSettings.read(options))

    def not_promised(self, asked: Asked) -> str | None:
        """Return in a clause why the claim of the workload need not hold; None when it must."""
        if asked.number("join_attempts"):
            return f"a joiner gives up for good after join_attempts={asked.number('join_attempts')}"
        minimum = asked.number("minimum")
        if minimum > asked.nodes:
            return f"clients are always refused, as there are only {asked.nodes} nodes, below minimum={minimum}"
        if minimum and 2 * minimum <= asked.nodes:
            return f"with minimum={minimum} two groups of {asked.nodes} nodes may both serve"
        if asked.number("failure_timeout_ms") > _FAILURE_MS_MAX:
            timeout_ms = asked.options["failure_timeout_ms"]
            return (
                f"with failure_timeout_ms={timeout_ms} groups need longer to find and join each other than a run waits"
            )
        others = max(1, min(asked.number("seeds"), asked.nodes) - 1)
        round_ms = others * asked.number("join_timeout_ms")
        if round_ms > _FOUNDING_MS_MAX:
            return f"a seed asks {others} others for {round_ms} ms before it founds a cluster, which is late in a run"
        if not minimum and asked.fault_kinds and round_ms > _ROUND_MS_MAX:
            return (
                f"with join_timeout_ms={asked.options['join_timeout_ms']} and seeds={asked.options['seeds']} faults"
                " begin before all have met, and a seed that founds a group alone serves it, unless"
                f" minimum={majority(asked.nodes)}"
            )
        return None

    def invariants(self) -> list[Invariant]:
        """Return fresh instances of the invariants."""
        return member_invariants()
